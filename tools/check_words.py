#!/usr/bin/env python3
"""Checks documents, comments, messages and test names for words that slow a reader down.

    tools/check_words.py              # CHECKED without LATER; exit code 1 if anything is found
    tools/check_words.py --all        # every folder, to see what is left; exit code 0
    tools/check_words.py src/base     # only these files or folders
    tools/check_words.py --self-test  # does the check itself find what it should?

AVOIDED lists each phrase with what to write in its place. A real use goes to tools/words_allowed.txt, one line each:
`FILE: the words around it`. A line there that is no longer needed is an error, too.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = "tools/words_allowed.txt"

# Files and folders that must be clean.
CHECKED = [
    "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "Makefile", "CMakeLists.txt",
    "docs", "include", "models", "examples", "deploy", "bench", "tools", ".ci", "server", "python", "src", "cli",
    "compile_log", "tests",
]
LATER = ["tools/train_", "tests/tools/train_"]  # beginnings of names below CHECKED that are not reworded yet
EVERYTHING = CHECKED
SKIPPED = ["examples/data/licenses", "tests/corpus", "tests/data", "tests/golden", "tools/check_words.py", ALLOWED]

AVOIDED = {  # regular expression over lower-case text, any white space for a blank: write instead
    r"nobody|whoever|somebody|anybody|everybody": "the client, the caller, a request, no one",
    r"anew": "again",
    r"stands? (?:twice|in|beside|below|above|there|aside)|standing in": "is, appears twice, is listed in",
    r"is no (?!longer|more|less|other|such|one|better|worse|larger|smaller|slower|faster|different)\w+": "is not a ...",
    r"aside": "ignored, skipped, apart from",
    r"at once": "immediately, at the same time",
    r"beside": "next to",
    r"to be had": "available",
    r"travel(?:s|led|ling)?": "are batched, are sent",
    r"one word too many": "unexpected argument",
    r"in earnest": "(leave it out)",
    r"in force": "active",
    r"(?:hold|holds|held) up": "delay",
    r"push(?:es|ed)? out": "evict",
    r"is answered to": "gets",
    r"a (?:row|line|column|file|case|word) an? (?!second|minute|day|year)\w+": "one row per ...",
    r"so (?:many|long an?) (?!that)\w+": "N, this number of",
    r"of (?:its|their) own(?=[.,;:)]| (?:and|for|in|so|that|to|where|which|with)\b)": "separate",
}
PATTERN = re.compile("|".join(rf"(?P<p{i}>(?<![\w-])(?:{words})(?![\w-]))" for i, words in enumerate(AVOIDED))
                     .replace(" ", r"\s+"), re.IGNORECASE)

COMMENT_OR_STRING = {
    "c": re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.DOTALL),
    "js": re.compile(r'//[^\n]*|/\*.*?\*/|`[^`]*`|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL),
    "py": re.compile(r'""".*?"""|\'\'\'.*?\'\'\'|#[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL),
    "hash": re.compile(r'#[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL),
}
KINDS = {".cc": "c", ".h": "c", ".inl": "c", ".css": "c", ".js": "js", ".py": "py", ".sh": "hash", ".yml": "hash",
         ".cmake": "hash", ".conf": "hash", ".service": "hash", ".md": "text", ".html": "text"}
NAMES = {"CMakeLists.txt": "hash", "Dockerfile": "hash", "Caddyfile": "hash", "Makefile": "hash", "openapi.json": "text",
         "run": "hash", "full": "hash"}
TEST_NAME = re.compile(r"\bTEST(?:_F|_P)?\((\w+), (\w+)\)|\bdef (test_\w+)\(")


def kind_of(path: Path) -> str | None:
    return NAMES.get(path.name) or KINDS.get(path.suffix)


def prose(text: str, kind: str) -> str:
    """The text with everything but comments and string literals blotted out, line by line in the same places."""
    if kind == "text":
        return re.sub(r"^[>#|\s-]+", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.MULTILINE)
    kept = ["\n" if letter == "\n" else " " if letter.isspace() else "\0" for letter in text]
    for found in COMMENT_OR_STRING[kind].finditer(text):
        # The marks around words become blanks, so that a sentence may go on in the next line.
        inner = re.sub(r'//|/\*|\*/|^\s*[*#]|R"\w*\(|\)"|["`\']|^#', lambda m: " " * len(m[0]), found[0],
                       flags=re.MULTILINE)
        kept[found.start():found.end()] = inner
    return "".join(kept)


def findings_in(name: str, text: str, kind: str) -> list[tuple[int, str, str, str]]:
    """(line, what was found, what to write, the words around it) of one file."""
    found = []
    readable = prose(text, kind)
    for match in PATTERN.finditer(readable):
        if match[0].lower().startswith("is") and re.search(r"\bthere\s+$", readable[:match.start()][-40:], re.IGNORECASE):
            continue  # "there is no file"
        around = " ".join(readable[max(0, match.start() - 60):match.end() + 60].replace("\0", "|").split())
        found.append((readable.count("\n", 0, match.start()) + 1, match, around))
    for test in TEST_NAME.finditer(text):
        spoken = " ".join(re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", part) for part in test.groups() if part)
        for match in PATTERN.finditer(spoken):
            found.append((text.count("\n", 0, test.start()) + 1, match, spoken))
    advice = list(AVOIDED.values())
    return [(line, " ".join(match[0].split()), advice[int(match.lastgroup[1:])], around)
            for line, match, around in found]


def files_under(root: Path, places: list[str], later: list[str]) -> list[Path]:
    files: list[Path] = []
    for place in places:
        path = root / place
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        files += [file for file in inside if file.is_file() and kind_of(file)]
    names = {file.relative_to(root).as_posix(): file for file in files}
    return [file for name, file in names.items()
            if not any(name == skipped or name.startswith(skipped + "/") for skipped in SKIPPED)
            and not name.startswith(tuple(later))]


def allowed_uses(root: Path) -> dict[tuple[str, str], bool]:
    """(file, words around a real use) to whether it was met."""
    path = root / ALLOWED
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    uses = (line.partition(": ") for line in lines if line.strip() and not line.startswith("#"))
    return {(name, " ".join(words.lower().split())): False for name, _, words in uses}


def check(root: Path, places: list[str], whole: bool = True) -> int:
    """Number of problems, which are printed. `whole`: without files of LATER, and an allowed use that is not met
    is a problem."""
    files = files_under(root, places, LATER if whole else [])
    if not files:
        print("error: no file to check", file=sys.stderr)
        return 1
    uses = allowed_uses(root)
    problems = 0
    for path in files:
        name = path.relative_to(root).as_posix()
        for line, words, instead, around in findings_in(name, path.read_text(encoding="utf-8"), kind_of(path) or ""):
            real = [use for use in uses if use[0] == name and use[1] in around.lower() and words.lower() in use[1]]
            for use in real:
                uses[use] = True
            if not real:
                problems += 1
                print(f"{name}:{line}: \"{words}\": write {instead}\n    ... {around} ...", file=sys.stderr)
    checked = {path.relative_to(root).as_posix() for path in files}
    for (name, words), met in uses.items():
        if whole and not met and (name in checked or not (root / name).exists()):
            problems += 1
            print(f"{ALLOWED}: nothing in {name} needs \"{words}\" any more: remove the line", file=sys.stderr)
    print(f"words: {len(files)} files, {problems} problems")
    return problems


def self_test() -> int:
    """Every kind of file: what must be found, what must not. Exit code 1 if the check is blind or cries wolf."""
    cases = [  # file, text, number of findings
        ("a.md", "Requests\nare answered at\nonce. Nobody waits.\n", 2),
        ("clean.md", "It is no longer there. There is no file. besides, aside-effect, Newanew.\n", 0),
        ("a.cc", '// Left\n// aside.\nint aside = 1;\nfail("the key stands "\n     "twice");\n', 2),
        ("raw.cc", 'auto s = R"(nobody)"; int nobody;\n', 1),
        ("t_test.cc", "TEST(Queue, PushesOutNobody) {}\nTEST(Queue, Evicts) {}\n", 2),
        ("a.py", 'def test_it_is_made_anew(): pass\nx = "at once"  # beside\nanew = 2\n', 3),
        ("a.js", "const text = 'a row a symbol'; // in force\nlet whoever;\n", 2),
        ("a.sh", "# in earnest\nrm anew\n", 1),
        ("is_no.md", "That is no error. That is no\nforecast.\n", 2),
    ]
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text, expected in cases:
            found = len(findings_in(name, text, kind_of(Path(name)) or ""))
            if found != expected:
                failures.append(f"{name}: {found} findings, expected {expected}")
        for name, run, expected in [
            ("an empty folder fails", lambda: check(root, ["."]), 1),
            ("a finding fails", lambda: (root / "a.md").write_text("at once") and check(root, ["."]), 1),
            ("an allowed use passes", lambda: (root / "tools").mkdir() or
             (root / ALLOWED).write_text("a.md: at once\n") and check(root, ["."]), 0),
            ("a use that went fails", lambda: (root / "a.md").write_text("now") and check(root, ["."]), 1),
        ]:
            with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
                problems = run()
            if problems != expected:
                failures.append(f"{name}: {problems} problems, expected {expected}")
    for failure in failures:
        print(f"error: {failure}", file=sys.stderr)
    print(f"words: self-test {'failed' if failures else 'passed'}")
    return 1 if failures else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="*", help="files or folders; default: those that must be clean")
    parser.add_argument("--all", action="store_true", help="report on every folder, never fail")
    parser.add_argument("--self-test", action="store_true", help="check the check")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    if arguments.all:
        check(ROOT, EVERYTHING, whole=False)
        return 0
    problems = check(ROOT, arguments.places or CHECKED, whole=not arguments.places)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
