#!/usr/bin/env bash
# Installs the Debian packages that a job needs, if any is missing: setup.sh build|dev|bench|python|browser
# As root or with sudo; otherwise it prints the exact list and stops.
set -euo pipefail

build=(g++ cmake ninja-build make libsimdjson-dev libfmt-dev libcli11-dev libboost-dev libssl-dev zlib1g-dev libzstd-dev libgtest-dev python3)
bench=(libbenchmark-dev libopenblas-dev libdnnl-dev)
python=(python3-dev python3-venv)
browser=(chromium)  # tests of pages are skipped without it
dev=(clang-19 lld-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev)
# A python3 that is not Debian's has its own headers.
headers='import ensurepip, os, sys, sysconfig, venv; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))'
! python3 -c "$headers" 2>/dev/null || python=()

case "${1:-build}" in
  build) packages=("${build[@]}") ;;
  dev) packages=("${build[@]}" "${dev[@]}") ;;
  bench) packages=("${build[@]}" "${bench[@]}") ;;
  python) packages=("${build[@]}" "${python[@]}") ;;
  browser) packages=("${browser[@]}") ;;
  *) echo "usage: $0 build|dev|bench|python|browser" >&2; exit 2 ;;
esac

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -eq 0 ]; then
  as_root=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  as_root=(sudo)
else
  echo "error: these packages are missing and only root can install them; run:" >&2
  echo "  apt-get install ${missing[*]}" >&2
  exit 1
fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# Another installation may hold the lock: wait up to 10 minutes for it.
install=("${as_root[@]}" apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends "${missing[@]}")
# The package lists may be empty or stale: refresh them only if the first try fails.
"${install[@]}" >/dev/null 2>&1 || { "${as_root[@]}" apt-get update -qq && "${install[@]}" >/dev/null; }
