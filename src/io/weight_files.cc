// The weights of a model folder: one file, or the shards listed by an index.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "io/atomic_file.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "io/sha256.h"

namespace toto::io {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSingleName = "model.safetensors";
constexpr std::string_view kIndexName = "model.safetensors.index.json";
constexpr std::size_t kMaxIndex = 100'000'000;  // bytes, as for a header
constexpr std::size_t kMaxFileName = 255;

// Keeps an untrusted index from naming files outside the folder or printing control characters.
bool is_plain_name(std::string_view name) {
  const auto is_odd = [](unsigned char c) {
    return c < 0x20 || c == 0x7F || c == '/' || c == '\\';
  };
  return !name.empty() && name.size() <= kMaxFileName && name != "." && name != ".." &&
         std::ranges::none_of(name, is_odd);
}

// The parsed index: which tensor is in which shard.
struct Index {
  std::string path;
  std::vector<std::string> shards;                           // in order of first mention
  std::map<std::string, std::size_t, std::less<>> shard_of;  // by tensor name
  std::optional<double> total_size;                          // bytes of tensor data
};

// Shards are numbered in the order of their first mention, which is the order of the hash.
Index read_index(const std::string& path) {
  const Json root = parse_json(read_file(path, kMaxIndex), path);
  const Json* map = root.find("weight_map");
  if (map == nullptr || map->kind != Json::Kind::object || map->object.empty()) {
    fail(ErrorCode::corrupt_file, "{}: has no weight_map, expected an object of file names", path);
  }
  Index index{.path = path, .shards = {}, .shard_of = {}, .total_size = {}};
  std::map<std::string, std::size_t, std::less<>> numbers;  // of the shards
  for (const auto& [tensor, file] : map->object) {
    if (file.kind != Json::Kind::string || !is_plain_name(file.string)) {
      fail(ErrorCode::corrupt_file,
           "{}: tensor {}: its file is {}, expected the plain name of a file in the same folder",
           path, quoted(tensor), described(file));
    }
    const auto [number, is_new] = numbers.try_emplace(file.string, index.shards.size());
    if (is_new) index.shards.push_back(file.string);
    index.shard_of.emplace(tensor, number->second);
  }
  const Json* metadata = root.find("metadata");
  const Json* total = metadata != nullptr ? metadata->find("total_size") : nullptr;
  if (total != nullptr) {
    if (!total->is_number()) {
      fail(ErrorCode::corrupt_file, "{}: its total_size is not a number", path);
    }
    index.total_size = total->real;
  }
  return index;
}

// Every tensor must be in the shard the index names, and the index must not name others.
void check_shards(const Index& index, const std::vector<Safetensors>& files) {
  std::size_t num_tensors = 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const TensorInfo& tensor : files[i].tensors()) {
      const auto entry = index.shard_of.find(tensor.name);
      if (entry == index.shard_of.end()) {
        fail(ErrorCode::corrupt_file, "{}: tensor {}: {} does not name it", files[i].path(),
             quoted(tensor.name), index.path);
      }
      if (entry->second != i) {
        fail(ErrorCode::corrupt_file, "{}: tensor {}: {} says it is in {}", files[i].path(),
             quoted(tensor.name), index.path, index.shards[entry->second]);
      }
      ++num_tensors;
      bytes += tensor.bytes;
    }
  }
  if (num_tensors != index.shard_of.size()) {
    for (const auto& [name, shard] : index.shard_of) {
      if (files[shard].find(name) != nullptr) continue;
      fail(ErrorCode::corrupt_file, "{}: tensor {}: {} does not hold it", index.path, quoted(name),
           files[shard].path());
    }
  }
  if (index.total_size && *index.total_size != static_cast<double>(bytes)) {
    fail(ErrorCode::corrupt_file, "{}: its total_size is {}, but the shards hold {} bytes",
         index.path, *index.total_size, bytes);
  }
}

}  // namespace

WeightFiles WeightFiles::open(const std::string& folder) {
  const auto path_of = [&](std::string_view name) { return (fs::path(folder) / name).string(); };
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    fail(ErrorCode::not_found, "{}: no such folder; expected one that holds {}", folder,
         kSingleName);
  }
  WeightFiles weights;
  if (fs::exists(path_of(kSingleName), error)) {
    weights.files_.push_back(Safetensors::open(path_of(kSingleName)));
    return weights;
  }
  if (!fs::exists(path_of(kIndexName), error)) {
    fail(ErrorCode::not_found, "{}: holds neither {} nor {}; check the model's folder", folder,
         kSingleName, kIndexName);
  }
  const Index index = read_index(path_of(kIndexName));
  for (const std::string& shard : index.shards) {
    if (!fs::exists(path_of(shard), error)) {
      fail(ErrorCode::not_found, "{}: no such file, but {} names it; the download is incomplete",
           path_of(shard), kIndexName);
    }
    weights.files_.push_back(Safetensors::open(path_of(shard)));
  }
  check_shards(index, weights.files_);
  return weights;
}

std::vector<WeightFiles::StoredTensor> WeightFiles::entries() const {
  std::vector<StoredTensor> entries;
  for (const Safetensors& file : files_) {
    for (const TensorInfo& tensor : file.tensors()) {
      entries.push_back({.file = &file, .tensor = &tensor});
    }
  }
  return entries;
}

std::uint64_t WeightFiles::total_bytes() const {
  std::uint64_t bytes = 0;
  for (const Safetensors& file : files_) bytes += file.file_size();
  return bytes;
}

std::string WeightFiles::sha256() const {
  Sha256 hash;
  for (const Safetensors& file : files_) file.hash_into(hash);
  return hash.hex_digest();
}

const std::string* WeightFiles::metadata(std::string_view key) const {
  return files_.front().metadata(key);
}

}  // namespace toto::io
