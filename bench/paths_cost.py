#!/usr/bin/env python3
"""What averaging the paths' distributions costs, as a share of the decoding itself.

    python3 bench/paths_cost.py --toto build/toto --config base

Makes a model of random weights and forecasts one series with --samples N (one draw per path) and --paths N (averaged
distributions), and once without any path. CPU time of the process, the least of several runs in turn, so that other work
on the machine does not count. Writes bench/results/paths_cost.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from provenance import commit, cpu_name  # noqa: E402


def cpu_seconds(words: list[str]) -> float:
    """User and system time of one run."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(words)} failed with exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toto", default=str(ROOT / "build/toto"))
    parser.add_argument("--config", default="base", help="preset of toto make-model (default base)")
    parser.add_argument("--patch", type=int, default=64, help="the model's patch: nothing is decoded up to it")
    parser.add_argument("--horizon", type=int, default=128)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--paths", type=int, default=256)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--table", type=Path, default=ROOT / "bench/results/paths_cost.md")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/model"
        subprocess.run([asked.toto, "make-model", model, "--config", asked.config], check=True, capture_output=True)
        data = Path(folder) / "walk.csv"
        level, rows = 100.0, ["step,value"]
        for i in range(asked.context):
            level += ((i * 7919) % 101 - 50) / 50
            rows.append(f"{i},{level:.3f}")
        data.write_text("\n".join(rows) + "\n")

        def words(horizon: int, *how: str) -> list[str]:
            common = ["--threads", "1", "--cache-dir", f"{folder}/cache", "--json", "-"]
            return [asked.toto, "forecast", str(data), "--model", model, "--horizon", str(horizon), *common, *how]

        variants = {
            "none": words(asked.patch),
            "samples": words(asked.horizon, "--samples", str(asked.paths)),
            "paths": words(asked.horizon, "--paths", str(asked.paths)),
        }
        cpu_seconds(variants["none"])  # packs the weights
        best = {name: min(cpu_seconds(line) for _ in range(1)) for name, line in variants.items()}
        for _ in range(asked.runs - 1):
            for name, line in variants.items():
                best[name] = min(best[name], cpu_seconds(line))
    decode, joined = best["samples"] - best["none"], best["paths"] - best["samples"]
    lines = [
        "# Cost of averaging distributions",
        "",
        f"`toto make-model --config {asked.config}`, one series of {asked.context} points, horizon {asked.horizon}, {asked.paths} paths, one thread. CPU seconds of",
        f"the process, least of {asked.runs} runs in turn. Commit {commit()}, {cpu_name()}.",
        f"Made by `python3 bench/paths_cost.py --config {asked.config} --patch {asked.patch} --horizon {asked.horizon}`.",
        "",
        "| | CPU seconds |",
        "|---|---|",
        f"| horizon {asked.patch}: nothing decoded | {best['none']:.2f} |",
        f"| `--samples {asked.paths}`: one draw per path | {best['samples']:.2f} |",
        f"| `--paths {asked.paths}`: averaged distributions | {best['paths']:.2f} |",
        f"| decoding | {decode:.2f} |",
        f"| averaging, beyond the draws | {joined:.2f}, {100 * joined / decode:.1f} % of the decoding |",
        "",
    ]
    asked.table.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
