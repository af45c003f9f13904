#include "protocol_oip.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace toto::server {
namespace {

using io::Json;

constexpr std::size_t kMaxOutputs = 64;
constexpr std::size_t kMaxInputs = 16;
// 10^5 variates of 10^6 steps; a body is smaller anyway.
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 37;

// Data types of the protocol, their names and sizes in bytes.
enum class OipType { fp32, fp64, boolean, int64 };
struct OipTypeRow {
  std::string_view name;
  OipType type;
  std::size_t bytes;
};
constexpr std::array<OipTypeRow, 4> kTypes = {{{"FP32", OipType::fp32, 4},
                                               {"FP64", OipType::fp64, 8},
                                               {"BOOL", OipType::boolean, 1},
                                               {"INT64", OipType::int64, 8}}};

// An input tensor: its bytes in the body, or its JSON. Points into the body.
struct InputTensor {
  std::string name;
  OipTypeRow type;
  std::vector<std::size_t> shape;
  std::size_t count = 1;
  std::string_view bytes;  // empty if it is JSON
  const Json* data = nullptr;
};

std::vector<std::size_t> read_shape(const Json& value, const std::string& where,
                                    std::size_t& count) {
  std::vector<std::size_t> shape;
  std::uint64_t product = 1;
  for (const Json& item : list_of(value, where)) {
    if (shape.size() == 8) fail(ErrorCode::invalid_argument, "{} has more than 8 entries", where);
    const std::int64_t size = whole_number(item, where, 1, std::int64_t{1} << 37);
    // Both are at most 2^37, so the product cannot wrap around before it is refused.
    if (product > kMaxElements / static_cast<std::uint64_t>(size)) {
      fail(ErrorCode::invalid_argument, "{} has more than {} elements", where, kMaxElements);
    }
    product *= static_cast<std::uint64_t>(size);
    shape.push_back(static_cast<std::size_t>(size));
  }
  count = product;
  return shape;
}

// The binary tensors after the JSON, taken in the order of the inputs.
class BinaryPart {
 public:
  explicit BinaryPart(std::string_view bytes) : bytes_(bytes) {}
  std::string_view take(std::size_t size, const std::string& name) {
    if (size > bytes_.size()) {
      fail(ErrorCode::invalid_argument,
           "the input {} has binary_data_size {} and {} bytes are left of the body", quoted(name),
           size, bytes_.size());
    }
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  void finish() const {
    if (bytes_.empty()) return;
    fail(ErrorCode::invalid_argument, "{} bytes follow the last tensor of the body", bytes_.size());
  }

 private:
  std::string_view bytes_;
};

InputTensor read_tensor(const Json& value, const std::string& where, BinaryPart& binary) {
  Fields fields(value, where);
  InputTensor tensor;
  tensor.name = text_of(fields.need("name"), fields.where("name"));
  const std::string type = text_of(fields.need("datatype"), fields.where("datatype"));
  const auto known = std::find_if(kTypes.begin(), kTypes.end(),
                                  [&](const OipTypeRow& item) { return item.name == type; });
  if (known == kTypes.end()) {
    fail(ErrorCode::invalid_argument, "{}.datatype is {}, expected FP32, FP64, BOOL or INT64",
         where, quoted(type));
  }
  tensor.type = *known;
  tensor.shape = read_shape(fields.need("shape"), fields.where("shape"), tensor.count);
  tensor.data = fields.take("data");
  const Json* parameters = fields.take("parameters");
  fields.finish();
  const Json* size = nullptr;
  if (parameters != nullptr) {
    Fields inner(*parameters, fields.where("parameters"));
    size = inner.take("binary_data_size");
    inner.finish();
  }
  if ((size != nullptr) == (tensor.data != nullptr)) {
    fail(ErrorCode::invalid_argument,
         "{} has {} of \"data\" and parameters.binary_data_size, expected one of them", where,
         size == nullptr ? "neither" : "both");
  }
  if (size == nullptr) return tensor;
  const std::size_t expected = tensor.count * tensor.type.bytes;
  const auto given = static_cast<std::size_t>(
      whole_number(*size, where + ".parameters.binary_data_size", 0, std::int64_t{1} << 40));
  if (given != expected) {
    fail(ErrorCode::invalid_argument,
         "{} has binary_data_size {}, expected the {} bytes of its shape and datatype", where,
         given, expected);
  }
  tensor.bytes = binary.take(given, tensor.name);
  return tensor;
}

// The body may not be aligned: values are copied, not cast in place.
template <typename From, typename To>
std::vector<To> from_bytes(const InputTensor& tensor) {
  std::vector<To> values(tensor.count);
  for (std::size_t i = 0; i < tensor.count; ++i) {
    From value;
    std::memcpy(&value, tensor.bytes.data() + i * sizeof(From), sizeof(From));
    values[i] = static_cast<To>(value);
  }
  return values;
}

// Nested lists must have the shape; a flat list has its elements in row-major order.
void flatten(const Json& value, const std::string& where, std::span<const std::size_t> shape,
             std::vector<const Json*>& items) {
  const std::vector<Json>& list = list_of(value, where);
  if (list.size() != shape.front()) {
    fail(ErrorCode::invalid_argument, "{} has a list of {}, expected {} as its shape has it", where,
         list.size(), shape.front());
  }
  for (const Json& item : list) {
    if (shape.size() > 1) {
      flatten(item, where, shape.subspan(1), items);
    } else {
      items.push_back(&item);
    }
  }
}

std::vector<const Json*> elements_of(const InputTensor& tensor) {
  const std::string where = fmt::format("the data of input {}", quoted(tensor.name));
  const std::vector<Json>& list = list_of(*tensor.data, where);
  std::vector<const Json*> items;
  const bool nested = !list.empty() && list.front().kind == Json::Kind::array;
  if (nested && !tensor.shape.empty()) {
    flatten(*tensor.data, where, tensor.shape, items);
    return items;
  }
  for (const Json& item : list) items.push_back(&item);
  if (items.size() != tensor.count) {
    fail(ErrorCode::invalid_argument, "{} has {} elements, expected the {} of its shape", where,
         items.size(), tensor.count);
  }
  return items;
}

void require_type(const InputTensor& tensor, OipType type, std::string_view expected) {
  if (tensor.type.type == type) return;
  fail(ErrorCode::invalid_argument, "the input {} has datatype {}, expected {}",
       quoted(tensor.name), tensor.type.name, expected);
}

std::vector<float> floats_of(const InputTensor& tensor) {
  const bool is_double = tensor.type.type == OipType::fp64;
  if (!is_double) require_type(tensor, OipType::fp32, "FP32");
  if (tensor.data == nullptr) {
    return is_double ? from_bytes<double, float>(tensor) : from_bytes<float, float>(tensor);
  }
  std::vector<float> values;
  for (const Json* item : elements_of(tensor)) {
    if (!read_value(*item, values.emplace_back())) {
      fail(ErrorCode::invalid_argument, "the data of input {} holds {}, expected a number or null",
           quoted(tensor.name), io::described(*item));
    }
  }
  return values;
}

std::vector<std::uint8_t> flags_of(const InputTensor& tensor) {
  require_type(tensor, OipType::boolean, "BOOL");
  std::vector<std::uint8_t> flags;
  if (tensor.data == nullptr) {
    flags = from_bytes<std::uint8_t, std::uint8_t>(tensor);
    for (std::uint8_t& flag : flags) flag = flag != 0 ? 1 : 0;
    return flags;
  }
  for (const Json* item : elements_of(tensor)) {
    const bool is_bit = item->kind == Json::Kind::integer && (item->integer & ~1) == 0;
    const bool flag = is_bit ? item->integer == 1 : flag_of(*item, "target_mask");
    flags.push_back(flag ? 1 : 0);
  }
  return flags;
}

std::vector<std::int64_t> integers_of(const InputTensor& tensor) {
  require_type(tensor, OipType::int64, "INT64");
  if (tensor.data == nullptr) return from_bytes<std::int64_t, std::int64_t>(tensor);
  std::vector<std::int64_t> values;
  for (const Json* item : elements_of(tensor)) {
    values.push_back(whole_number(*item, "series_ids", std::numeric_limits<std::int64_t>::min(),
                                  std::numeric_limits<std::int64_t>::max()));
  }
  return values;
}

void require_shape(const InputTensor& tensor, std::span<const std::size_t> shape) {
  if (std::equal(tensor.shape.begin(), tensor.shape.end(), shape.begin(), shape.end())) return;
  fail(ErrorCode::invalid_argument, "the input {} has shape [{}], expected [{}] as target has it",
       quoted(tensor.name), fmt::join(tensor.shape, ", "), fmt::join(shape, ", "));
}

struct RequestedOutput {
  std::string name;
  bool binary = false;
};

std::vector<RequestedOutput> read_outputs(const Json* value, bool binary) {
  if (value == nullptr) return {{"mean", binary}, {"quantiles", binary}};
  const std::vector<Json>& items = list_of(*value, "outputs");
  if (items.size() > kMaxOutputs) {
    fail(ErrorCode::invalid_argument, "outputs has {} entries, expected at most {}", items.size(),
         kMaxOutputs);
  }
  std::vector<RequestedOutput> outputs;
  for (const Json& item : items) {
    Fields fields(item, "outputs");
    RequestedOutput output{text_of(fields.need("name"), "outputs.name"), binary};
    if (const Json* parameters = fields.take("parameters")) {
      Fields inner(*parameters, "outputs.parameters");
      if (const Json* flag = inner.take("binary_data")) {
        output.binary = flag_of(*flag, "outputs.parameters.binary_data");
      }
      inner.finish();
    }
    fields.finish();
    if (output.name != "mean" && output.name != "quantiles" && output.name != "samples") {
      fail(ErrorCode::invalid_argument,
           "there is no output {}, expected mean, quantiles or samples", quoted(output.name));
    }
    const bool twice =
        std::any_of(outputs.begin(), outputs.end(),
                    [&](const RequestedOutput& other) { return other.name == output.name; });
    if (twice) {
      fail(ErrorCode::invalid_argument, "the output {} appears twice, expected once",
           quoted(output.name));
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

// The numbers of an output, row-major in its shape.
struct OutputTensor {
  std::vector<std::size_t> shape;
  std::vector<float> values;
};

OutputTensor make_output(const std::string& name, const ForecastAnswer& answer,
                         std::size_t num_levels) {
  const std::vector<Forecast>& forecasts = answer.forecasts;
  const auto batch = forecasts.size();
  const auto variates = static_cast<std::size_t>(forecasts.front().num_variates);
  const auto horizon = static_cast<std::size_t>(forecasts.front().horizon);
  const std::size_t rows = variates * horizon;
  OutputTensor out{{batch, variates, horizon}, {}};
  if (name == "mean") {
    for (const Forecast& forecast : forecasts) {
      out.values.insert(out.values.end(), forecast.mean.begin(), forecast.mean.end());
    }
  } else if (name == "quantiles") {  // [Q, B, V, H]
    out.shape.insert(out.shape.begin(), num_levels);
    for (std::size_t q = 0; q < num_levels; ++q) {
      for (const Forecast& forecast : forecasts) {
        const auto from = forecast.quantiles.begin() + static_cast<std::ptrdiff_t>(q * rows);
        out.values.insert(out.values.end(), from, from + static_cast<std::ptrdiff_t>(rows));
      }
    }
  } else {  // [B, V, H, S] of [variate][sample][step]
    const std::size_t samples = forecasts.front().samples.size() / rows;
    out.shape.push_back(samples);
    for (const Forecast& forecast : forecasts) {
      for (std::size_t v = 0; v < variates; ++v) {
        for (std::size_t h = 0; h < horizon; ++h) {
          for (std::size_t s = 0; s < samples; ++s) {
            out.values.push_back(forecast.samples[(v * samples + s) * horizon + h]);
          }
        }
      }
    }
  }
  return out;
}

HttpResponse write_answer(const std::string& model, const std::string& id,
                          const std::vector<RequestedOutput>& outputs, std::size_t num_levels,
                          const ForecastAnswer& answer) {
  io::JsonWriter json(io::JsonLayout::compact);
  json.begin_object().field("model_name", model).field("model_version", "1");
  if (!id.empty()) json.field("id", id);
  json.key("outputs").begin_array();
  std::string binary;
  for (const RequestedOutput& output : outputs) {
    const OutputTensor tensor = make_output(output.name, answer, num_levels);
    json.begin_object().field("name", output.name).field("datatype", "FP32");
    json.key("shape").begin_array();
    for (const std::size_t size : tensor.shape) json.value(static_cast<std::uint64_t>(size));
    json.end_array();
    if (output.binary) {
      const std::size_t bytes = tensor.values.size() * sizeof(float);
      json.key("parameters").begin_object();
      json.field("binary_data_size", static_cast<std::uint64_t>(bytes)).end_object();
      binary.append(reinterpret_cast<const char*>(tensor.values.data()), bytes);
    } else {
      json.key("data");
      write_values(json, tensor.values.data(), tensor.values.size());
    }
    json.end_object();
  }
  json.end_array().end_object();
  HttpResponse response = json_response(json);
  const bool any = std::any_of(outputs.begin(), outputs.end(),
                               [](const RequestedOutput& output) { return output.binary; });
  if (any) {
    response.headers.push_back(
        {std::string(kTensorHeaderLength), fmt::format("{}", response.body.size())});
    response.content_type = "application/octet-stream";
    response.body += binary;
  }
  return response;
}

void read_parameters(const Json& value, const RequestLimits& limits, PreparedRequest& prepared,
                     bool& binary) {
  Fields fields(value, "parameters");
  take_options(fields, limits, prepared.options);
  if (const Json* flag = fields.take("binary_data_output")) {
    binary = flag_of(*flag, "parameters.binary_data_output");
  }
  if (const Json* time = fields.take("timeout")) {  // microseconds, as Triton has it
    const std::int64_t microseconds =
        whole_number(*time, "parameters.timeout", 0, std::int64_t{1} << 50);
    if (microseconds > 0) prepared.timeout = std::chrono::milliseconds((microseconds + 999) / 1000);
  }
  // Parameters of Triton's clients without a meaning here.
  for (const char* name : {"sequence_id", "sequence_start", "sequence_end", "priority"}) {
    fields.ignore(name);
  }
  fields.finish();
}

// Splits the tensors [batch, variates, time] into one series per batch entry.
void fill_series(const InputTensor& target, const InputTensor* mask, const InputTensor* ids,
                 PreparedRequest& prepared) {
  const std::vector<float> values = floats_of(target);
  const std::size_t variates = target.shape[1], length = target.shape[2];
  std::vector<std::uint8_t> flags;
  std::vector<std::int64_t> groups;
  if (mask != nullptr) {
    require_shape(*mask, target.shape);
    flags = flags_of(*mask);
  }
  if (ids != nullptr) {
    require_shape(*ids, std::span(target.shape).first(2));
    groups = integers_of(*ids);
  }
  const std::size_t size = variates * length;
  for (std::size_t b = 0; b < target.shape[0]; ++b) {
    Series& series = prepared.series.emplace_back();
    series.id = fmt::format("{}", b);
    series.num_variates = static_cast<int>(variates);
    const auto part = [b](const auto& all, std::size_t count, auto& to) {
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(b * count);
      to.assign(from, from + static_cast<std::ptrdiff_t>(count));
    };
    part(values, size, series.values);
    if (!flags.empty()) part(flags, size, series.mask);
    if (!groups.empty()) part(groups, variates, series.group_ids);
    if (variates == 1 && flags.empty()) drop_leading_missing(series.values);
  }
}

}  // namespace

PreparedRequest prepare_oip(std::string_view body, std::string_view header_length,
                            const std::string& model, const RequestLimits& limits) {
  std::size_t json_bytes = body.size();
  if (!header_length.empty()) {
    const auto [stop, error] = std::from_chars(
        header_length.data(), header_length.data() + header_length.size(), json_bytes);
    const bool whole = stop == header_length.data() + header_length.size();
    if (error != std::errc() || !whole || json_bytes > body.size()) {
      fail(ErrorCode::invalid_argument, "{} is {}, expected at most the {} bytes of the body",
           kTensorHeaderLength, quoted(header_length), body.size());
    }
  }
  const Json json = io::parse_json(body.substr(0, json_bytes), "the request");
  BinaryPart binary(body.substr(json_bytes));
  Fields fields(json, "");
  PreparedRequest prepared;
  std::string id;
  bool binary_output = false;
  prepared.options.seed = limits.seed;
  id = id_of(fields.take("id"), "id");
  if (const Json* value = fields.take("parameters")) {
    read_parameters(*value, limits, prepared, binary_output);
  }
  std::vector<RequestedOutput> outputs = read_outputs(fields.take("outputs"), binary_output);
  const std::vector<Json>& inputs = list_of(fields.need("inputs"), "inputs");
  fields.finish();
  if (inputs.size() > kMaxInputs) {
    fail(ErrorCode::invalid_argument, "inputs has {} entries, expected at most {}", inputs.size(),
         kMaxInputs);
  }
  std::vector<InputTensor> tensors;
  tensors.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    tensors.push_back(read_tensor(inputs[i], fmt::format("inputs[{}]", i), binary));
  }
  binary.finish();
  const auto find = [&](std::string_view name) -> const InputTensor* {
    const InputTensor* found = nullptr;
    for (const InputTensor& tensor : tensors) {
      if (tensor.name != name) continue;
      if (found != nullptr) {
        fail(ErrorCode::invalid_argument, "the input {} appears twice, expected once", name);
      }
      found = &tensor;
    }
    return found;
  };
  for (const InputTensor& tensor : tensors) {
    if (tensor.name == "target" || tensor.name == "target_mask" || tensor.name == "series_ids") {
      continue;
    }
    fail(ErrorCode::invalid_argument,
         "there is no input {}, expected target, target_mask or series_ids", quoted(tensor.name));
  }
  const InputTensor* target = find("target");
  if (target == nullptr) {
    fail(ErrorCode::invalid_argument,
         "the input \"target\" is missing, expected FP32 [batch, "
         "variates, time]");
  }
  if (target->shape.size() != 3 || target->shape[0] > limits.max_series ||
      target->shape[1] > limits.max_series) {
    fail(ErrorCode::invalid_argument,
         "the input \"target\" has shape [{}], expected [batch, variates, time] of at most {} "
         "series",
         fmt::join(target->shape, ", "), limits.max_series);
  }
  prepared.options.keep_samples =
      std::any_of(outputs.begin(), outputs.end(),
                  [](const RequestedOutput& item) { return item.name == "samples"; });
  const std::vector<SeriesShape> shapes(
      target->shape[0], {.num_variates = target->shape[1], .length = target->shape[2]});
  prepared.bytes_too_large_here = check_size(limits, shapes, prepared.options);
  if (prepared.bytes_too_large_here > 0) return prepared;
  fill_series(*target, find("target_mask"), find("series_ids"), prepared);
  prepared.write_answer = [model, id, outputs = std::move(outputs),
                           num_levels =
                               prepared.options.quantiles.size()](const ForecastAnswer& answer) {
    return write_answer(model, id, outputs, num_levels, answer);
  };
  return prepared;
}

std::string oip_server_metadata() {
  io::JsonWriter json(io::JsonLayout::compact);
  json.begin_object().field("name", "toto").field("version", version());
  json.key("extensions").begin_array().value("binary_tensor_data").end_array().end_object();
  return json.take();
}

std::string oip_model_metadata(const std::string& model) {
  io::JsonWriter json(io::JsonLayout::compact);
  json.begin_object().field("name", model).field("platform", "toto.cpp");
  json.key("versions").begin_array().value("1").end_array();
  const auto tensor = [&json](std::string_view name, std::string_view type, int rank) {
    json.begin_object().field("name", name).field("datatype", type).key("shape").begin_array();
    for (int i = 0; i < rank; ++i) json.value(-1);
    json.end_array().end_object();
  };
  json.key("inputs").begin_array();
  tensor("target", "FP32", 3);
  tensor("target_mask", "BOOL", 3);
  tensor("series_ids", "INT64", 2);
  json.end_array().key("outputs").begin_array();
  tensor("mean", "FP32", 3);
  tensor("quantiles", "FP32", 4);
  tensor("samples", "FP32", 4);
  json.end_array().end_object();
  return json.take();
}

}  // namespace toto::server
