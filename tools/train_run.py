"""What the training of both architectures shares: files, fingerprints, the curve."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch


class TrainingError(Exception):
    """Something the user can act on."""


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Temporary name, then rename: an interruption never leaves half a file."""
    temporary = path.with_name(f".{path.name}")
    write(temporary)
    temporary.replace(path)


def weights_sha256(weights: dict[str, torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(name.encode())
        digest.update(weights[name].detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


class Curve:
    """The loss by step, averaged over a few steps, in a CSV that grows."""

    EVERY = 50

    def __init__(self, path: Path, before: Path, first_step: int, columns: list[str]) -> None:
        """Goes on from the rows up to the first step in the curve of the run before."""
        rows: list[list[str]] = []
        if before.is_file():
            with before.open(newline="") as file:
                rows = [row for row in list(csv.reader(file))[1:] if int(row[0]) <= first_step]
        text = "".join(",".join(row) + "\n" for row in [columns, *rows])
        write_atomically(path, lambda temporary: temporary.write_text(text))
        self.path, self.columns = path, columns
        self.values: list[list[float]] = []

    def add(self, step: int, cpu_seconds: float, rate: float, values: list[float]) -> None:
        self.values.append(values)
        if step % self.EVERY != 0:
            return
        means = (f"{mean:.5f}" for mean in np.mean(self.values, axis=0))
        row = [str(step), f"{cpu_seconds:.0f}", f"{rate:.3g}", *means]
        with self.path.open("a") as file:
            file.write(",".join(row) + "\n")
        pairs = zip(self.columns, row, strict=True)
        print(" ".join(f"{name} {cell}" for name, cell in pairs), flush=True)
        self.values.clear()


def read_curve(path: Path, columns: list[str], most: int = 200) -> list[dict[str, float]]:
    """About `most` rows of a curve."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    every = max(1, len(rows) // most)
    return [{name: float(row[name]) for name in columns} for row in rows[::every]]
