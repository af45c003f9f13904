// Identifies weight files without reading them completely: hashing half a gigabyte would take
// longer than a warm start saves.
#pragma once

#include <string>

#include "io/safetensors.h"

namespace toto::cache {

struct ModelIdentity {
  std::string text;     // device, inode, size, times and sampled contents of every weight file
  bool settled = true;  // false: the files could change again without a change of their times
};

// Writing, replacing, touching or restoring a file changes its identity: a program can set back the
// modification time but not the change time. If a file has just changed, this waits until the next
// change would be visible, at most 20 ms.
ModelIdentity identify(const io::WeightFiles& files);

}  // namespace toto::cache
