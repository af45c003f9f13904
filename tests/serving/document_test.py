#!/usr/bin/env python3
"""The commands of docs/serving.md and the README's `toto serve` work as written: document_test.py TOTO

Each ```bash and ```python block of the document is run, in order, against the server that the last `toto serve` in it
has started, on a free port in place of 8080. Blocks for clients that are not installed are left to clients_test.py.
"""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from service import Service

ROOT = Path(__file__).resolve().parent.parent.parent
TOTO = os.path.abspath(sys.argv.pop(1))
CLIENTS = ("tritonclient", "nixtla")


def blocks(path, *kinds):
    """(first line, kind, text) of each fenced block of these kinds."""
    text = path.read_text(encoding="utf-8")
    for found in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if found[1] in kinds:
            yield text[: found.start()].count("\n") + 2, found[1], found[2]


class Document(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="toto_document_")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.symlink(ROOT / "examples", Path(self.folder) / "examples")
        self.service = None
        self.addCleanup(self.stop)

    def stop(self):
        if self.service:
            self.assertEqual(self.service.close(), 0)
        self.service = None

    def serve(self, line):
        self.stop()
        words = shlex.split(line, comments=True)[2:]
        if "--port" in words:
            del words[words.index("--port") : words.index("--port") + 2]
        self.service = Service(TOTO, *words, folder=self.folder)

    def shell(self, words, text):
        text = text.replace("http://127.0.0.1:8080", self.service.address if self.service else "http://127.0.0.1:1")
        text = text.replace(
            '"127.0.0.1:8080"', f'"{self.service.address.removeprefix("http://")}"' if self.service else ""
        )
        variables = {**os.environ, "PATH": f"{os.path.dirname(TOTO)}:{os.environ['PATH']}"}
        done = subprocess.run(
            [*words, text], cwd=self.folder, capture_output=True, text=True, env=variables, timeout=120
        )
        self.assertEqual(done.returncode, 0, f"{text}\n{done.stdout}\n{done.stderr}")

    def test_every_command_of_the_document_runs(self):
        ran = 0
        for number, kind, text in blocks(ROOT / "docs/serving.md", "bash", "python"):
            if kind == "python" and any(name in text and not importlib.util.find_spec(name) for name in CLIENTS):
                continue
            with self.subTest(f"docs/serving.md:{number}"):
                lines = text.splitlines()
                server = next((line for line in lines if line.startswith("toto serve")), None)
                if server:
                    lines.remove(server)
                if lines:
                    self.shell(
                        ["bash", "-euo", "pipefail", "-c"] if kind == "bash" else [sys.executable, "-c"],
                        "\n".join(lines),
                    )
                if server:
                    self.serve(server)
                ran += 1
        self.assertGreaterEqual(ran, 14)

    def test_the_servers_of_the_readme_start(self):
        lines = [
            line
            for _, _, text in blocks(ROOT / "README.md", "bash")
            for line in text.splitlines()
            if line.startswith("toto serve")
        ]
        self.assertTrue(lines)
        for line in lines:
            self.serve(line)

    def test_every_flag_is_in_the_table_with_its_variable_and_default(self):
        document = (ROOT / "docs/serving.md").read_text(encoding="utf-8")
        rows = dict(re.findall(r"^\| `(--[a-z-]+)` \| `(\w+)` \|", document, re.MULTILINE))
        shown, common = (
            subprocess.run([TOTO, command, "--help"], capture_output=True, text=True, check=True).stdout
            for command in ("serve", "bench")
        )
        flags = set(re.findall(r"^  (?:-h,)?(--[a-z-]+)", shown, re.MULTILINE))
        flags -= set(re.findall(r"^  (?:-h,)?(--[a-z-]+)", common, re.MULTILINE))  # every command has those
        self.assertEqual(sorted(rows), sorted(flags))
        for flag, variable in rows.items():
            self.assertEqual(variable, "TOTO_SERVE_" + flag[2:].upper().replace("-", "_"))
        for flag, default in re.findall(r"^  (--[a-z-]+) .*\(default ([\w.:-]+)", shown, re.MULTILINE):
            if flag not in rows:
                continue
            self.assertIn(f"| `{flag}` | `{rows[flag]}` | {default} |", document)


if __name__ == "__main__":
    unittest.main(verbosity=2)
