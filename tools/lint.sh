#!/usr/bin/env bash
# Formatting, layers, file sizes and clang-tidy over the whole tree.
set -euo pipefail
mapfile -t sources < <(git ls-files -co --exclude-standard '*.cc' '*.h' '*.inl')
clang-format-19 --dry-run --Werror "${sources[@]}"
python3 tools/check_layers.py
long=$(wc -l "${sources[@]}" | awk '$1 > 600 && $2 != "total" {print $2 " (" $1 " lines)"}')
[ -z "$long" ] || { echo "error: over 600 lines: $long" >&2; exit 1; }
cmake -S . -B build-tidy -G Ninja -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DTOTO_BUILD_BENCH=ON >/dev/null  # a command for each file
printf '%s\n' "${sources[@]}" | grep -E '^(src|cli|server)/.*\.cc$|^bench/(speed_gate|peaks)\.cc$' | xargs python3 tools/tidy.py build-tidy
echo "lint: clean"
