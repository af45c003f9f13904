#!/usr/bin/env python3
"""Checks that forecasts, evaluations and backtests give the bits that were recorded.

About a hundred named inputs (tools/bits_inputs.py) go through the command, the server's protocols and the Python
package. The SHA-256 of the numbers alone must be the one in tests/data/bits.json, on every CPU and with every number of
threads. Routes listed with one hash must give the same numbers.

    check_bits.py --toto build/toto                               the command and the server
    check_bits.py --toto build/toto --python venv/bin/python      and Python: an interpreter that has totocpp
    check_bits.py --toto build/toto --only backtest point/mean    two groups or inputs; patterns work, too
    check_bits.py --toto build/toto --python PY --record --only samples    record what a change moves on purpose

Uses the standard library only. Exit code: 0 all agree, 1 a difference or nothing checked, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any

from bits_inputs import SOURCE, Input, all_inputs, write_files
from bits_routes import Answer, Command, RunError, clean_environment, digest, unpacked
from bits_server import Server

BITS = SOURCE / "tests" / "data" / "bits.json"
ABOUT = (
    "SHA-256 and count of the numbers each input gives, one hash for all routes that must give the same. "
    "Written by tools/check_bits.py --record."
)
Recorded = dict[str, dict[str, dict[str, Any]]]  # input -> part -> {"numbers", "sha256", "routes"}


# -------------------------------------------------------------------------------------------------------------- answers


class PythonWorker:
    """bits_python.py in the interpreter that has totocpp: one job, one answer."""

    def __init__(self, python: Path, home: Path, folder: Path) -> None:
        script = Path(__file__).resolve().parent / "bits_python.py"
        self._process = subprocess.Popen(
            [python, script, folder], cwd=home, env={**clean_environment(home), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def answer(self, item: Input, route: str, engine: Mapping[str, Any]) -> Answer:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"input": item.name, "route": route, "engine": engine}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the next line says so
        line = self._process.stdout.readline()
        if not line:
            raise RunError(f"the Python process ended, exit code {self._process.wait()}")
        said = json.loads(line)
        if "error" in said:
            raise RunError(said["error"])
        return {name: base64.b64decode(text) for name, text in said["parts"].items()}

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Routes:
    """Every route; servers and the Python process start on first use."""

    def __init__(self, toto: Path, python: Path | None, common: Mapping[str, Any]) -> None:
        self._work = tempfile.TemporaryDirectory(prefix="check_bits_")
        self._home = Path(self._work.name) / "home"
        self._folder = Path(self._work.name) / "inputs"
        self._home.mkdir()
        self._folder.mkdir()
        write_files(self._folder)
        self._toto, self._python, self._common = toto, python, common
        self._command = Command(toto, self._home)
        self._servers: dict[str, Server] = {}
        self._worker: PythonWorker | None = None

    def __enter__(self) -> Routes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers.values():
            server.close()
        if self._worker is not None:
            self._worker.close()
        self._work.cleanup()

    def available(self, route: str) -> bool:
        return self._python is not None or not route.startswith("python")

    def answer(self, item: Input, route: str, engine: Mapping[str, Any]) -> Answer:
        engine = {**self._common, **engine}
        if route.startswith("cli"):
            return self._command.answer(item, route, engine, self._folder)
        if route.startswith("python"):
            if self._worker is None:
                assert self._python is not None
                self._worker = PythonWorker(self._python, self._home, self._folder)
            return self._worker.answer(item, route, engine)
        key = json.dumps(engine, sort_keys=True)
        if key not in self._servers:
            self._servers[key] = Server(self._toto, self._home, engine)
        return self._servers[key].answer(item, route, self._folder)


def dump(folder: Path, item: Input, label: str, answer: Answer) -> None:
    """One number per line, to compare two builds with diff."""
    for part, raw in answer.items():
        path = folder / item.name / f"{label.replace('/', '_')}.{part.removesuffix('.csv')}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if part.endswith(".csv"):
            path.write_bytes(raw)
        else:
            path.write_text("".join(f"{number!r}\n" for number in unpacked(raw)), encoding="utf-8")


# ----------------------------------------------------------------------------------------------------------- the record


def read_record(path: Path) -> Recorded:
    if not path.exists():
        return {}
    groups = json.loads(path.read_text(encoding="utf-8"))["groups"]
    return {f"{group}/{name}": parts for group, inputs in groups.items() for name, parts in inputs.items()}


def write_record(path: Path, recorded: Recorded, order: list[str]) -> None:
    """Grouped, one line per part, so that a diff shows what moved."""
    lines = ["{", f'  "about": {json.dumps(ABOUT)},', '  "groups": {']
    grouped = [(group, list(names)) for group, names in groupby(order, lambda name: name.partition("/")[0])]
    for g, (group, names) in enumerate(grouped):
        lines.append(f"    {json.dumps(group)}: {{")
        for n, name in enumerate(names):
            lines.append(f"      {json.dumps(name.partition('/')[2])}: {{")
            parts = [
                f"        {json.dumps(part)}: {json.dumps(entry)}" for part, entry in sorted(recorded[name].items())
            ]
            lines += [",\n".join(parts), "      }" + ("," if n + 1 < len(names) else "")]
        lines.append("    }" + ("," if g + 1 < len(grouped) else ""))
    text = "\n".join([*lines, "  }", "}", ""])
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def merged(answers: Mapping[str, Answer]) -> tuple[dict[str, dict[str, Any]], dict[str, list[str]]]:
    """Of the answers by label: {part: entry}, and the complaints about labels that do not agree with the first."""
    found: dict[str, dict[str, Any]] = {}
    complaints: dict[str, list[str]] = {}
    for label, answer in answers.items():
        for part, raw in answer.items():
            own = digest(part, raw)
            entry = found.setdefault(part, {**own, "routes": []})
            if {name: entry[name] for name in own} != own:
                complaints.setdefault(label, []).append(f"{part} differs from that of {entry['routes'][0]}")
            entry["routes"].append(label)
    return found, complaints


def compare(label: str, answer: Answer, entries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    complaints = []
    for part, raw in answer.items():
        own, entry = digest(part, raw), entries.get(part)
        if entry is None or label not in entry["routes"]:
            complaints.append(f"{part} is not recorded")
        elif own["numbers"] != entry["numbers"]:
            complaints.append(f"{part} has {own['numbers']} numbers, recorded are {entry['numbers']}")
        elif own["sha256"] != entry["sha256"]:
            complaints.append(f"{part} has the hash {own['sha256'][:12]}, recorded is {entry['sha256'][:12]}")
    absent = [part for part, entry in entries.items() if label in entry["routes"] and part not in answer]
    return complaints + [f"{part} is recorded and not in the answer" for part in absent]


# ------------------------------------------------------------------------------------------------------------- the run


class Tally:
    def __init__(self) -> None:
        self.passed = self.failed = self.skipped = 0

    def fail(self, where: str, reason: str) -> None:
        self.failed += 1
        print(f"FAIL {where}: {reason}", file=sys.stderr)


def run_input(item: Input, routes: Routes, tally: Tally, dump_to: Path | None) -> dict[str, Answer]:
    """The answers by label, of the routes that are available."""
    answers = {}
    for label, route, engine in item.runs():
        if not routes.available(route):
            tally.skipped += 1
            continue
        try:
            answers[label] = routes.answer(item, route, engine)
        except RunError as error:
            tally.fail(f"{item.name} {label}", str(error))
            continue
        except (LookupError, ValueError, TypeError, OSError) as error:
            tally.fail(f"{item.name} {label}", f"the answer cannot be read: {type(error).__name__}: {error}")
            continue
        if dump_to is not None:
            dump(dump_to, item, label, answers[label])
    return answers


def check_group(inputs: list[Input], routes: Routes, recorded: Recorded, tally: Tally, dump_to: Path | None) -> None:
    for item in inputs:
        for label, answer in run_input(item, routes, tally, dump_to).items():
            complaints = compare(label, answer, recorded.get(item.name, {}))
            if complaints:
                tally.fail(f"{item.name} {label}", "; ".join(complaints))
            else:
                tally.passed += 1


def record_group(inputs: list[Input], routes: Routes, recorded: Recorded, tally: Tally, dump_to: Path | None) -> None:
    for item in inputs:
        answers = run_input(item, routes, tally, dump_to)
        entries, complaints = merged(answers)
        for label, reasons in complaints.items():
            tally.fail(f"{item.name} {label}", "; ".join(reasons))
        tally.passed += len(answers) - len(complaints)
        before = recorded.get(item.name, {})
        moved = [part for part in entries.keys() | before.keys() if entries.get(part) != before.get(part)]
        if moved:
            print(f"moved: {item.name} ({', '.join(sorted(moved))})")
        recorded[item.name] = entries


def is_selected(item: Input, pattern: str) -> bool:
    return fnmatchcase(item.name, pattern) or item.group == pattern


def selected(patterns: list[str] | None) -> list[Input]:
    inputs = all_inputs()
    if patterns is None:
        return inputs
    for pattern in patterns:
        if not any(is_selected(item, pattern) for item in inputs):
            print(f"error: no input is called {pattern}; {BITS.name} lists groups and names", file=sys.stderr)
            sys.exit(1)
    return [item for item in inputs if any(is_selected(item, pattern) for pattern in patterns)]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toto", type=Path, required=True, help="the command to check, such as build/toto")
    parser.add_argument(
        "--python", type=Path, help="an interpreter that has totocpp and NumPy; without it Python is not checked"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="check only these inputs or groups; patterns such as 'point/*_mean*'"
    )
    parser.add_argument("--record", action="store_true", help="record the numbers, all or those that --only names")
    parser.add_argument("--isa", help="instruction set of every route: reference, avx2 or avx512")
    parser.add_argument("--threads", type=int, help="number of threads of every route")
    parser.add_argument("--bits", type=Path, default=BITS, help="the file with the hashes")
    parser.add_argument("--dump", type=Path, metavar="FOLDER", help="also write all numbers below this folder")
    arguments = parser.parse_args()
    for name in ("toto", "python"):
        path = getattr(arguments, name)
        if path is not None and not os.access(path, os.X_OK):
            parser.error(f"--{name} is {path}, expected a program")
        if path is not None:
            setattr(arguments, name, path.absolute())  # not resolved: a virtual environment's interpreter is a link
    inputs = selected(arguments.only)
    if (
        arguments.record
        and arguments.python is None
        and any(route.startswith("python") for item in inputs for route in item.routes)
    ):
        parser.error("--record needs --python: these numbers also go through Python")
    arguments.inputs = inputs
    return arguments


def main() -> int:
    arguments = parse_arguments()
    common = {name: value for name in ("isa", "threads") if (value := getattr(arguments, name)) is not None}
    recorded, tally = read_record(arguments.bits), Tally()
    names = [item.name for item in all_inputs()]
    if not arguments.record and arguments.only is None:
        for name in recorded.keys() - set(names):
            tally.fail(name, "is recorded, and there is no such input")
    work = record_group if arguments.record else check_group
    with Routes(arguments.toto, arguments.python, common) as routes:
        for group, members in groupby(arguments.inputs, lambda item: item.group):
            inputs, begin = list(members), time.monotonic()
            before = (tally.passed, tally.failed)
            work(inputs, routes, recorded, tally, arguments.dump)
            counts = f"{tally.passed - before[0]:>4} passed {tally.failed - before[1]:>4} failed"
            print(f"{group:<14}{len(inputs):>4} inputs {counts} {time.monotonic() - begin:>6.1f} s", flush=True)
    if tally.skipped:
        print(f"not checked: Python ({tally.skipped} answers); --python names an interpreter that has totocpp")
    if tally.passed + tally.failed == 0:
        print("error: nothing was checked", file=sys.stderr)
    if arguments.record and tally.failed == 0:
        write_record(arguments.bits, recorded, [name for name in names if name in recorded])
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 0 if tally.passed > 0 and tally.failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
