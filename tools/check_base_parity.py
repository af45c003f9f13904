#!/usr/bin/env python3
"""Checks that the engine is as accurate as the reference at the size of Toto-Open-Base-1.0.

Makes goldens of the full shape (151,306,080 seeded random parameters; one univariate case
of prices, one of three variates), runs `toto verify` on them and writes a Markdown report. The small
goldens of tests/golden cannot show the effect of rounding over sums of 3072 terms and 12 layers.

Exit code 0 if every output of every mode is inside its bound, 1 if not or if anything is missing.
It needs the virtual environment that the help of make_golden.py describes.

Example: tools/check_base_parity.py --toto build/toto --context 512 --horizon 192
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from golden_environment import environment, import_reference, require_command, stop

try:
    import numpy as np
except ModuleNotFoundError:
    stop("NumPy is not installed; run in the environment that make_golden.py describes", 5)

from golden_cases import network
from golden_data import prices, waves
from golden_format import (
    REFUSED_FLOAT32_ERROR,
    Answer,
    Inputs,
    mean_error,
    relative_error,
    tolerance,
    write_case,
)
from golden_network import Init, Storage, draw_weights, num_parameters, write_model
from provenance import SOURCE, commit, cpu_name, shown_path

BASE_CONFIG = network(64, 768, 12, 3072, 12, 12, components=24)
BASE_PARAMETERS = 151_306_080
# Outputs each mode must be judged on: only `reference` has an uncached path.
MODES = {"reference": (), "default": ("mean_no_cache",)}


@dataclass(frozen=True)
class BaseGolden:
    folder: Path
    f32: Answer
    f64: Answer


def make_inputs(context: int, seed: int) -> dict[str, Inputs]:
    random = np.random.RandomState(seed)
    series = {
        "base_univariate": prices(1, 1, context)(random),
        "base_three_variates": waves(1, 3, context)(random),
    }
    return {
        name: Inputs(
            values.astype(np.float32), np.ones(values.shape, bool), np.zeros(values.shape, np.int64)
        )
        for name, values in series.items()
    }


def make_goldens(root: Path, context: int, horizon: int, seed: int) -> list[BaseGolden]:
    reference = import_reference()
    reference.make_repeatable(num_threads=os.cpu_count() or 1)
    requests = make_inputs(context, seed)
    folders = {name: root / name for name in requests}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)

    log = Progress()
    weights = draw_weights(BASE_CONFIG, Init(), variate_labels=False, seed=seed)
    if num_parameters(weights) != BASE_PARAMETERS:
        stop(f"the base network has {num_parameters(weights)} parameters, expected {BASE_PARAMETERS}")
    first, *others = folders.values()
    write_model(first, BASE_CONFIG, weights, Storage())
    for other in others:
        share_model(first, other)
    del weights
    log.say("weights drawn and written")

    toto = reference.load_reference(first)
    log.say("reference loaded")
    single: dict[str, Answer] = {}
    double: dict[str, Answer] = {}
    for name, inputs in requests.items():
        single[name] = reference.ask(toto, inputs, horizon)
        log.say(f"{name} in float32, cached and uncached")
    toto.double()
    for name, inputs in requests.items():
        double[name] = reference.ask(toto, inputs, horizon)
        log.say(f"{name} in float64, cached and uncached")

    goldens = []
    for name, inputs in requests.items():
        f32, f64 = single[name], double[name]
        write_case(folders[name] / "case.safetensors", inputs, horizon, False, f32, f64)
        for output, values in f64.items():
            error = relative_error(f32[output], values)
            # A NaN is not below anything.
            if not error < REFUSED_FLOAT32_ERROR:
                stop(
                    f"{name}: float32 error of {output} is {error:.1e}, expected less than"
                    f" {REFUSED_FLOAT32_ERROR}; take another --seed"
                )
        goldens.append(BaseGolden(folders[name], f32, f64))
    return goldens


class Progress:
    def __init__(self) -> None:
        self._last = time.monotonic()

    def say(self, done: str) -> None:
        now = time.monotonic()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
        seconds = now - self._last
        print(f"{done}: {seconds:.1f} s, peak memory {peak:.1f} GiB", file=sys.stderr, flush=True)
        self._last = now


def share_model(source: Path, target: Path) -> None:
    """The same model in a second folder without a second 605 MB."""
    for name in ("config.json", "model.safetensors"):
        (target / name).unlink(missing_ok=True)
        os.link(source / name, target / name)


Check = dict[str, Any]  # {"name", "passed", "figure", "bound"}


def verify(toto: Path, goldens: list[BaseGolden]) -> dict[str, Check]:
    """The checks of `toto verify`, by name."""
    folders = [str(golden.folder) for golden in goldens]
    command = [str(toto), "verify", "--golden", *folders, "--golden-only"]
    command += ["--modes", ",".join(MODES), "--json", "-"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        stop(f"cannot run {toto}: {error.strerror}; build it first or name another with --toto")
    if done.returncode not in (0, 1):
        stop(f"toto verify ended with {done.returncode}, expected 0 or 1: {done.stderr.strip()}")
    try:
        result = json.loads(done.stdout)
        checks = {check["name"]: check for check in result["checks"]}
        passed = result["passed"]
    except (ValueError, KeyError, TypeError) as error:
        stop(f"toto verify wrote no verdict that can be read ({error!r}); is --toto up to date?")
    if len(checks) != len(result["checks"]):
        stop("toto verify wrote two checks with one name")
    if passed is not (done.returncode == 0):
        stop(f"toto verify says passed: {passed} and ends with {done.returncode}")
    return checks


@dataclass(frozen=True)
class Row:
    golden: str
    mode: str
    output: str
    ours: float | None  # mean |ours - f64|
    reference: float  # mean |f32 - f64|
    relative: float  # the same, as a share of mean |f64|
    bound: float
    complaint: str  # empty: passed


def complaint_about(check: Check | None, bound: float) -> str:
    """Why a check counts as failed. Does not rely on the command's own verdict: a check that is
    missing, or judged by a wider bound than follows from the reference's rounding, has not passed."""
    if check is None:
        return "no such check"
    figure = check.get("figure")
    if not isinstance(figure, int | float):
        return "no figure"
    if not figure <= bound:
        return "over the bound"
    if check.get("passed") is not True:
        return "did not pass"
    judged_by = check.get("bound")
    if not isinstance(judged_by, int | float) or not judged_by <= bound * (1 + 1e-6):
        return f"judged by another bound, {judged_by}"
    return ""


