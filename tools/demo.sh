#!/usr/bin/env bash
# Forecasts real data with the bundled model and draws charts into demo/: demo.sh [COMMAND]
# Runs from the root of the repository; COMMAND is the toto to use, build/toto by default.
set -euo pipefail
toto=${1:-build/toto}
data=examples/data

echo "AAPL, daily close, 64 business days ahead"
"$toto" forecast $data/AAPL.csv --columns close --horizon 64 --plot demo/aapl.svg
"$toto" forecast $data/AAPL.csv --columns close --horizon 64 --plot demo/aapl.html \
  --output demo/aapl.csv --json demo/aapl.json
echo
echo "electricity demand, 48 hours ahead"
"$toto" forecast $data/electricity.csv --horizon 48 --output demo/electricity.csv --plot demo/electricity.html
echo
echo "air and weather in Beijing, five variates that look at each other, 24 hours ahead"
"$toto" forecast $data/beijing_air.csv --multivariate --horizon 24 --output demo/beijing_air.csv \
  --plot demo/beijing_air.html
echo
echo "look at them in a browser: xdg-open demo/aapl.html"
echo "the numbers: column -s, -t demo/aapl.csv | less -S"
