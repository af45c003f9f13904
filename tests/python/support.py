"""Helpers of the tests. TOTO_COMMAND names the `toto` command; without it comparisons are skipped."""

from __future__ import annotations

import importlib.util
import json
import os
import struct
import subprocess
import unittest
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import totocpp

SOURCE = Path(__file__).resolve().parents[2]
DATA = SOURCE / "examples" / "data"
GOLDEN = SOURCE / "tests" / "golden"


@cache
def engine() -> totocpp.Engine:
    return totocpp.Engine.from_pretrained()


def wave(length: int = 512, level: float = 10.0) -> np.ndarray:
    """Float32, so that nothing is rounded on input."""
    steps = np.arange(length)
    return (level + np.sin(steps / 5) + 0.1 * np.cos(steps)).astype(np.float32)


def needs(*modules: str) -> Any:
    """Skips without these modules, unless TOTOCPP_EXTRAS=required: then their absence is a failure."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing and os.environ.get("TOTOCPP_EXTRAS") == "required":
        raise ImportError(f"{', '.join(missing)} must be installed for this run")
    return unittest.skipIf(missing, f"needs {', '.join(missing)}")


def command() -> str:
    path = os.environ.get("TOTO_COMMAND")
    if not path:
        raise unittest.SkipTest("needs TOTO_COMMAND")
    return path


def run_command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([command(), *map(str, arguments)], capture_output=True, text=True, check=False)


def error_of(*arguments: object) -> str:
    """The command's error message."""
    process = run_command(*arguments)
    assert process.returncode != 0, process.stdout
    return process.stderr.strip().splitlines()[-1].removeprefix("error: ")


def read_safetensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + size])
    metadata = header.pop("__metadata__", {})
    kinds = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "U8": np.uint8}
    tensors = {}
    for name, about in header.items():
        begin, end = (8 + size + offset for offset in about["data_offsets"])
        tensors[name] = np.frombuffer(raw[begin:end], kinds[about["dtype"]]).reshape(about["shape"])
    return tensors, metadata
