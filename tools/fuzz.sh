#!/usr/bin/env bash
# Builds and runs every fuzz target: fuzz.sh BUILD_FOLDER SECONDS. New findings stay in the build folder.
set -euo pipefail
build=$1 seconds=$2
failed=0
for source in tests/fuzz_*.cc; do
  name=$(basename "$source" .cc)
  cmake --build "$build" --target "$name"
  work="$build/corpus/$name"
  mkdir -p "$work"
  echo "== $name, $seconds s"
  "$build/tests/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$build/$name-" "$work" "tests/corpus/${name#fuzz_}" >"$build/$name.log" 2>&1 || failed=1
  tail -n 12 "$build/$name.log" | grep -E 'stat::(number_of_executed_units|peak_rss_mb)|SUMMARY|ERROR' || true
done
[ $failed -eq 0 ] || { echo "error: a fuzz target failed; see $build/fuzz_*.log" >&2; exit 1; }
