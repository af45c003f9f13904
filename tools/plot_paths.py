#!/usr/bin/env python3
"""The noise of bands beyond the first patch: one draw per path (--samples) against averaged distributions (--paths).

    python3 tools/plot_paths.py --toto build/toto

Forecasts one file with many seeds both ways, draws the 80 % bands of all of them into docs/images/paths.svg, and writes
how much the 0.1 quantile varies from seed to seed to bench/results/paths.md. No package is needed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
from pathlib import Path

from provenance import commit, cpu_name

ROOT = Path(__file__).resolve().parent.parent
WIDTH, HEIGHT, MARGIN, GAP = 460, 300, 46, 30


def forecasts(toto: str, data: Path, horizon: int, seeds: int, how: list[str]) -> list[dict]:
    """One entry of the answer's series per seed."""
    entries = []
    for seed in range(seeds):
        words = [toto, "forecast", str(data), "--horizon", str(horizon), "--seed", str(seed), "--json", "-", *how]
        answer = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        entries.append(json.loads(answer)["series"][0])
    return entries


def noise(entries: list[dict], level: str) -> list[float]:
    """Standard deviation over the seeds, per step."""
    return [statistics.stdev(values) for values in zip(*(entry["quantiles"][level] for entry in entries))]


def panel(entries: list[dict], exact: int, low: float, high: float, left: float, title: str) -> list[str]:
    steps = len(entries[0]["mean"])
    x = [left + MARGIN + (WIDTH - MARGIN) * i / (steps - 1) for i in range(steps)]

    def y(value: float) -> float:
        return MARGIN + (HEIGHT - 2 * MARGIN) * (high - value) / (high - low)

    parts = [f'<text x="{left + MARGIN}" y="20" class="title">{title}</text>']
    for i in range(5):
        value = low + (high - low) * i / 4
        parts.append(f'<line x1="{x[0]:.1f}" x2="{x[-1]:.1f}" y1="{y(value):.1f}" y2="{y(value):.1f}" class="grid"/>')
        parts.append(f'<text x="{x[0] - 6:.1f}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.0f}</text>')
    parts.append(f'<line x1="{x[exact - 1]:.1f}" x2="{x[exact - 1]:.1f}" y1="{MARGIN}" y2="{HEIGHT - MARGIN}" class="end"/>')
    parts.append(f'<text x="{x[exact - 1] - 4:.1f}" y="{HEIGHT - MARGIN + 16}" text-anchor="end">exact to step {exact}</text>')
    parts.append(f'<text x="{x[-1]:.1f}" y="{HEIGHT - MARGIN + 16}" text-anchor="end">step {steps}</text>')
    for entry in entries:
        for level in ("0.1", "0.9"):
            points = " ".join(f"{a:.1f},{y(b):.1f}" for a, b in zip(x, entry["quantiles"][level]))
            parts.append(f'<polyline points="{points}"/>')
    return parts


def picture(old: list[dict], new: list[dict], name: str, paths: int, shown: int) -> str:
    exact = new[0]["exact_steps"]
    values = [value for entry in old + new for level in ("0.1", "0.9") for value in entry["quantiles"][level]]
    low, high = min(values), max(values)
    width, height = 2 * WIDTH + GAP + 10, HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        f"<title>80 % bands of {name} for {shown} seeds: one draw of each of {paths} paths, and the average of their distributions</title>",
        "<style>text{font:12px sans-serif;fill:#444}.title{font-size:14px;fill:#111}.grid{stroke:#ddd}"
        ".end{stroke:#999;stroke-dasharray:4 3}polyline{fill:none;stroke:#1b6ca8;stroke-opacity:.35}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    parts += panel(old[:shown], exact, low, high, 0, f"{name}: one draw per path (--samples {paths})")
    parts += panel(new[:shown], exact, low, high, WIDTH + GAP, f"averaged distributions (--paths {paths})")
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toto", default=str(ROOT / "build/toto"), help="the command (default build/toto)")
    parser.add_argument("--data", type=Path, default=ROOT / "examples/data/AAPL.csv")
    parser.add_argument("--horizon", type=int, default=64)
    parser.add_argument("--paths", type=int, default=256)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--picture", type=Path, default=ROOT / "docs/images/paths.svg")
    parser.add_argument("--table", type=Path, default=ROOT / "bench/results/paths_noise.md")
    asked = parser.parse_args()
    name = asked.data.stem
    old = forecasts(asked.toto, asked.data, asked.horizon, asked.seeds, ["--samples", str(asked.paths)])
    new = forecasts(asked.toto, asked.data, asked.horizon, asked.seeds, ["--paths", str(asked.paths)])
    asked.picture.write_text(picture(old, new, name, asked.paths, 20), encoding="utf-8")
    exact = new[0]["exact_steps"]
    rows = []
    for level in ("0.1", "0.5", "0.9"):
        before, after = noise(old, level), noise(new, level)
        for step in sorted({exact + 1, (exact + asked.horizon) // 2, asked.horizon}):
            a, b = before[step - 1], after[step - 1]
            rows.append(f"| {level} | {step} | {a:.3g} | {b:.3g} | {b / a:.2f} |")
    lines = [
        "# Noise of bands beyond the first patch",
        "",
        f"Standard deviation over {asked.seeds} seeds of a quantile of {name} (`close`, horizon {asked.horizon}), in the units of the series. Bundled model,",
        f"commit {commit()}, {cpu_name()}. Made by `python3 tools/plot_paths.py`.",
        "",
        f"| quantile | step | one draw per path, `--samples {asked.paths}` | averaged, `--paths {asked.paths}` | ratio |",
        "|---|---|---|---|---|",
        *rows,
        "",
    ]
    asked.table.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
