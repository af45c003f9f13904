#!/usr/bin/env python3
"""Compares toto.cpp with PyTorch, torch.compile, ONNX Runtime and OpenVINO on this machine, in one run.

Makes a base-size model (or takes --model), checks that all answers agree, then times the contenders
in turn, prints the table and writes bench/results/against_pytorch.md and .json. docs/benchmarks.md
says what is compared and where the limits are.

It needs a throw-away virtual environment (python3 -m venv) without xFormers:
    pip install torch
    pip install numpy pandas einops jaxtyping gluonts lightning rotary-embedding-torch safetensors
    pip install huggingface_hub beartype scipy onnx onnxruntime openvino
    pip install --no-deps toto-ts==0.2.0
and, for torch.compile, a C++ compiler. Contenders whose packages are missing are skipped and listed.

Exit code 0 if every answer agreed and everything that should run ran (a ratio may still be missed:
the table says so), 1 if not.

Example: bench/against_pytorch.py --toto build/toto --rounds 15
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from golden_environment import require_command, stop  # noqa: E402
from provenance import SOURCE, commit, cpu_name, shown_path  # noqa: E402

try:
    import numpy  # noqa: F401
    import scipy  # noqa: F401
except ModuleNotFoundError as error:
    stop(f"{error.name} is not installed; make the environment first.\n\n{__doc__.rstrip()}", 5)

from contenders import Broken, Setting, Unavailable  # noqa: E402
from jobs import JOBS, ROWS  # noqa: E402
from race import say  # noqa: E402
from race_report import as_json, claim_table, markdown, title_of  # noqa: E402
from rows import Plan, race_row  # noqa: E402
from verdicts import Results, judge  # noqa: E402

MODES = ("default", "reduce-overhead", "max-autotune")


def make_model(toto: Path, folder: Path) -> None:
    say("making a base-size model of seeded random weights")
    command = [str(toto), "make-model", str(folder), "--config", "base", "--seed", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        stop(f"toto make-model ended with {done.returncode}: {done.stderr.strip()}")


def ask_reference(setting: Setting, rows: list[str]) -> None:
    """Series, the reference's answers, a golden, ONNX files."""
    say("asking PyTorch for the answers")
    # Rows without a separate job do the work of `samples`.
    jobs = dict.fromkeys(row if row in JOBS else "samples" for row in rows)
    command = [sys.executable, Path(__file__).with_name("reference_answers.py")]
    command += ["--model", setting.model, "--work", setting.work, "--jobs", ",".join(jobs)]
    command += ["--threads", setting.threads]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, env=setting.environment()
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["no message"]
        stop(f"reference_answers.py ended with {done.returncode}: {said[-1]}", done.returncode)


def verify_golden(setting: Setting, plan: Plan) -> tuple[str, bool]:
    """`toto verify` against float32 and float64 runs of the reference, made for this run. The bound
    follows from PyTorch's own rounding and is far tighter than the tolerances of the race."""
    command = [setting.toto, "verify", "--golden", setting.work / "golden", "--golden-only"]
    command += ["--modes", plan.mode, "--threads", setting.threads, "--json", "-"]
    try:
        verdict = json.loads(setting.run(list(map(str, command))))
    except (Broken, Unavailable) as reason:
        return f"`toto verify` did not pass: {reason}", False
    checks = verdict["checks"]
    passed = verdict["passed"] and checks and all(check["passed"] for check in checks)
    figures = [check["figure"] / check["bound"] for check in checks if check["bound"]]
    return (
        f"`toto verify` {'passed' if passed else 'failed'} {len(checks)} outputs of a base-size golden"
        f" in mode {plan.mode}, f32; the largest error is {max(figures):.2f} of its bound (1.25 x"
        " PyTorch's own float32 error + 1e-7 of the size).",
        bool(passed),
    )


def command_line(arguments: argparse.Namespace) -> str:
    """As another machine can repeat it."""
    toto = shown_path(arguments.toto)
    words = [f"bench/against_pytorch.py --toto {toto} --rounds {arguments.rounds}"]
    words += [f"--threads {arguments.threads} --mode {arguments.mode}"]
    words += [f"--only {','.join(arguments.only)}"] if list(ROWS) != arguments.only else []
    words += ["--model MODEL"] if arguments.model else []
    words += ["--quick"] if arguments.quick else []
    return " ".join(words)


