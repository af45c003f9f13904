#!/usr/bin/env bash
# Runs tests/serving/clients_test.py with unmodified clients from the package index, Nixtla's in both versions:
#   python_clients.sh BUILD_FOLDER TOTO
# Their virtual environments stay in the build folder. Exit 77 (skipped) if they cannot be installed.
set -euo pipefail
build=$1 command=$2
here=$(cd "$(dirname "$0")/.." && pwd)
for version in 0.8 0.9; do
  environment="$build/clients-$version"
  wanted=("tritonclient[http]" "nixtla==$version.*")
  if [ ! -f "$environment/installed" ]; then
    rm -rf "$environment"
    if ! { python3 -m venv "$environment" && "$environment/bin/pip" install -q --retries 1 --timeout 20 "${wanted[@]}"; } >"$build/clients.log" 2>&1; then
      echo "skipped: ${wanted[*]} cannot be installed here; is there a network?" >&2
      exit 77
    fi
    touch "$environment/installed"
  fi
  echo "nixtla $version"
  "$environment/bin/python" "$here/tests/serving/clients_test.py" "$command"
done
