"""The batches that the bundled model is trained on: real windows, made-up series, both disguised.

A batch depends on the seed and the number of its step alone: a run that was interrupted goes on
with the batches it would have had.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

import train_synthetic
from train_corpus import Corpus

Values = NDArray[np.float64]

# How many patches a step's sequences have, how often, and how many sequences at most. The long ones
# are what `toto forecast` sees by default (4096 points), the short ones what M4's monthly has.
LENGTHS: list[tuple[float, int, int]] = [
    (0.05, 171, 8),
    (0.07, 86, 16),
    (0.46, 25, 48),
    (0.18, 13, 96),
    (0.14, 7, 160),
    (0.10, 4, 256),
]
TOKENS = 1200  # about as many in every step, so that steps take about the same time
REAL_SHARE = 0.6
MULTIVARIATE_SHARE = 0.15

GROUP_WEIGHTS = {
    "m4_hourly": 0.22,
    "m4_daily": 0.13,
    "m4_weekly": 0.08,
    "m4_monthly": 0.24,
    "m4_quarterly": 0.06,
    "m4_yearly": 0.03,
    "stocks": 0.13,
    "stocks_old": 0.03,
    "hourly": 0.06,
    "loads": 0.12,
    "loads_fine": 0.03,
    "meters": 0.05,
    "small": 0.04,
}
PRICE_GROUPS = {"stocks", "stocks_old"}


@dataclass
class Batch:
    """What `train_network: next_patch_loss` takes."""

    series: torch.Tensor  # [batch, variate, time]
    mask: torch.Tensor
    ids: torch.Tensor | None


class Batches:
    """The batches of a run, by step."""

    group_weights = GROUP_WEIGHTS
    price_groups = PRICE_GROUPS

    def __init__(self, corpus: Corpus, patch: int, seed: int, prices: float = 0.0) -> None:
        self.corpus, self.patch, self.seed, self.prices = corpus, patch, seed, prices
        order = np.argsort(corpus.lengths, kind="stable")
        self.members = []  # per group: its series, shortest first, and their lengths
        for number in range(len(corpus.groups)):
            chosen = order[corpus.group_of[order] == number]
            self.members.append((chosen, corpus.lengths[chosen]))
        self.weights = np.array([self.group_weights[name] for name in corpus.groups])
        self.is_price = np.array([name in self.price_groups for name in corpus.groups])

    def __call__(self, step: int) -> Batch:
        rng = np.random.default_rng((self.seed, step))
        shares = np.cumsum([share for share, _, _ in LENGTHS])
        _, patches, most = LENGTHS[int(np.searchsorted(shares, rng.random() * shares[-1]))]
        count = min(most, max(1, TOKENS // (patches - 1)))
        variates = int(rng.integers(2, 7)) if rng.random() < MULTIVARIATE_SHARE else 1
        groups = max(1, count // variates)
        length = patches * self.patch
        if variates == 1:
            rows = np.stack([self._series(rng, length) for _ in range(groups)])[:, None]
            ids = None
        else:
            rows = np.stack([self._related(rng, length, variates) for _ in range(groups)])
            ids = torch.from_numpy(_identities(rng, groups, variates))
        series, mask = self._present(rng, rows)
        return Batch(torch.from_numpy(series), torch.from_numpy(mask), ids)

    def _series(self, rng: np.random.Generator, length: int) -> Values:
        if self.prices > 0.0 and rng.random() < self.prices:
            return self._price(rng, length)
        if rng.random() >= REAL_SHARE:
            return train_synthetic.make(rng, length)
        values = self._real(rng, length)
        if rng.random() < 0.12:  # TSMixup: averages of unrelated series
            for _ in range(rng.integers(1, 3)):
                share = rng.uniform(0.2, 0.8)
                values = share * values + (1.0 - share) * self._real(rng, length)
        kind = rng.random()
        if kind < 0.05:
            values = values + train_synthetic.trend(rng, length) * rng.uniform(0.2, 1.0)
        elif kind < 0.10:
            values = values + train_synthetic.noise(rng, length) * rng.uniform(0.02, 0.3)
        elif kind < 0.15:
            values = np.exp(rng.uniform(-0.8, 0.8) * values)
        if rng.random() < 0.08:
            values = -values
        return values

    def _price(self, rng: np.random.Generator, length: int) -> Values:
        """A price as it is: what is mixed in or bent elsewhere would make its next step predictable."""
        if rng.random() < 0.5:
            return train_synthetic.unit(train_synthetic.walk(rng, length))
        return self._real(rng, length, self.weights * self.is_price)

    def _real(self, rng: np.random.Generator, length: int, weights: Values | None = None) -> Values:
        """A window of a real series in units of itself; NaN before its first point."""
        shortest = length - self.patch + 1  # only the first patch may be incomplete
        sizes = np.array([lengths[-1] if lengths.size else 0 for _, lengths in self.members])
        weights = np.cumsum((self.weights if weights is None else weights) * (sizes >= shortest))
        if weights[-1] == 0.0:
            return train_synthetic.make(rng, length)
        group = int(np.searchsorted(weights, rng.random() * weights[-1]))
        chosen, lengths = self.members[group]
        first = int(np.searchsorted(lengths, shortest))
        series = self.corpus[int(chosen[rng.integers(first, chosen.size)])].astype(np.float64)
        # Every k-th point, or the sum of k points: days of hours, weeks of days.
        room = series.size // shortest
        if room >= 2 and rng.random() < 0.25:
            factor = int(min(rng.choice([2, 3, 4, 5, 6, 7, 12, 24]), room))
            cut = series[series.size % factor :].reshape(-1, factor)
            # Means of a price over a week tell where the next one goes; its closes do not.
            averaged = rng.random() < 0.6 and not self.is_price[group]
            series = cut.mean(axis=1) if averaged else cut[:, int(rng.integers(factor))]
        end = int(rng.integers(min(length, series.size), series.size + 1))
        window = series[max(0, end - length) : end]
        deviation = window.std()
        window = (window - window.mean()) / (deviation if deviation > 0.0 else 1.0)
        return np.concatenate([np.full(length - window.size, np.nan), window])

    def _related(self, rng: np.random.Generator, length: int, variates: int) -> Values:
        """Variates that share causes, follow each other, form a price bar, or are strangers."""
        kind = rng.random()
        if kind < 0.2 and variates >= 4:
            return _bars(rng, length, variates)
        own = np.stack([self._series(rng, length) for _ in range(variates)])
        if kind < 0.4:
            return own
        common = self._series(rng, length + self.patch)
        total = rng.uniform(0.1, 1.0) * np.nan_to_num(own)
        for variate in range(variates):
            lag = int(rng.integers(0, self.patch + 1)) if rng.random() < 0.5 else 0
            gain = rng.normal(0.0, 1.0)
            total[variate] += gain * common[self.patch - lag : self.patch - lag + length]
        return total

    def _present(self, rng: np.random.Generator, rows: Values) -> tuple[NDArray, NDArray]:
        """As a forecast gets them: of some size and level, a first patch not always full, gaps."""
        shape = rows.shape[:2] + (1,)
        # The scaler adds 0.1 to every variance: most series should be large beside that, some not.
        small = rng.random(shape) < 0.1
        size = np.exp(np.where(small, rng.uniform(-2.0, 1.5, shape), rng.uniform(1.5, 8.0, shape)))
        level = np.where(
            rng.random(shape) < 0.7, rng.uniform(1.0, 10.0, shape), rng.normal(0.0, 5.0, shape)
        )
        values = (rows + level) * size
        mask = np.isfinite(rows)
        late = np.where(rng.random(shape) < 0.25, rng.integers(0, self.patch, shape), 0)
        whole = rng.random(shape) < 0.03  # a batch of unequal lengths: patches without any value
        late = late + whole * self.patch * rng.integers(
            0, max(1, rows.shape[2] // self.patch // 2), shape
        )
        mask &= np.arange(rows.shape[2]) >= late
        gaps = (rng.random(shape) < 0.04) & (
            rng.random(rows.shape) < rng.uniform(0.005, 0.15, shape)
        )
        mask &= ~gaps
        return np.where(mask, values, 0.0).astype(np.float32), mask


def _identities(rng: np.random.Generator, groups: int, variates: int) -> NDArray[np.int64]:
    """Mostly one family of variates; sometimes two that must not see each other."""
    split = rng.integers(1, variates, (groups, 1))
    apart = rng.random((groups, 1)) < 0.25
    return np.where(apart & (np.arange(variates) >= split), 1, 0)


def _bars(rng: np.random.Generator, length: int, variates: int) -> Values:
    """Open, high, low, close and volumes of a walk, each in units of its own deviation."""
    parts = 8
    ticks = train_synthetic.walk(rng, length * parts).reshape(length, parts)
    size = np.abs(np.log(np.maximum(np.ptp(ticks, axis=1), 1e-12)))
    volume = np.exp(0.3 * size / size.std() + 0.4 * rng.standard_normal(length))
    columns = [
        ticks[:, 0],
        ticks.max(axis=1),
        ticks.min(axis=1),
        ticks[:, -1],
        volume,
        volume[::-1],
    ]
    stacked = np.stack(columns[:variates])
    centre, deviation = stacked.mean(axis=1, keepdims=True), stacked.std(axis=1, keepdims=True)
    return (stacked - centre) / np.maximum(deviation, 1e-12)
