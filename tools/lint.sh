#!/usr/bin/env bash
# Formatting, layers, file sizes and clang-tidy over the whole tree.
set -euo pipefail
mapfile -t sources < <(git ls-files -co --exclude-standard '*.cc' '*.h' '*.inl')
clang-format-19 --dry-run --Werror "${sources[@]}"
python3 tools/check_layers.py
long=$(wc -l "${sources[@]}" | awk '$1 > 600 && $2 != "total" {print $2 " (" $1 " lines)"}')
[ -z "$long" ] || { echo "error: over 600 lines: $long" >&2; exit 1; }
cmake --preset asan -DTOTO_BUILD_BENCH=ON >/dev/null  # clang's own compile commands
printf '%s\n' "${sources[@]}" | grep -E '^(src|cli|server)/.*\.cc$|^bench/(speed_gate|peaks)\.cc$' | xargs python3 tools/tidy.py build-asan
echo "lint: clean"
