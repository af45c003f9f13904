"""The series that every contender forecasts, and the CSV they share. NumPy only."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np

FIRST_HOUR = datetime.datetime(2024, 1, 1)


def make_series(batch: int, context: int, seed: int) -> np.ndarray:
    """[batch][context] random walks with a daily season, float32."""
    random = np.random.RandomState(seed)
    walk = 100 + np.cumsum(random.uniform(-0.5, 0.5, (batch, context)), axis=1)
    season = 5 * np.sin(2 * np.pi * np.arange(context) / 24 + random.uniform(0, 6, (batch, 1)))
    return (walk + season).astype(np.float32)


def write_series(path: Path, series: np.ndarray) -> None:
    """Wide: one line per hour, one column per series; every float32 reads back with the same bits."""
    lines = [",".join(["timestamp", *(f"s{index}" for index in range(len(series)))])]
    for hour, values in enumerate(series.T):
        stamp = (FIRST_HOUR + datetime.timedelta(hours=hour)).isoformat()
        lines.append(",".join([stamp, *(str(value) for value in values)]))
    path.write_text("\n".join(lines) + "\n")


def read_series(path: Path) -> np.ndarray:
    columns = path.read_text().split("\n", 1)[0].count(",")
    values = np.loadtxt(path, np.float32, delimiter=",", skiprows=1, usecols=range(1, columns + 1))
    return np.ascontiguousarray(values.reshape(-1, columns).T)
