"""Forecasts of AutoETS and AutoTheta (statsforecast) for the held-out sets, kept in a folder.

They take far longer than everything else in the results and do not depend on our weights. Each set is
fitted once, in parts, so that a stopped run continues where it was.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import warnings
from pathlib import Path
from typing import Protocol

import numpy as np

from held_out import HeldOut, Values

LEVELS = np.arange(1, 20) / 20.0  # 0.05 to 0.95, as in `toto eval`
BANDS = [10, 20, 30, 40, 50, 60, 70, 80, 90]  # per cent, around the mean
NAMES = ("AutoETS", "AutoTheta")
PART = 20  # windows between two writes to disk


class Model(Protocol):
    def forecast(self, y: Values, h: int, level: list[int]) -> dict[str, Values]: ...


def _model(name: str, season: int) -> Model:
    from statsforecast.models import AutoETS, AutoTheta  # needed only if nothing is kept yet

    return {"AutoETS": AutoETS, "AutoTheta": AutoTheta}[name](season_length=season)


def _quantiles(answer: dict[str, Values]) -> Values:
    """[level, step]: the bounds of the bands, and the mean where the median belongs."""
    low = [answer[f"lo-{band}"] for band in reversed(BANDS)]
    high = [answer[f"hi-{band}"] for band in BANDS]
    return np.stack([*low, answer["mean"], *high])


def _fingerprint(task: HeldOut, name: str, limit: int) -> str:
    version = importlib.metadata.version("statsforecast")
    digest = hashlib.sha256(f"{name} {version} {task.season} {task.horizon} {limit}".encode())
    for _, _, context, _ in task.pairs():
        digest.update(context[-limit:].tobytes())
    return digest.hexdigest()


def forecast(task: HeldOut, name: str, limit: int, folder: Path) -> Values:
    """Quantiles [window, level, step] in the order of the pairs; `limit` points of history each."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{task.name}-{name}-{_fingerprint(task, name, limit)[:16]}.npy"
    done = list(np.load(kept)) if kept.is_file() else []
    contexts = [context[-limit:] for _, _, context, _ in task.pairs()]
    for index in range(len(done), len(contexts)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = _model(name, task.season).forecast(contexts[index], task.horizon, level=BANDS)
        quantiles = _quantiles(answer)
        if not np.isfinite(quantiles).all():
            raise ArithmeticError(f"{name} gave no finite forecast of {task.name}, window {index}")
        done.append(quantiles)
        if len(done) % PART == 0 or len(done) == len(contexts):
            temporary = kept.with_name(f".{kept.name}")
            with temporary.open("wb") as file:
                np.save(file, np.stack(done))
            temporary.replace(kept)
    return np.stack(done)