def judge(checks: dict[str, Check], goldens: list[BaseGolden]) -> tuple[list[Row], list[str]]:
    """A row for each output that must have been judged, and the names of other failed checks."""
    rows: list[Row] = []
    rest = dict(checks)
    for golden in goldens:
        for mode, left_out in MODES.items():
            for output, f64 in golden.f64.items():
                if output in left_out:
                    continue
                f32 = golden.f32[output]
                bound = tolerance(f32, f64)
                check = rest.pop(f"golden/{golden.folder.name}/{mode}/{output}", None)
                figure = check.get("figure") if check else None
                rows.append(
                    Row(
                        golden.folder.name,
                        mode,
                        output,
                        ours=figure if isinstance(figure, int | float) else None,
                        reference=mean_error(f32, f64),
                        relative=relative_error(f32, f64),
                        bound=bound,
                        complaint=complaint_about(check, bound),
                    )
                )
    return rows, [name for name, check in rest.items() if check.get("passed") is not True]


def command_line(arguments: argparse.Namespace) -> str:
    """As another machine can repeat it."""
    return (
        f"tools/check_base_parity.py --toto {shown_path(arguments.toto)} --context {arguments.context}"
        f" --horizon {arguments.horizon} --seed {arguments.seed}"
    )


def report(rows: list[Row], strays: list[str], command: str) -> str:
    passed = sum(not row.complaint for row in rows)
    good = passed == len(rows) and not strays
    verdict = "Every output is inside its bound" if good else "Not every output passed"
    lines = [
        "# Parity at the size of Toto-Open-Base-1.0",
        "",
        f"**{verdict}**: {passed} of {len(rows)}. Mean |error| against a float64 run of the reference"
        f" on the same {BASE_PARAMETERS:,} seeded random weights; the bound is 1.25 x PyTorch's own"
        " float32 error + 1e-7 x mean |f64|.",
        "",
        f"- Command: `{command}`",
        f"- Commit: {commit()}",
        f"- Date: {datetime.date.today().isoformat()}",
        f"- CPU: {cpu_name()}, {os.cpu_count()} cores",
        f"- Reference: {'; '.join(environment())}",
        "",
        "| golden | mode | output | toto.cpp | PyTorch float32 | relative | bound | of bound | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ours = "-" if row.ours is None else f"{row.ours:.3e}"
        share = "-" if row.ours is None or row.bound == 0 else f"{row.ours / row.bound:.2f}"
        verdict = f"FAIL: {row.complaint}" if row.complaint else "pass"
        lines.append(
            f"| {row.golden} | {row.mode} | {row.output} | {ours} | {row.reference:.3e}"
            f" | {row.relative:.1e} | {row.bound:.3e} | {share} | {verdict} |"
        )
    lines += [f"\nAlso failed: `{name}`" for name in strays]
    return "\n".join(lines) + "\n"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--toto", type=Path, help="the command to judge, such as build/toto")
    parser.add_argument("--context", type=int, default=512, help="steps of history (%(default)s)")
    parser.add_argument("--horizon", type=int, default=192, help="steps to forecast (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="random seed of weights and data (%(default)s)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the goldens there")
    parser.add_argument(
        "--golden-only-make",
        action="store_true",
        help="make the goldens in --keep DIR and stop: nothing is judged",
    )
    parser.add_argument(
        "--report",
        type=Path,
        default=SOURCE / "bench/results/base_parity.md",
        help="the Markdown file to write (bench/results/base_parity.md)",
    )
    arguments = parser.parse_args()
    if arguments.golden_only_make and arguments.keep is None:
        parser.error("--golden-only-make needs --keep DIR, the folder of the goldens")
    if not arguments.golden_only_make and arguments.toto is None:
        parser.error("--toto is missing, expected the path of the command, such as build/toto")
    for name in ("context", "horizon"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name} is {getattr(arguments, name)}, expected at least 1")
    return arguments


def main() -> None:
    arguments = parse_arguments()
    with contextlib.ExitStack() as stack:
        root = arguments.keep
        if root is None:
            root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if not arguments.golden_only_make:
            require_command(arguments.toto)
        goldens = make_goldens(root, arguments.context, arguments.horizon, arguments.seed)
        if arguments.golden_only_make:
            return
        rows, strays = judge(verify(arguments.toto, goldens), goldens)
    text = report(rows, strays, command_line(arguments))
    print(text)
    arguments.report.parent.mkdir(parents=True, exist_ok=True)
    arguments.report.write_text(text)
    if strays or any(row.complaint for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
