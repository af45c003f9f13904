// The style sheets and scripts of src/report/web/, embedded at build time.
#pragma once

#include <span>

#include "base/embedded_file.h"

namespace toto::report {

std::span<const EmbeddedFile> report_files();

}  // namespace toto::report
