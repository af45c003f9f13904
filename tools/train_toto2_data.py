"""The batches that the Toto 2.0 model is trained on: what the network reads and what it must say.

Contiguous patch masking: spans of patches are hidden, the network sees a mask token in their place
and predicts all of them in one pass, as a forecast does. Hidden steps do not count in the scaler's
statistics. A batch depends on the seed and the number of its step alone.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

import train_data
import train_hard_series
import train_synthetic
from train_corpus import Corpus
from train_data import Values

# Share of the steps and patches of a sequence. 32 patches are the 1024 points of the published
# table, 128 the 4096 of the longest context.
LENGTHS: list[tuple[float, int]] = [
    (0.05, 128),
    (0.10, 64),
    (0.36, 32),
    (0.19, 16),
    (0.18, 8),
    (0.12, 4),
]
TOKENS = 4096  # of a step
REAL_SHARE = 0.5
HARD_SHARE = 0.3  # the rest comes from train_synthetic
MULTIVARIATE_SHARE = 0.12
LATE_SHARE = 0.08  # of the steps: series that begin at different patches
NEWBORN_SHARE = 0.06  # of the rows: all that is known is part of one patch
MIN_OBSERVED = 8  # as the reference's wrapper: fewer values do not make statistics
SMALLEST_SCALE = 1e-6
LONGEST_SPAN = 24

GROUP_WEIGHTS = {
    "m4_hourly": 0.17,
    "m4_daily": 0.11,
    "m4_weekly": 0.06,
    "m4_monthly": 0.20,
    "m4_quarterly": 0.06,
    "m4_yearly": 0.03,
    "stocks": 0.11,
    "stocks_old": 0.02,
    "hourly": 0.05,
    "loads": 0.10,
    "loads_fine": 0.04,
    "meters": 0.04,
    "small": 0.03,
    "pedestrians": 0.04,
    "sensors": 0.01,
    "months": 0.07,
    "quarters": 0.02,
    "years": 0.01,
    "weeks": 0.03,
    "fred": 0.01,
    "markets": 0.02,
}
PRICE_GROUPS = {"stocks", "stocks_old", "markets"}


@dataclass
class Batch:
    """Inputs and targets of `tokens` patches; a token's target is the patch after it."""

    patches: NDArray[np.float32]  # [batch, variate, token, 2 * patch]: values, flags
    groups: NDArray[np.int64] | None  # [batch, variate, token]; None: all see all
    target: NDArray[np.float32]  # [batch, variate, token, patch]
    weight: NDArray[np.float32]  # like target; sums to one

    def tensors(self) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor, torch.Tensor]:
        groups = None if self.groups is None else torch.from_numpy(self.groups)
        patches, target, weight = map(torch.from_numpy, (self.patches, self.target, self.weight))
        return patches, groups, target, weight


def statistics(values: Values, known: NDArray[np.bool_], patch: int) -> tuple[Values, Values, Values]:
    """Location, scale and count at the end of every patch, of the known values up to there."""
    x = np.where(known, values, 0.0)
    count = known.cumsum(-1)
    location = x.cumsum(-1) / np.maximum(count, 1)
    before = np.concatenate([np.zeros_like(location[..., :1]), location[..., :-1]], -1)
    squares = ((x - before) * (x - location) * known).cumsum(-1)
    scale = np.sqrt(squares / np.maximum(count - 1, 1)).clip(SMALLEST_SCALE)
    last = slice(patch - 1, None, patch)
    location, scale, count = location[..., last], scale[..., last], count[..., last]
    first = known & (known.cumsum(-1) <= MIN_OBSERVED)
    number = first.sum(-1, keepdims=True)
    middle = (values * first).sum(-1, keepdims=True) / np.maximum(number, 1)
    spread = (((values - middle) * first) ** 2).sum(-1, keepdims=True) / np.maximum(number - 1, 1)
    few = count < MIN_OBSERVED
    spread = np.sqrt(spread).clip(SMALLEST_SCALE)
    return np.where(few, middle, location), np.where(few, spread, scale), count


