#!/usr/bin/env bash
# The Python package under AddressSanitizer and UndefinedBehaviorSanitizer: check_python_asan.sh BUILD_FOLDER,
# whose libtoto.a was compiled with them. The interpreter is not, so their runtime is loaded before it, its
# own allocator is off, and leaks are not checked: the interpreter leaves much allocated on purpose.
set -euo pipefail
build=$(realpath "$1")
work=$build/python
package=$work/package/totocpp

tools/setup.sh python
[ -x "$work/venv/bin/pip" ] || python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check 'nanobind>=2.4' numpy pandas
cmake -S . -B "$work/cmake" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER=clang++-19 \
  -DTOTO_SANITIZE=address,undefined -DTOTO_BUILD_PYTHON=ON -DTOTO_BUILD_TESTS=OFF -DTOTO_LIBRARY="$build/libtoto.a" \
  -DPython_EXECUTABLE="$work/venv/bin/python" >/dev/null
cmake --build "$work/cmake" --target _native

# The package is assembled without the wheel, whose stubs would be made by importing the module.
rm -rf "$work/package"
mkdir -p "$package/models"
cp python/totocpp/* "$package"
cp "$work"/cmake/python/_native*.so "$package"
cp -r models/toto-mini "$package/models"

cd tests/python
export PYTHONPATH=$work/package PYTHONDONTWRITEBYTECODE=1 PYTHONMALLOC=malloc XDG_CACHE_HOME=$work/cache
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1
unset TOTO_COMMAND  # it has its own sanitizer runtime
LD_PRELOAD=$(clang++-19 -print-file-name=libclang_rt.asan-x86_64.so) "$work/venv/bin/python" -m unittest \
  engine_test forecaster_test pipeline_test session_test backtest_test hub_test process_test
