// Under AddressSanitizer freed memory waits in quarantine, 256 MB of it, and would be taken for
// memory that is held: `toto stress` looks for growth. Elsewhere nobody calls this.
extern "C" const char* __asan_default_options();  // NOLINT: the name is theirs
const char* __asan_default_options() {            // NOLINT: the name is theirs
  return "quarantine_size_mb=1:thread_local_quarantine_size_kb=16";
}
