// Weights that were lost without a trace: a network computes with zeros as readily as with anything
// else, every mode alike.
#pragma once

#include <string>
#include <vector>

namespace toto::validate {

// The names of the matrices of a model folder that hold nothing but zeros. Errors are those of
// reading the model.
std::vector<std::string> zero_matrices(const std::string& folder);

// A sentence about them, or none.
std::vector<std::string> zero_warnings(const std::string& folder);

}  // namespace toto::validate
