#!/usr/bin/env bash
# Formatting, layers, file sizes and clang-tidy over the whole tree.
set -euo pipefail
mapfile -t sources < <(git ls-files -co --exclude-standard '*.cc' '*.h' '*.inl')
clang-format-19 --dry-run --Werror "${sources[@]}"
python3 tools/check_layers.py
long=$(wc -l "${sources[@]}" | awk '$1 > 600 && $2 != "total" {print $2 " (" $1 " lines)"}')
[ -z "$long" ] || { echo "error: over 600 lines: $long" >&2; exit 1; }
cmake --preset asan >/dev/null  # clang's own compile commands
printf '%s\n' "${sources[@]}" | grep -E '^(src|cli|bench)/.*\.cc$' |
  xargs -P "$(nproc)" -n 4 clang-tidy-19 -p build-asan --quiet 2>&1 |
  { grep -vE 'warnings? generated|Suppressed|Use -header-filter|^$' || true; } | tee build-asan/tidy.log
! grep -qE '(error|warning):' build-asan/tidy.log
echo "lint: clean"
