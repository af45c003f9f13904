"""How good forecasts are, next to seasonal naive: what the scripts that steer the training print."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from held_out import HeldOut, Values

QUANTILES = np.arange(1, 10) / 10.0

# Contexts and horizon in, quantiles [series, step, quantile] out.
Forecaster = Callable[[list[Values], int], Values]


@dataclass
class Task:
    """The windows of a set, ready to be forecast."""

    season: int
    contexts: list[Values]
    actual: Values  # [window, step]

    @classmethod
    def of(cls, held: HeldOut) -> Task:
        pairs = list(held.pairs())
        return cls(held.season, [c for _, _, c, _ in pairs], np.stack([f for *_, f in pairs]))


def naive(context: Values, horizon: int, season: int) -> tuple[Values, Values]:
    """Seasonal naive, and its quantiles from the spread of its own errors in the context."""
    ahead = np.arange(horizon)
    point = context[context.size - season + ahead % season]
    spread = np.std(context[season:] - context[:-season]) * np.sqrt(ahead // season + 1.0)
    return point, point[:, None] + spread[:, None] * norm.ppf(QUANTILES)


def quantile_loss(actual: Values, quantiles: Values) -> float:
    error = actual[..., None] - quantiles
    return float(np.sum(np.maximum(QUANTILES * error, (QUANTILES - 1.0) * error)))


def score(task: Task, forecaster: Forecaster) -> dict[str, float]:
    """Ratios of losses; `point` and `bands` are over seasonal naive without and with bands."""
    actual, horizon = task.actual, task.actual.shape[1]
    quantiles = forecaster(task.contexts, horizon)
    baselines = [naive(context, horizon, task.season) for context in task.contexts]
    point = np.stack([b[0] for b in baselines])[..., None].repeat(QUANTILES.size, -1)
    bands = np.stack([b[1] for b in baselines])
    last = np.array([context[-1] for context in task.contexts])[:, None]
    ours = quantile_loss(actual, quantiles)
    inside = (actual >= quantiles[..., 0]) & (actual <= quantiles[..., -1])
    return {
        "point": ours / quantile_loss(actual, point),
        "bands": ours / quantile_loss(actual, bands),
        "mae_persistence": float(
            np.abs(actual - quantiles[..., 4]).sum() / np.abs(actual - last).sum()
        ),
        "coverage": float(inside.mean()),
    }


def geometric_mean(rows: list[dict[str, float]], key: str) -> float:
    return float(np.exp(np.mean([np.log(row[key]) for row in rows])))


def print_scores(tasks: dict[str, Callable[[], Task]], forecaster: Forecaster) -> None:
    rows = []
    print(f"{'set':16}{'point':>8}{'bands':>8}{'MAE/last':>10}{'cover80':>9}")
    for name, task in tasks.items():
        row = score(task(), forecaster)
        rows.append(row)
        print(
            f"{name:16}{row['point']:8.3f}{row['bands']:8.3f}{row['mae_persistence']:10.3f}"
            f"{row['coverage']:9.3f}",
            flush=True,
        )
    for key in ("point", "bands"):
        print(f"geometric mean, {key}: {geometric_mean(rows, key):.4f}")
