#!/usr/bin/env bash
# Formatting, layers, words, file sizes and clang-tidy over the whole tree; each file is compiled by itself.
set -euo pipefail
mapfile -t sources < <(git ls-files -co --exclude-standard '*.cc' '*.h' '*.inl')
clang-format-19 --dry-run --Werror "${sources[@]}"
python3 tools/check_layers.py
python3 tools/check_words.py --self-test
python3 tools/check_words.py
python3 tools/check_links.py
long=$(wc -l "${sources[@]}" | awk '$1 > 600 && $2 != "total" {print $2 " (" $1 " lines)"}')
[ -z "$long" ] || { echo "error: over 600 lines: $long" >&2; exit 1; }
# The binding needs the headers of nanobind, which the package's build also gets from Python's registry.
tools/setup.sh python
[ -x build-tidy/venv/bin/pip ] || python3 -m venv build-tidy/venv
build-tidy/venv/bin/pip install --quiet --disable-pip-version-check 'nanobind>=2.4'
cmake -S . -B build-tidy -G Ninja -DTOTO_BUILD_PYTHON=ON -DPython_EXECUTABLE="$PWD/build-tidy/venv/bin/python" -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DTOTO_BUILD_BENCH=ON -DTOTO_UNITY=OFF >/dev/null  # a command for each file
printf '%s\n' "${sources[@]}" | grep -E '^(src|cli|server|compile_log|python|tests)/.*\.cc$|^bench/(speed_gate|time_gate|peaks)\.cc$' | xargs python3 tools/tidy.py build-tidy
echo "lint: clean"
