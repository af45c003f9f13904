#!/usr/bin/env python3
"""Checks that the documents name only what exists: links, their anchors, and `paths/of/files` in backquotes.

A name without a folder (`engine.cc`) must be the name of some file. Fenced blocks are not checked.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "src/README.md", *ROOT.glob("models/*/README.md"),
             *ROOT.glob("examples/data/README.md"), *ROOT.glob("bench/results/*.md")]
FOLDERS = ("include", "src", "server", "cli", "python", "compile_log", "models", "examples", "deploy", "tests", "tools",
           "bench", "docs")
ENDINGS = "cc|h|inl|py|sh|cmake|md|js|css|html"
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
QUOTED = re.compile(r"`([\w./*<>-]+)`")
# Names of the user's own scripts, of other projects, and of files that a command writes.
FOREIGN = {"verify.md", "compile.md", "accuracy.html", "serve.py", "scaler.py", "report.html", "modes.html", "modes.md",
           "trade_stock_e2e.py", "toggle_torch_compile.sh", "VERIFY_FIXES.sh", "run_compile_stress_test.py"}


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def problems_in(path: Path, names: set[str]) -> list[str]:
    text = path.read_text(encoding="utf-8")
    plain = FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    found = []

    def report(place: int, sentence: str) -> None:
        found.append(f"{path.relative_to(ROOT)}:{plain.count(chr(10), 0, place) + 1}: {sentence}")

    for link in LINK.finditer(plain):
        target, _, anchor = link[1].partition("#")
        if re.match(r"\w+:", target):
            continue
        file = (path.parent / target).resolve() if target else path
        if not file.exists():
            report(link.start(), f"no file {target}")
        elif anchor and anchor not in anchors(file):
            report(link.start(), f"no heading #{anchor} in {target or 'this document'}")
    for quoted in QUOTED.finditer(plain):
        name = quoted[1].rstrip("/")
        if "<" in name or "NAME" in name or "MODE" in name:
            continue
        if name.split("/")[0] in FOLDERS and "/" in quoted[1]:
            if not list(ROOT.glob(name)):
                report(quoted.start(), f"no file {name}")
        elif re.fullmatch(rf"[\w*]+\.(?:{ENDINGS})", name) and path.parent != ROOT / "bench/results":
            pattern = re.compile(name.replace(".", r"\.").replace("*", r"\w*"))
            if name not in FOREIGN and not any(pattern.fullmatch(known) for known in names):
                report(quoted.start(), f"no file is called {name}")
    return found


def main() -> int:
    names = {file.name for folder in FOLDERS for file in (ROOT / folder).rglob("*.*")} | {file.name for file in ROOT.iterdir()}
    problems = [problem for document in sorted(DOCUMENTS) for problem in problems_in(document, names)]
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if len(DOCUMENTS) < 10:
        print(f"error: only {len(DOCUMENTS)} documents found", file=sys.stderr)
        return 1
    print(f"links: {len(DOCUMENTS)} documents, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
