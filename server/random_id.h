// Names that only the client they are told to knows.
#pragma once

#include <string>

namespace toto::server {

std::string random_id();  // 128 random bits as 32 hexadecimal digits

}  // namespace toto::server
