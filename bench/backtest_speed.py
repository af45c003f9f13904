#!/usr/bin/env python3
"""Times backtests: typical jobs, the time that prefix reuse saves, a universe of symbols.

    bench/backtest_speed.py --toto build/toto --base MODEL [--repeat 5] [--symbols 500]

MODEL has the base size (`toto make-model MODEL --config base`); its weights may be random. Bars are
seeded random walks in a temporary folder. Every run starts without cached forecasts, but with packed
weights. Jobs skip the second decision lag (--no-lag-test), which costs a second walk, unless their name
says "every default". CPU time is reported next to wall time: on a busy machine, CPU time divided by the
number of threads is the better estimate. Writes bench/results/backtest.md.

Exit code 0 if everything was measured, 1 if a run failed or reuse changed a bit.
"""

from __future__ import annotations

import argparse
import datetime
import filecmp
import math
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from provenance import SOURCE, commit, cpu_name  # noqa: E402

BARS = 1000
HOURS = 8784


@dataclass
class Job:
    name: str
    words: list[str]
    repeat: int
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    peak_mb: float = 0
    patches: str = ""


def write_hours(path: Path, seed: int) -> None:
    """A year of hourly bars, as a market that never closes has them."""
    draw = random.Random(seed)
    hour, close = datetime.datetime(2024, 1, 1), 40_000.0
    lines = ["date,open,high,low,close,volume"]
    for _ in range(HOURS):
        opened, close = close, close * math.exp(draw.gauss(0, 0.005))
        high, low = max(opened, close) * (1 + draw.random() / 500), min(opened, close) * (1 - draw.random() / 500)
        lines.append(f"{hour},{opened:.2f},{high:.2f},{low:.2f},{close:.2f},{draw.randrange(10**6)}")
        hour += datetime.timedelta(hours=1)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_bars(path: Path, seed: int) -> None:
    """Daily bars on weekdays, prices to the cent."""
    draw = random.Random(seed)
    day, close = datetime.date(2020, 1, 1), 50.0 + draw.random() * 200
    lines = ["date,open,high,low,close,volume"]
    while len(lines) <= BARS:
        day += datetime.timedelta(days=1)
        if day.weekday() >= 5:
            continue
        opened = close * math.exp(draw.gauss(0, 0.005))
        close = opened * math.exp(draw.gauss(0.0003, 0.015))
        high = max(opened, close) * math.exp(abs(draw.gauss(0, 0.006)))
        low = min(opened, close) * math.exp(-abs(draw.gauss(0, 0.006)))
        lines.append(f"{day},{opened:.2f},{high:.2f},{low:.2f},{close:.2f},1000")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def run_once(toto: Path, job: Job, folder: Path) -> None:
    shutil.rmtree(folder / "cache" / "forecasts", ignore_errors=True)
    command = [str(toto), "backtest", *job.words, "--cache-dir", str(folder / "cache")]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        out, err = process.communicate()
    wall = time.monotonic() - start
    if process.returncode != 0:
        said = err.strip().splitlines() or ["no message"]
        raise SystemExit(f"error: {job.name} ended with {process.returncode}: {said[-1]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    job.wall.append(wall)
    job.cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    job.peak_mb = max(job.peak_mb, after.ru_maxrss / 1024)  # of all children so far, so later jobs must be larger
    found = re.search(r"(\d+) patches of context, (\d+) more", out)
    job.patches = f"{found[1]} + {found[2]}" if found else ""


def row(job: Job) -> str:
    spread = f"{min(job.wall):.2f} to {max(job.wall):.2f}"
    return (f"| {job.name} | {len(job.wall)} | {min(job.wall):.2f} | {statistics.median(job.wall):.2f} | {spread} "
            f"| {statistics.median(job.cpu):.2f} | {job.patches} | {job.peak_mb:.0f} |")


def report(jobs: list[Job], arguments: argparse.Namespace) -> str:
    load = os.getloadavg()[1]
    lines = [
        "# Backtests", "",
        f"- Command: `bench/backtest_speed.py --toto toto --base BASE --repeat {arguments.repeat} "
        f"--symbols {arguments.symbols}`",
        f"- Commit: {commit()}", f"- Date: {datetime.date.today()}",
        f"- CPU: {cpu_name()}, {len(os.sched_getaffinity(0))} cores; load average of the last five minutes {load:.1f}",
        f"- Data: seeded random walks, {BARS} daily bars per symbol, {HOURS} hourly ones; four targets; forecasts not cached, weights packed",
        "", "Seconds for the command, with loading, no-lookahead check and report; all but the jobs called *every "
        "default* with `--no-lag-test`, so without the second walk that tests the decision lag. CPU is the CPU time "
        "of both threads together: on a busy machine it is the better measure of a job's cost. Half of it is the least "
        "that two idle cores would take.", "",
        "| job | n | best | median | spread | CPU, median | patches computed + reused | peak MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join(lines + [row(job) for job in jobs]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toto", type=Path, required=True)
    parser.add_argument("--base", required=True, help="a model of the base size")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--symbols", type=int, default=500)
    parser.add_argument("--output", type=Path, default=SOURCE / "bench/results/backtest.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        universe = folder / "universe"
        universe.mkdir()
        for i in range(arguments.symbols):
            write_bars(universe / f"S{i:03}.csv", i)
        one, mini = str(universe / "S000.csv"), str(SOURCE / "models/toto-mini")

        def job(title: str, *words: str, repeat: int = arguments.repeat) -> Job:
            left_out = [] if "every default" in title else ["--no-lag-test"]
            return Job(title, [*words, *left_out, "--output-dir", str(folder / re.sub(r"\W+", "-", title))], repeat)

        hours = str(folder / "HOURS.csv")
        write_hours(folder / "HOURS.csv", 1)
        base = ["--model", arguments.base]
        jobs = [
            job("bundled, 1 symbol, 250 windows", one, "--model", mini, "--windows", "250"),
            job("bundled, the same, no reuse", one, "--model", mini, "--windows", "250", "--no-prefix-reuse"),
            job("bundled, 1 symbol, 250 windows, every default", one, "--model", mini, "--windows", "250"),
            job("bundled, 1 year of hours, 500 windows", hours, "--model", mini, "--windows", "500"),
            job("bundled, 1 year of hours, 500 windows, every default", hours, "--model", mini, "--windows", "500"),
            job(f"bundled, {arguments.symbols} symbols, 250 windows", str(universe), "--model", mini, "--windows",
                "250", repeat=1),
            job("base f32, 1 symbol, 50 windows, exact", one, *base, "--windows", "50"),
            job("base f32, 1 symbol, 50 windows, every default", one, *base, "--windows", "50"),
            job("base f32, the same, 3072 samples", one, *base, "--windows", "50", "--samples", "3072"),
            job("base bf16, exact", one, *base, "--windows", "50", "--dtype", "bf16"),
            job("base f32, 1 symbol, 250 windows", one, *base, "--windows", "250", repeat=2),
            job("base f32, the same, no reuse", one, *base, "--windows", "250", "--no-prefix-reuse", repeat=2),
        ]
        for item in jobs:
            for _ in range(item.repeat):
                run_once(arguments.toto, item, folder)
            print(row(item), flush=True)
        for with_reuse, without in ((jobs[0], jobs[1]), (jobs[-2], jobs[-1])):
            files = [Path(each.words[-1]) / "forecasts.csv" for each in (with_reuse, without)]
            if not filecmp.cmp(*files, shallow=False):
                print(f"error: reuse changed the forecasts of {with_reuse.name}", file=sys.stderr)
                return 1
    arguments.output.write_text(report(jobs, arguments), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
