"""Every ```python block of the documents runs, in order, one namespace per document.

A warning is a failure, unless the block announces it: `# warns: part of the sentence`. Then it has to come.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import unittest
import warnings
from pathlib import Path
from typing import Any

from support import SOURCE, needs

BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


ANNOUNCED = re.compile(r"# warns: (.+)$", re.MULTILINE)


def run(where: str, code: str, names: dict[str, Any]) -> None:
    names["__name__"] = "__main__"
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", module="(?!__main__|totocpp)")  # warnings of other packages
        exec(compile(code, where, "exec"), names)
    said = [f"{warning.category.__name__}: {warning.message}" for warning in caught]
    announced = ANNOUNCED.findall(code)
    unannounced = [text for text in said if not any(part in text for part in announced)]
    missing = [part for part in announced if not any(part in text for text in said)]
    if unannounced or missing:
        raise AssertionError(f"{where}: warned {unannounced}, announced and not warned {missing}")


class Documents(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        for name in ("examples", "models", "tests"):
            (Path(folder.name) / name).symlink_to(SOURCE / name)
        os.chdir(folder.name)

    def check(self, name: str) -> None:
        text = (SOURCE / name).read_text(encoding="utf-8")
        names: dict[str, Any] = {}
        blocks = list(BLOCK.finditer(text))
        self.assertTrue(blocks, name)
        for block in blocks:
            line = text.count("\n", 0, block.start()) + 1
            run(f"{name}:{line}", block.group(1), names)

    def test_readme(self) -> None:
        self.check("README.md")

    def test_migrate(self) -> None:
        self.check("docs/migrate.md")

    @needs("pandas", "gluonts", "fugue")
    def test_python(self) -> None:
        self.check("docs/python.md")

    @needs("matplotlib", "pandas")
    def test_notebook(self) -> None:
        import matplotlib

        matplotlib.use("Agg")
        notebook = json.loads((SOURCE / "examples" / "totocpp.ipynb").read_text(encoding="utf-8"))
        os.chdir("examples")
        names: dict[str, Any] = {}
        pictures = 0
        for number, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] == "code":
                run(f"totocpp.ipynb, cell {number}", "".join(cell["source"]), names)
                pictures += any("image/png" in output.get("data", {}) for output in cell["outputs"])
        self.assertGreaterEqual(pictures, 3)  # as committed


if __name__ == "__main__":
    unittest.main()