def describe(arguments: argparse.Namespace, results: Results, work: Path) -> dict[str, str]:
    found = [result.facts for row in results.values() for result in row.values()]
    runtimes = {facts["about"] for facts in found if "about" in facts}
    yardsticks = {f"{k} {f[k]}" for f in found for k in ("openblas", "onednn") if k in f}
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return {
        "command": f"`{command_line(arguments)}`",
        "commit": commit(),
        "date": datetime.date.today().isoformat(),
        "CPU": f"{cpu_name()}, {os.cpu_count()} cores; {arguments.threads} threads each",
        "model": "Toto-Open-Base-1.0's shape, 151,306,080 seeded random parameters"
        if arguments.model is None
        else "a folder given by --model",
        "reference": (work / "environment.txt").read_text().strip(),
        "contenders": "; ".join(sorted(runtimes | yardsticks)) or "none but ours",
        "load average at the end": f"{load} (1, 5 and 15 minutes, this benchmark included)",
    }


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--toto", type=Path, required=True, help="the command, such as build/toto")
    parser.add_argument("--kernels-bench", type=Path, help="default: bench/kernels_bench next to it")
    parser.add_argument("--model", type=Path, help="a base-size model (default: make one)")
    parser.add_argument("--rounds", type=int, help="rounds of every race (15; 2 with --quick)")
    parser.add_argument("--only", metavar="ROWS", help=f"rows to run, some of {','.join(ROWS)}")
    parser.add_argument("--threads", type=int, default=2, help="threads of each contender (%(default)s)")
    parser.add_argument("--mode", choices=MODES, default="default", help="mode of toto.cpp (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="few rounds, a rough result")
    parser.add_argument("--work", type=Path, help="keep intermediate files there, and reuse them")
    parser.add_argument(
        "--report",
        type=Path,
        help="the Markdown file to write; JSON goes next to it (bench/results/against_pytorch.md;"
        " none with --quick or --only)",
    )
    arguments = parser.parse_args()
    arguments.only = arguments.only.split(",") if arguments.only else list(ROWS)
    if unknown := [row for row in arguments.only if row not in ROWS]:
        parser.error(f"--only has {unknown[0]}, expected some of {','.join(ROWS)}")
    if arguments.rounds is None:
        arguments.rounds = 2 if arguments.quick else 15
    for name in ("rounds", "threads"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name} is {getattr(arguments, name)}, expected at least 1")
    if arguments.report is None and not arguments.quick and arguments.only == list(ROWS):
        arguments.report = SOURCE / "bench/results/against_pytorch.md"
    require_command(arguments.toto)
    if arguments.kernels_bench is None:
        built = arguments.toto.resolve().parent / "bench/kernels_bench"
        arguments.kernels_bench = built if built.exists() else None
    return arguments


def main() -> None:
    arguments = parse_arguments()
    with contextlib.ExitStack() as stack:
        work = arguments.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        work.mkdir(parents=True, exist_ok=True)
        model = arguments.model or work / "model"
        setting = Setting(
            arguments.toto.resolve(), arguments.kernels_bench, model.resolve(), work.resolve(),
            arguments.threads,
        )
        plan = Plan(arguments.rounds, arguments.quick, arguments.mode)
        if arguments.model is None and not (model / "config.json").exists():
            make_model(arguments.toto, model)
        ask_reference(setting, arguments.only)
        golden, good = verify_golden(setting, plan)
        say(golden)
        complaints = [] if good else [golden]

        results: Results = {}
        for row in arguments.only:
            say(title_of(row))
            results[row] = race_row(row, setting, plan)
            verdicts = [v for v in judge({row: results[row]}) if v.claim.row == row]
            say("\n".join(claim_table(verdicts)[2:]))
        complaints += [
            f"{row}: {result.name}: {result.missing}"
            for row, found in results.items()
            for result in found.values()
            if result.failed
        ]
        head = describe(arguments, results, work)
        verdicts = judge(results)
        lines = [f"{name[0].upper()}{name[1:]}: {value}" for name, value in head.items()]
        text = markdown(verdicts, results, lines, golden, complaints)
        print(text)
        if arguments.report:
            arguments.report.parent.mkdir(parents=True, exist_ok=True)
            arguments.report.write_text(text)
            report = as_json(verdicts, results, head | {"golden": golden})
            arguments.report.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    if complaints:
        stop("; ".join(complaints))


if __name__ == "__main__":
    main()
