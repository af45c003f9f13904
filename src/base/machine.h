// What this machine is.
#pragma once

#include <string>

namespace toto {

std::string cpu_name();  // as the system has it; "unknown CPU" where it says nothing

}  // namespace toto