def prepare(
    values: Values, mask: NDArray[np.bool_], shown: NDArray[np.bool_], ids: NDArray[np.int64], patch: int
) -> Batch:
    """
    values, mask: [batch, variate, time], finite, true where observed; shown: [batch, variate, patch],
    false where a patch is hidden; ids: [batch, variate].
    """
    known = mask & np.repeat(shown, patch, -1)
    location, scale, count = statistics(values, known, patch)
    shape = (*values.shape[:2], -1, patch)
    x, observed, seen = values.reshape(shape), mask.reshape(shape), known.reshape(shape)
    inputs = np.where(seen, np.arcsinh((x - location[..., None]) / scale[..., None]), 0.0)
    target = np.arcsinh((x[:, :, 1:] - location[:, :, :-1, None]) / scale[:, :, :-1, None])
    absent = shown & ~observed.any(-1)
    groups = np.where(absent, -1, ids[..., None])[:, :, :-1]
    counts = observed[:, :, 1:] & ((count[:, :, :-1] >= MIN_OBSERVED) & ~absent[:, :, :-1])[..., None]
    # Quiet series count more: the same loss is a larger part of what can be known of them.
    whole = np.where(mask, values, 0.0)
    middle = whole.sum(-1, keepdims=True) / np.maximum(mask.sum(-1, keepdims=True), 1)
    spread = np.where(mask, values - middle, 0.0)
    size = np.sqrt((spread**2).sum(-1, keepdims=True) / np.maximum(mask.sum(-1, keepdims=True), 1))
    steps = np.abs(np.diff(spread / np.maximum(size, 1e-9), axis=-1)).mean(-1)
    weight = counts * ((np.minimum(steps, 2.0) + 0.03) ** -0.5)[..., None, None]
    weight = np.where(counts, weight, 0.0) / max(1e-9, float(weight.sum()))
    flags = ~seen[:, :, :-1]
    patches = np.concatenate([inputs[:, :, :-1], flags], -1).astype(np.float32)
    alike = bool((groups == groups[0, 0, 0]).all())
    return Batch(
        patches,
        None if alike else groups,
        np.where(counts, target, 0.0).astype(np.float32),
        weight.astype(np.float32),
    )


