"""The contenders of each row."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from contenders import Contender, Kernel, Process, Setting, Toto, Worker
from jobs import (
    COLD_OURS,
    COLD_PYTHON,
    COLD_UNPACKED,
    JOBS,
    ONEDNN,
    OPENBLAS,
    OURS,
    OURS_GEMM,
    QUANTILES,
    READ,
    Job,
)
from race import Result, race

SPREAD_RUNS = 200
OTHER_MODES = ("default", "reduce-overhead", "max-autotune")


@dataclass(frozen=True)
class Plan:
    """Rounds and time limits."""

    rounds: int
    quick: bool
    mode: str  # of ours, where one is named

    @property
    def budget_seconds(self) -> float:
        """Of each contender in each round."""
        return 0.3 if self.quick else 1.0

    def rounds_of(self, row: str) -> int:
        if row == "long":  # a run takes a minute in PyTorch
            return min(self.rounds, 1 if self.quick else 3)
        return min(self.rounds, 5) if row == "start" else self.rounds


def _race_job(job: Job, setting: Setting, plan: Plan) -> dict[str, Result]:
    contenders: list[Contender] = []
    for name in job.theirs:
        # The reference draws batches of samples_per_batch one after another, each with the same work:
        # one such batch is a true part of the whole.
        part = job.samples_per_batch if plan.quick and job.name == "long" else None
        contenders.append(Worker(name, job, setting, part))
    for dtype in job.dtypes:
        contenders.append(Toto(f"toto.cpp {dtype}", job, setting, dtype, plan.mode))
    for mode in OTHER_MODES if job.all_modes else ():
        if mode != plan.mode:
            contenders.append(Toto(f"{OURS} {mode}", job, setting, "f32", mode))
    if job.name == "network1":
        contenders.append(Kernel(READ, setting, f"read/threads:{setting.threads}"))
        quantiles = f"quantiles:9/steps:64/threads:{setting.threads}"
        contenders.append(Kernel(QUANTILES, setting, quantiles))
    return race(contenders, plan.rounds_of(job.name), plan.budget_seconds)


def _race_start(setting: Setting, plan: Plan) -> dict[str, Result]:
    job = JOBS["samples"]
    series = setting.work / job.series_file
    python = [sys.executable, Path(__file__).with_name("cold_start.py"), setting.model, series]
    python += [str(job.samples), str(setting.threads)]
    ours = [setting.toto, "forecast", series, "--context", str(job.context), "--horizon", "1"]
    ours += ["--samples", str(job.samples), "--emit", "samples", "--json", "-"]
    ours += ["--model", setting.model, "--mode", plan.mode, "--threads", str(setting.threads)]
    contenders = [
        Process(COLD_PYTHON, job, setting, python),
        Process(COLD_OURS, job, setting, ours),
        Process(COLD_UNPACKED, job, setting, [*ours, "--no-cache"]),
    ]
    return race(contenders, plan.rounds_of("start"), plan.budget_seconds)


def _measure_ours(setting: Setting, plan: Plan, runs: int) -> dict[str, Result]:
    """One long burst of each of our modes, for its spread and memory, not for comparison."""
    results = {}
    for mode in dict.fromkeys((plan.mode, *OTHER_MODES)):
        name = OURS if mode == plan.mode else f"{OURS} {mode}"
        contender = Toto(name, JOBS["samples"], setting, "f32", mode)
        found = race([contender], 0, 0)[name]  # started and checked
        if not found.missing:
            found.bursts.append(contender.run(runs))
            found.facts = contender.facts
            peak, weights = found.facts["peak_rss_mb"], found.facts["weights_mb"]
            found.facts["peak_over_weights"] = peak / weights
        results[name] = found
    return results


def _race_gemm(setting: Setting, plan: Plan) -> dict[str, Result]:
    contenders: list[Contender] = [
        Kernel(name, setting, f"stack/{library}/f32/rows:512/threads:{setting.threads}")
        for name, library in ((OURS_GEMM, "toto"), (OPENBLAS, "openblas"), (ONEDNN, "onednn"))
    ]
    return race(contenders, plan.rounds_of("gemm"), plan.budget_seconds)


def race_row(row: str, setting: Setting, plan: Plan) -> dict[str, Result]:
    if row in JOBS:
        return _race_job(JOBS[row], setting, plan)
    if row == "start":
        return _race_start(setting, plan)
    if row == "gemm":
        return _race_gemm(setting, plan)
    runs = 5 if row == "memory" else SPREAD_RUNS // (5 if plan.quick else 1)
    return _measure_ours(setting, plan, runs)
