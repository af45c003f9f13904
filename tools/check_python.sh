#!/usr/bin/env bash
# The Python package as a user gets it: check_python.sh BUILD_FOLDER, which holds libtoto.a and toto.
# Builds the wheel, installs it in an empty virtual environment where there is no compiler, runs the
# tests with NumPy alone, then those of the adapters, those with PyTorch if TOTO_TORCH_PYTHON names a
# Python that has it, and checks the types.
set -euo pipefail
build=$(realpath "$1")
work=$build/python
source=$PWD

tools/setup.sh python

# The library is linked as it was built and tested; `pip install .` compiles it.
rm -rf "$work/wheel" "$work/venv"
mkdir -p "$work/wheel"
[ -x "$work/builder/bin/pip" ] || python3 -m venv "$work/builder"
"$work/builder/bin/pip" wheel . --quiet --no-deps --wheel-dir "$work/wheel" \
  --config-settings build-dir="$work/cmake" --config-settings cmake.define.TOTO_LIBRARY="$build/libtoto.a" \
  --config-settings build.targets="_native;_native_stub;_native_linear"
wheel=$(ls "$work"/wheel/*.whl)

python3 -m venv "$work/venv"
export TOTO_COMMAND=$build/toto WHEEL=$wheel PYTHONDONTWRITEBYTECODE=1
export XDG_CACHE_HOME=$work/cache  # the user's cache is neither read nor changed
unset PYTHONPATH
in_venv() { env PATH="$work/venv/bin" "$@"; }
in_venv pip install --quiet --disable-pip-version-check "$wheel"
! in_venv sh -c true 2>/dev/null || { echo "error: there is more than Python on the path" >&2; exit 1; }
echo "python: $(basename "$wheel"), $(stat -c %s "$wheel") bytes"

cd tests/python
in_venv python -W error::DeprecationWarning:totocpp -m unittest discover -p '*_test.py'

# The package with a module that has one more architecture (tests/linear_patches).
rm -rf "$work/linear"
mkdir -p "$work/linear"
cp -r "$work"/venv/lib/python3*/site-packages/totocpp "$work/linear"
cp "$work"/cmake/python/linear/_native.* "$work/linear/totocpp"
PYTHONPATH="$work/linear:$PWD" "$work/venv/bin/python" ../linear_patches/linear_python_test.py

# The packages that the adapters serve. In these tests a missing module is a failure.
python=$work/venv/bin/python
"$python" -m pip install --quiet --disable-pip-version-check "$wheel[pandas,gluonts,nixtla,ray,fugue]" matplotlib mypy
TOTOCPP_EXTRAS=required "$python" -m unittest adapters_test backtest_test docs_test distributed_test

# PyTorch is too much to download for every run. It is used from an interpreter that has it: nothing is installed there.
if [ -n "${TOTO_TORCH_PYTHON:-}" ]; then
  rm -rf "$work/torch"
  "$TOTO_TORCH_PYTHON" -m venv "$work/torch"
  torch=$work/torch/bin/python
  "$TOTO_TORCH_PYTHON" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
    >"$("$torch" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/lender.pth"
  "$torch" -m pip install --quiet --disable-pip-version-check --no-deps --ignore-installed "$wheel"
  TOTOCPP_EXTRAS=required "$torch" -m unittest torch_test
else
  echo "python: torch_test skipped; TOTO_TORCH_PYTHON names an interpreter that has torch"
fi

cd "$work"
"$python" -m mypy --config-file "$source/pyproject.toml" --cache-dir "$work/mypy"
