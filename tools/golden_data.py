"""Seeded inputs for golden cases: series, masks and ids. NumPy only.

Makers return functions: of a random generator for series, of the finished series for masks and ids.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Random = np.random.RandomState  # the legacy generator: its stream never changes


def waves(batch: int, variates: int, length: int) -> Callable[[Random], np.ndarray]:
    """Seasonal metrics with a trend, noise and occasional spikes."""

    def make(random: Random) -> np.ndarray:
        shape = (batch, variates, 1)
        time = np.arange(length)
        period = random.uniform(6, 40, shape)
        phase = random.uniform(0, 2 * np.pi, shape)
        values = np.sin(2 * np.pi * time / period + phase) * random.uniform(0.5, 2, shape)
        values = values + random.uniform(-0.02, 0.02, shape) * time
        values = values + 0.3 * random.standard_normal((batch, variates, length))
        spikes = random.uniform(size=values.shape) < 0.02
        return values + np.where(spikes, 4.0, 0.0) + random.uniform(-2, 2, shape)

    return make


def prices(batch: int, variates: int, length: int) -> Callable[[Random], np.ndarray]:
    """Geometric random walks from 100 with fat-tailed daily returns of about 2 %."""

    def make(random: Random) -> np.ndarray:
        returns = 0.015 * random.standard_t(4, (batch, variates, length))
        return 100 * np.exp(np.cumsum(returns, axis=-1))

    return make


def scaled(data: Callable[[Random], np.ndarray], factor: float) -> Callable[[Random], np.ndarray]:
    return lambda random: data(random) * factor


def flat(length: int) -> Callable[[Random], np.ndarray]:
    """Two series: a constant, and one that falls to zero for good."""

    def make(random: Random) -> np.ndarray:
        values = waves(2, 1, length)(random)
        values[0] = 7.25
        values[1, :, -20:] = 0.0
        return values

    return make


def zeros(length: int) -> Callable[[Random], np.ndarray]:
    return lambda random: np.zeros((1, 1, length))


def changing_volatility(length: int) -> Callable[[Random], np.ndarray]:
    """Two series: one starts calm and grows wild, one starts wild and calms down."""

    def make(random: Random) -> np.ndarray:
        noise = random.standard_normal((2, 1, length))
        envelope = np.linspace(0.2, 4.0, length) ** 2
        return np.stack([noise[0] * envelope, noise[1] * envelope[::-1]])

    return make


def gaps(series: np.ndarray) -> np.ndarray:
    """A missing head (longer than a patch for the first variate), single holes, a long hole."""
    mask = np.ones(series.shape, bool)
    for batch in range(series.shape[0]):
        for variate in range(series.shape[1]):
            head = 19 - 7 * variate + batch
            mask[batch, variate, : max(head, 0)] = False
            mask[batch, variate, 25 + variate :: 11] = False
            start = 40 + 3 * batch
            mask[batch, variate, start : start + 9 + variate] = False
    return mask


def groups(*ids: tuple[int, ...]) -> Callable[[np.ndarray], np.ndarray]:
    """Ids by series and variate."""

    def make(series: np.ndarray) -> np.ndarray:
        return np.broadcast_to(np.asarray(ids, np.int64)[..., None], series.shape).copy()

    return make


def regrouped(patch: int) -> Callable[[np.ndarray], np.ndarray]:
    """Ids that change from patch to patch: together, then apart, then in other pairs."""
    rounds = np.array([[0, 0, 0], [0, 1, 2], [5, 5, 1], [2, -3, 2]])

    def make(series: np.ndarray) -> np.ndarray:
        length = series.shape[-1]
        # Patches are counted from the end: the context is padded on the left.
        patches = (np.arange(length) - length) // patch % len(rounds)
        return np.broadcast_to(rounds[patches].T[None], series.shape).astype(np.int64)

    return make
