// The request of one `toto serve`: its flags, variables and lines of the config file, checked
// before a model is loaded.
#pragma once

#include "cli/arguments.h"
#include "cli/settings/settings.h"
#include "server/serve_settings.h"

namespace toto::cli {

void add_serve_options(Command& command, Flags& flags);

struct ServeRequest : server::ServeSettings {  // without the parts that need a model
  Settings settings;
};

// Error(invalid_argument) naming the flag or variable; Error(not_found, corrupt_file) for a file
// that cannot be read.
ServeRequest make_serve_request(const Flags& flags);

}  // namespace toto::cli