def spans(rng: np.random.Generator, rows: int, patches: int) -> NDArray[np.bool_]:
    """Which patches are shown, [row, patch]: the first always; the rest as a forecast or in spans."""
    shown = np.ones((rows, patches), dtype=bool)
    longest = max(1, min(LONGEST_SPAN, patches - 1))

    def draw() -> int:
        return min(longest, int(np.exp(rng.uniform(0.0, np.log(longest + 1.0)))))

    for row in shown:
        kind = rng.random()
        if kind < 0.25:
            continue
        if kind < 0.55:  # one forecast at the end
            row[patches - draw() :] = False
            continue
        at = 1 + int(rng.integers(0, max(1, patches // 3)))
        while at < patches:
            length = draw()
            row[at : at + length] = False
            at += length + 1 + int(rng.integers(0, max(1, patches // 3)))
    return shown


class Batches(train_data.Batches):
    """The batches of a run, by step."""

    group_weights = GROUP_WEIGHTS
    price_groups = PRICE_GROUPS

    def __call__(self, step: int) -> Batch:  # type: ignore[override]
        rng = np.random.default_rng((self.seed, step))
        shares = np.cumsum([share for share, _ in LENGTHS])
        _, tokens = LENGTHS[int(np.searchsorted(shares, rng.random() * shares[-1]))]
        length = (tokens + 1) * self.patch
        variates = int(rng.integers(2, 7)) if rng.random() < MULTIVARIATE_SHARE else 1
        rows = max(1, TOKENS // tokens // variates)
        if variates == 1:
            values = np.stack([self._series(rng, length) for _ in range(rows)])[:, None]
            ids = np.zeros((rows, 1), dtype=np.int64)
        else:
            values = np.stack([self._related(rng, length, variates) for _ in range(rows)])
            ids = train_data._identities(rng, rows, variates)
        values, mask = self._present(rng, values)
        shown = np.repeat(spans(rng, rows, tokens + 1)[:, None], variates, 1)
        if variates == 1:
            self._newborn(rng, values, mask, shown)
        elif rng.random() < 0.25:  # the future of one variate is known
            shown[:, int(rng.integers(variates))] = True
        return prepare(values, mask, shown, ids, self.patch)

    def _series(self, rng: np.random.Generator, length: int) -> Values:
        if self.prices > 0.0 and rng.random() < self.prices:
            return self._price(rng, length)
        kind = rng.random()
        if kind < HARD_SHARE:
            return train_hard_series.make(rng, length)
        if kind < 1.0 - REAL_SHARE:
            return train_synthetic.make(rng, length)
        values = self._real(rng, length)
        if rng.random() < 0.10:
            for _ in range(rng.integers(1, 3)):  # TSMixup: averages of unrelated series
                share = rng.uniform(0.2, 0.8)
                values = share * values + (1.0 - share) * self._real(rng, length)
        kind = rng.random()
        if kind < 0.04:
            values = values + train_synthetic.trend(rng, length) * rng.uniform(0.2, 1.0)
        elif kind < 0.08:
            values = values + train_synthetic.noise(rng, length) * rng.uniform(0.02, 0.3)
        elif kind < 0.13:
            values = np.exp(rng.uniform(-0.8, 0.8) * values)
        elif kind < 0.17:
            values = values[::-1].copy()
        return -values if rng.random() < 0.08 else values

    def _related(self, rng: np.random.Generator, length: int, variates: int) -> Values:
        if rng.random() < 0.4:
            return train_hard_series.lead_and_lag(rng, length, variates, 2 * self.patch)
        return super()._related(rng, length, variates)

    def _present(self, rng: np.random.Generator, rows: Values) -> tuple[Values, NDArray[np.bool_]]:
        """Of some level; a first patch that is not always full, gaps, seldom a late start.

        The network sees neither level nor scale: they only decide what float32 leaves of them.
        """
        shape = rows.shape[:2] + (1,)
        mask = np.isfinite(rows)
        late = np.where(rng.random(shape) < 0.25, rng.integers(0, self.patch, shape), 0)
        if rng.random() < LATE_SHARE:
            patches = rows.shape[2] // self.patch
            whole = (rng.random(shape) < 0.5) * rng.integers(0, max(1, patches // 2), shape)
            late = late + whole * self.patch
        mask &= np.arange(rows.shape[2]) >= late
        gaps = (rng.random(shape) < 0.04) & (
            rng.random(rows.shape) < rng.uniform(0.005, 0.15, shape)
        )
        mask &= ~gaps
        level = np.where(rng.random(shape) < 0.7, rng.uniform(1, 10, shape), rng.normal(0, 3, shape))
        return np.where(mask, rows + level, 0.0), mask

    def _newborn(
        self,
        rng: np.random.Generator,
        values: Values,
        mask: NDArray[np.bool_],
        shown: NDArray[np.bool_],
    ) -> None:
        """Some rows begin as a series shorter than one patch does in a forecast: zeros before its
        first value that count as observed, and nothing but mask tokens after it."""
        few = rng.random(values.shape[0]) < NEWBORN_SHARE
        for row in np.flatnonzero(few):
            at = int(rng.integers(0, self.patch - 3))
            values[row, :, :at] = 0.0
            mask[row, :, : self.patch] = True
            shown[row, :, 1 : 1 + int(rng.integers(1, 4))] = False


_batches: Batches | None = None


def _start(corpus: Corpus, patch: int, seed: int, prices: float) -> None:
    global _batches
    # Only the training itself decides what to do about a signal; the pool ends its workers by one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _batches = Batches(corpus, patch, seed, prices)


def _make(step: int) -> Batch:
    assert _batches is not None
    return _batches(step)


def stream(
    corpus: Corpus, patch: int, seed: int, prices: float, first: int, workers: int
) -> Iterator[Batch]:
    """The batches from a step on, made by other processes ahead of need; the same for any number.

    The processes are forked, so they must not call PyTorch: its threads do not survive that.
    """
    if workers == 0:
        batches, step = Batches(corpus, patch, seed, prices), first
        while True:
            yield batches(step)
            step += 1
    context = multiprocessing.get_context("fork")
    with context.Pool(workers, _start, (corpus, patch, seed, prices)) as pool:
        ahead = [pool.apply_async(_make, (first + i,)) for i in range(2 * workers + 2)]
        step = first + len(ahead)
        while True:
            yield ahead.pop(0).get()
            ahead.append(pool.apply_async(_make, (step,)))
            step += 1
