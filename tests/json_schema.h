// The part of JSON Schema that the OpenAPI document uses: what does not fit is named by its place.
// A keyword that is not checked here is a complaint too, so that none is believed by mistake.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "io/json.h"
#include "toto/toto.h"

namespace toto::testing {

class JsonSchema {
 public:
  using Json = io::Json;
  // `document` is what "$ref": "#/..." refers to; both must outlive this.
  JsonSchema(const Json& document, const Json& schema) : document_(document), schema_(schema) {}

  // Empty if the value fits.
  std::string complaint(const Json& value) const { return check(schema_, value, "$"); }

  // "#/components/schemas/Error"
  static const Json& resolve(const Json& document, const Json* schema) {
    const Json* reference = schema->find("$ref");
    if (reference == nullptr) return *schema;
    const Json* found = &document;
    std::string_view rest = std::string_view(reference->string).substr(2);
    while (found != nullptr && !rest.empty()) {
      const std::string_view name = rest.substr(0, rest.find('/'));
      found = found->find(name);
      rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    }
    if (found == nullptr) throw Error(ErrorCode::not_found, reference->string);
    return *found;
  }

 private:
  static bool is_type(const Json& value, std::string_view type) {
    switch (value.kind) {
      case Json::Kind::null:
        return type == "null";
      case Json::Kind::boolean:
        return type == "boolean";
      case Json::Kind::integer:
        return type == "integer" || type == "number";
      case Json::Kind::real:
        return type == "number";
      case Json::Kind::string:
        return type == "string";
      case Json::Kind::array:
        return type == "array";
      case Json::Kind::object:
        return type == "object";
    }
    return false;
  }
  static std::string text(const Json& value) {
    io::JsonWriter writer(io::JsonLayout::compact);
    writer.value(value);
    return writer.take();
  }

  std::string check(const Json& given, const Json& value, const std::string& where) const {
    const Json& schema = resolve(document_, &given);
    for (const Json::Member& rule : schema.object) {
      std::string wrong = check_rule(schema, rule.first, rule.second, value, where);
      if (!wrong.empty()) return wrong;
    }
    return {};
  }

  std::string check_rule(const Json& schema, std::string_view name, const Json& rule,
                         const Json& value, const std::string& where) const {
    const auto wrong = [&](std::string_view what) {
      return fmt::format("{} is {}, expected {} {}", where, text(value).substr(0, 100), what,
                         text(rule).substr(0, 200));
    };
    const auto holds = [&](bool fits) { return fits ? std::string() : wrong(name); };
    if (name == "description" || name == "default") return {};
    if (name == "type") {
      const bool fits = rule.kind == Json::Kind::string
                            ? is_type(value, rule.string)
                            : std::any_of(rule.array.begin(), rule.array.end(),
                                          [&](const Json& t) { return is_type(value, t.string); });
      return holds(fits);
    }
    if (name == "enum") {
      return holds(std::any_of(rule.array.begin(), rule.array.end(),
                               [&](const Json& allowed) { return text(allowed) == text(value); }));
    }
    if (name == "oneOf") {
      return holds(std::count_if(rule.array.begin(), rule.array.end(), [&](const Json& option) {
                     return check(option, value, where).empty();
                   }) == 1);
    }
    if (name == "minimum") return holds(!value.is_number() || value.real >= rule.real);
    if (name == "maximum") return holds(!value.is_number() || value.real <= rule.real);
    if (name == "exclusiveMinimum") return holds(!value.is_number() || value.real > rule.real);
    if (name == "exclusiveMaximum") return holds(!value.is_number() || value.real < rule.real);
    const auto limit = static_cast<std::size_t>(rule.integer);
    const bool is_array = value.kind == Json::Kind::array;
    if (name == "minItems") return holds(!is_array || value.array.size() >= limit);
    if (name == "maxItems") return holds(!is_array || value.array.size() <= limit);
    if (name == "items") {
      for (std::size_t i = 0; i < value.array.size(); ++i) {
        std::string inner = check(rule, value.array[i], fmt::format("{}[{}]", where, i));
        if (!inner.empty()) return inner;
      }
      return {};
    }
    if (name == "required") {
      for (const Json& key : rule.array) {
        if (value.kind == Json::Kind::object && value.find(key.string) == nullptr) {
          return fmt::format("{} has no \"{}\"", where, key.string);
        }
      }
      return {};
    }
    if (name == "properties" || name == "additionalProperties") {
      return check_members(schema, name == "properties", rule, value, where);
    }
    return fmt::format("the schema of {} has {}, which this test does not check", where, name);
  }

  std::string check_members(const Json& schema, bool named, const Json& rule, const Json& value,
                            const std::string& where) const {
    const Json* properties = schema.find("properties");
    for (const Json::Member& member : value.object) {
      const Json* own = properties == nullptr ? nullptr : properties->find(member.first);
      if ((own != nullptr) != named) continue;
      const std::string place = fmt::format("{}.{}", where, member.first);
      if (!named && rule.kind == Json::Kind::boolean) {
        if (!rule.boolean) return place + " is not in the document";
        continue;
      }
      std::string inner = check(named ? *own : rule, member.second, place);
      if (!inner.empty()) return inner;
    }
    return {};
  }

  const Json& document_;
  const Json& schema_;
};

}  // namespace toto::testing
