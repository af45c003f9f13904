#!/usr/bin/env bash
# Tests of the scripts, each kind in a separate virtual environment, which is kept:
# check_scripts.sh BUILD_FOLDER results|train|train2. `results` also has quantstats read a backtest of the
# built command; `train` also makes a golden with PyTorch, which must hold, and must fail for other
# weights; `train2` tests the training of Toto 2.0.
set -euo pipefail
build=$(realpath "$1")
case "${2:-}" in
  results) packages=(numpy==2.4.6 pandas==3.1.1 quantstats==0.0.86) ;;
  train) packages=(toto-ts==0.2.0) ;;  # its dependencies include scipy
  train2) packages=(torch scipy==1.17.1 safetensors einops jaxtyping pandas huggingface_hub gluonts lightning)
    # toto-2 itself requires more than its modules need, and a newer Python.
    bare=(toto-2==2.0.0 dd-unit-scaling==0.1.0 unit-scaling==0.3.5 docstring-parser tabulate) ;;
  *) echo "usage: $0 BUILD_FOLDER results|train|train2" >&2; exit 2 ;;
esac

python3 -c 'import ensurepip, venv' 2>/dev/null || tools/setup.sh python
python=$build/scripts-$2/bin/python
if [ ! -f "$build/scripts-$2/ready" ]; then
  python3 -m venv --clear "$build/scripts-$2"
  "$python" -m pip install --quiet --disable-pip-version-check "${packages[@]}"
  [ -z "${bare+set}" ] || "$python" -m pip install --quiet --no-deps --ignore-requires-python "${bare[@]}"
  touch "$build/scripts-$2/ready"
fi

run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
if [ "$2" = train2 ]; then
  "$python" -W ignore -m unittest tests/tools/train_toto2_test.py
  exit
fi
if [ "$2" = train ]; then
  "$python" -W ignore -m unittest tests/tools/train_network_test.py tests/tools/train_run_test.py
  "$python" -W ignore tools/dump_golden.py --model models/toto-mini --output "$run/golden" --toto "$build/toto"
  "$build/toto" make-model "$run/other" --config models/toto-mini/config.json --seed 1
  status=0
  "$build/toto" verify --golden "$run/golden" --golden-only --model "$run/other" >/dev/null || status=$?
  [ $status -eq 1 ] || { echo "error: a golden of other weights held (exit code $status)" >&2; exit 1; }
  exit
fi
"$python" -m unittest tests/tools/results_test.py
"$build/toto" backtest examples/data/AAPL.csv examples/data/BTCUSD.csv --windows 60 --no-lag-test --no-cache \
  --output-dir "$run" >/dev/null 2>&1
"$python" tests/backtest/backtest_quantstats.py "$run"
