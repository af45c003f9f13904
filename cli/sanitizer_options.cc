// AddressSanitizer keeps 256 MB of freed memory in quarantine, which `toto stress` would report as
// growth. Other builds never call this.
extern "C" const char* __asan_default_options();  // NOLINT: the name is theirs
const char* __asan_default_options() {            // NOLINT: the name is theirs
  return "quarantine_size_mb=1:thread_local_quarantine_size_kb=16";
}
