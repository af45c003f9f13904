#!/usr/bin/env python3
"""The program of docs/library.md builds against an installed libtoto and runs: find_package_test.py BUILD_FOLDER

Installs the build into a temporary prefix, takes CMakeLists.txt and the sources from the document's fenced blocks, then
configures, builds and runs them. Nothing is downloaded.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = os.path.abspath(sys.argv.pop(1))


def blocks(kind: str) -> list[str]:
    text = (ROOT / "docs/library.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


class FindPackage(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="toto_package_")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_command(self, *words: str) -> str:
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def test_the_documented_program_builds_and_forecasts(self) -> None:
        prefix = self.folder / "prefix"
        self.run_command("cmake", "--install", BUILD, "--prefix", str(prefix), "--component", "Unspecified")
        (rules,) = blocks("cmake")
        main, *others = blocks("cpp")
        self.assertIn("int main()", main)
        self.assertTrue(others)
        (self.folder / "CMakeLists.txt").write_text(rules, encoding="utf-8")
        # The other blocks are parts of a program: they have to compile.
        parts = "".join(f"\nvoid part_{i}(const toto::Engine& engine, std::vector<float> closes, "
                        f"std::vector<float> new_closes) {{\n{text}}}\n" for i, text in enumerate(others))
        (self.folder / "main.cc").write_text(main + parts, encoding="utf-8")
        os.symlink(prefix / "share/toto/models", self.folder / "models")
        self.run_command("cmake", "-S", ".", "-B", "consumer", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
        self.run_command("cmake", "--build", "consumer")
        lines = self.run_command("consumer/demand").splitlines()
        self.assertEqual(len(lines), 1)
        low, median, high = map(float, re.findall(r"-?\d+\.\d+", lines[0]))
        self.assertTrue(low < median < high, lines[0])

    def test_another_minor_version_is_refused(self) -> None:
        prefix = self.folder / "prefix"
        self.run_command("cmake", "--install", BUILD, "--prefix", str(prefix), "--component", "Unspecified")
        (self.folder / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(other CXX)\nfind_package(toto 99.0 REQUIRED)\n",
            encoding="utf-8")
        done = subprocess.run(["cmake", "-S", ".", "-B", "other", f"-DCMAKE_PREFIX_PATH={prefix}"], cwd=self.folder,
                              capture_output=True, text=True, timeout=600)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("99.0", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
