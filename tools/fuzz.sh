#!/usr/bin/env bash
# Builds and runs every fuzz target, one per core: fuzz.sh BUILD_FOLDER SECONDS. Readers of untrusted files
# get all of the time, the others a third. New findings stay in the build folder.
set -euo pipefail
export build=$1 most=$2
mapfile -t names < <(basename -s .cc tests/fuzz/fuzz_*.cc)
cmake --build "$build" --target "${names[@]}"

fuzz() {
  local name=$1 work="$build/corpus/$1" log="$build/$1.log" outcome=clean seconds=$(((most + 2) / 3))
  case $name in fuzz_safetensors | fuzz_config | fuzz_csv) seconds=$most ;; esac
  mkdir -p "$work"
  "$build/tests/$name" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$build/$name-" "$work" "tests/corpus/${name#fuzz_}" >"$log" 2>&1 || outcome=FAILED
  echo "$name: $outcome, $(sed -n 's/stat::number_of_executed_units: *//p' "$log") runs in $seconds s"
  [ $outcome = clean ] || { grep -E 'SUMMARY|ERROR' "$log"; return 1; }
}
export -f fuzz
printf '%s\n' "${names[@]}" | xargs -P "$(nproc)" -I{} bash -c 'fuzz {}' ||
  { echo "error: a fuzz target failed; see $build/fuzz_*.log" >&2; exit 1; }
