// The settings of `toto serve`: one row each. Variables are TOTO_SERVE_NAME, keys of the config
// file serve-name.
#pragma once

#include <span>
#include <string>

#include "http.h"
#include "service_state.h"
#include "settings/setting.h"

namespace toto::server {

// The defaults are those of HttpOptions and ServiceOptions; only the shadow's rate is set here.
struct ServeSettings {
  HttpOptions http = {};
  ServiceOptions service = {.shadow = {.rate = 0.01}};
  std::string api_key_file = {};
};

using ServeField = settings::Field<ServeSettings>;
std::span<const ServeField> serve_fields();

}  // namespace toto::server
