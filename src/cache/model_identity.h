// Which weight files these are, without reading them whole: half a gigabyte would take longer than
// everything a warm start saves.
#pragma once

#include <string>

#include "io/safetensors.h"

namespace toto::cache {

struct ModelIdentity {
  std::string text;     // device, inode, size, times and sampled contents of every weight file
  bool settled = true;  // false: the files may change once more without changing their times
};

// Writing to a file, replacing, touching or restoring it changes its identity: even who sets the
// modification time back cannot set back the change time. Where a file has only just changed, it
// waits until the next change would show: 20 ms at most.
ModelIdentity identify(const io::WeightFiles& files);

}  // namespace toto::cache
