// Finds weights that were lost: zeros cause no error, and all modes agree on them.
#pragma once

#include <string>
#include <vector>

namespace toto::validate {

// The names of a model's matrices that are all zeros. Errors as for reading the model.
std::vector<std::string> zero_matrices(const std::string& folder);

// One sentence that names them, or nothing.
std::vector<std::string> zero_warnings(const std::string& folder);

}  // namespace toto::validate
