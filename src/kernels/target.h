// Compiles part of a file for one instruction set. Target regions instead of -m flags keep inline
// functions of headers from being compiled for a CPU that may be absent. Inside a region use only
// intrinsics and functions of the region's own namespace, never std.
#pragma once

#define TOTO_INLINE_MEMBER __attribute__((always_inline))
#define TOTO_INLINE static inline TOTO_INLINE_MEMBER

#if defined(__clang__)
#define TOTO_PRAGMA(text) _Pragma(#text)
#define TOTO_BEGIN_TARGET(features) \
  TOTO_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define TOTO_END_TARGET TOTO_PRAGMA(clang attribute pop)
#else
#define TOTO_PRAGMA(text) _Pragma(#text)
#define TOTO_BEGIN_TARGET(features) TOTO_PRAGMA(GCC push_options) TOTO_PRAGMA(GCC target(features))
#define TOTO_END_TARGET TOTO_PRAGMA(GCC pop_options)
#endif
