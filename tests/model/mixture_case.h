// A mixture of Student-T distributions that a test writes down.
#pragma once

#include <limits>
#include <vector>

#include "model/mixture_cdf.h"
#include "model/student_mixture.h"

namespace toto {

// Owns the memory of the StudentMixture that it hands out; the latest call's is valid.
struct MixtureCase {
  std::vector<double> df, loc, scale, logits;
  Affine affine;
  std::vector<double> workspace;

  StudentMixture mixture() {
    workspace.assign(StudentMixture::workspace_doubles(df.size()),
                     std::numeric_limits<double>::quiet_NaN());
    return StudentMixture(workspace, MixtureParameters{df, loc, scale, logits}, affine);
  }
  MixtureCdf exact() { return MixtureCdf(mixture()); }
};

}  // namespace toto
