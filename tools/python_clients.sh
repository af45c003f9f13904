#!/usr/bin/env bash
# Runs tests/serving/clients_test.py with the clients people use, unmodified, from the package index:
#   python_clients.sh BUILD_FOLDER TOTO
# Their virtual environment stays in the build folder. Exit 77 (skipped) if they cannot be installed.
set -euo pipefail
build=$1 command=$2
here=$(cd "$(dirname "$0")/.." && pwd)
environment="$build/clients"
wanted=("tritonclient[http]" "nixtla==0.8.*")
if [ ! -f "$environment/installed" ]; then
  rm -rf "$environment"
  if ! { python3 -m venv "$environment" && "$environment/bin/pip" install -q "${wanted[@]}"; }; then
    echo "skipped: ${wanted[*]} cannot be installed here; is there a network?" >&2
    exit 77
  fi
  touch "$environment/installed"
fi
exec "$environment/bin/python" "$here/tests/serving/clients_test.py" "$command"
