"""Series made up on the fly: what a forecaster should have seen besides the few real data sets.

Every maker takes a random generator and a length and returns float64 values of any level and scale;
the caller normalises them. A maker is cheap (well under a millisecond for 600 points), because it
shares the core with the training: Gaussian processes are drawn by their spectrum, not by a Cholesky
factor, and recursions run in `scipy.signal.lfilter`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

Values = NDArray[np.float64]
Maker = Callable[[np.random.Generator, int], Values]

# Periods that occur together, and how often. Hours first: they are the hardest to get right.
CALENDARS: list[tuple[float, tuple[float, ...]]] = [
    (0.33, (24.0, 168.0)),  # hours
    (0.05, (48.0, 336.0)),  # half hours
    (0.05, (96.0, 672.0)),  # quarters of an hour
    (0.03, (144.0, 1008.0)),  # ten minutes
    (0.03, (288.0, 2016.0)),  # five minutes
    (0.02, (60.0, 1440.0)),  # minutes
    (0.08, (7.0, 365.25)),  # days
    (0.03, (5.0, 21.0)),  # trading days
    (0.08, (52.18, 13.04)),  # weeks
    (0.18, (12.0,)),  # months
    (0.05, (4.0,)),  # quarters
]


def smooth(rng: np.random.Generator, length: int, scale: float) -> Values:
    """A Gaussian process with an RBF kernel of this length scale, by its spectrum."""
    size = 2 * length
    frequency = np.fft.rfftfreq(size) * 2.0 * np.pi
    weight = np.exp(-0.25 * (frequency * scale) ** 2)
    noise = rng.standard_normal((2, frequency.size))
    return unit(np.fft.irfft((noise[0] + 1j * noise[1]) * weight, size)[:length])


def coloured(rng: np.random.Generator, length: int, exponent: float | None = None) -> Values:
    """Noise with a spectrum of f^-exponent: from white over pink to smoother than a random walk."""
    exponent = rng.uniform(0.0, 2.6) if exponent is None else exponent
    size = 2 * length
    frequency = np.fft.rfftfreq(size)
    frequency[0] = frequency[1]
    noise = rng.standard_normal((2, frequency.size))
    spectrum = (noise[0] + 1j * noise[1]) * frequency ** (-0.5 * exponent)
    return unit(np.fft.irfft(spectrum, size)[:length])


def unit(values: Values) -> Values:
    deviation = values.std()
    return (values - values.mean()) / deviation if deviation > 1e-12 else values * 0.0


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _template(rng: np.random.Generator, points: int) -> Values:
    """One period, sampled finely enough to be read between its points."""
    phase = np.arange(points) / points
    kind = rng.random()
    if kind < 0.45:  # harmonics that fall off
        count = int(rng.integers(1, 7))
        order = np.arange(1, count + 1)
        amplitude = rng.standard_normal(count) * order ** -rng.uniform(0.3, 1.8)
        angle = 2.0 * np.pi * (np.outer(order, phase) + rng.random((count, 1)))
        shape = amplitude @ np.cos(angle)
    elif kind < 0.70:  # one to three humps: rush hours, meals, noon
        shape = np.zeros(points)
        for _ in range(rng.integers(1, 4)):
            distance = np.abs((phase - rng.random() + 0.5) % 1.0 - 0.5)
            shape += rng.uniform(0.3, 1.0) * np.exp(-0.5 * (distance / rng.uniform(0.02, 0.2)) ** 2)
        shape *= rng.choice([1.0, 1.0, 1.0, -1.0])
    elif kind < 0.82:  # on and off
        edges = rng.random(2) * 0.6 + np.array([0.0, 0.3])
        steep = _log_uniform(rng, 0.005, 0.06)
        shape = 1.0 / (1.0 + np.exp(-(phase - edges[0]) / steep))
        shape -= 1.0 / (1.0 + np.exp(-(phase - edges[1]) / steep))
        shape = np.roll(shape, rng.integers(points))
    elif kind < 0.92:  # anything, joined by straight lines
        knots = int(rng.integers(3, 25))
        heights = rng.standard_normal(knots)
        shape = np.interp(phase * knots, np.arange(knots + 1), np.append(heights, heights[0]))
    else:  # one spike
        shape = (np.abs((phase - rng.random() + 0.5) % 1.0 - 0.5) < rng.uniform(0.01, 0.06)) * 1.0
    return unit(shape)


def _read(template: Values, position: Values) -> Values:
    """The template at positions in periods, interpolated."""
    points = template.size
    at = (position % 1.0) * points
    low = at.astype(np.int64) % points
    part = at - np.floor(at)
    return template[low] * (1.0 - part) + template[(low + 1) % points] * part


def season(rng: np.random.Generator, length: int, period: float) -> Values:
    """A repeating shape, of constant or slowly changing size, seldom of a drifting phase."""
    points = int(round(period)) if period >= 24.0 else 96
    position = np.arange(length) / period + rng.random()
    if rng.random() < 0.06:
        position = position + 0.15 * smooth(rng, length, rng.uniform(2.0, 8.0) * period)
    if period < 13.0 and abs(period - round(period)) < 1e-9 and rng.random() < 0.5:
        heights = rng.standard_normal(int(period))  # months and weekdays need not be smooth
        shape = heights[(np.arange(length) + rng.integers(int(period))) % int(period)]
    else:
        shape = _read(_template(rng, points), position)
    if rng.random() < 0.3:
        shape = shape * np.exp(
            rng.uniform(0.1, 0.6) * smooth(rng, length, rng.uniform(2, 20) * period)
        )
    if rng.random() < 0.15:  # the shape itself changes into another one
        other = _read(_template(rng, points), position)
        blend = 1.0 / (1.0 + np.exp(-smooth(rng, length, rng.uniform(3.0, 20.0) * period) * 2.0))
        shape = shape * blend + other * (1.0 - blend)
    return shape


def _week(rng: np.random.Generator, length: int, day: float) -> Values:
    """A day that differs between the days of a week: weekends, or every day its own height."""
    position = np.arange(length) / day + rng.uniform(0.0, 7.0)
    weekday = np.floor(position).astype(np.int64) % 7
    points = int(day)
    working = _read(_template(rng, points), position)
    kind = rng.random()
    if kind < 0.45:  # another, usually lower, shape on one or two days
        rest = _read(_template(rng, points), position)
        rest = (
            rest * rng.uniform(0.2, 0.8) if rng.random() < 0.5 else working * rng.uniform(0.2, 0.9)
        )
        free = weekday >= rng.choice([5, 5, 5, 6])
        return np.where(free, rest - rng.uniform(0.0, 1.5), working)
    height = 1.0 + rng.uniform(0.05, 0.5) * rng.standard_normal(7)
    level = rng.uniform(0.0, 0.8) * rng.standard_normal(7)
    return working * height[weekday] + level[weekday]


def trend(rng: np.random.Generator, length: int) -> Values:
    """A slow course of unit size: lines, bends, growth, saturation, wandering levels."""
    t = np.linspace(0.0, 1.0, length)
    kind = rng.random()
    if kind < 0.22:
        return rng.choice([-1.0, 1.0]) * t * 3.4
    if kind < 0.40:  # bends
        knots = np.concatenate([[0.0], np.sort(rng.random(rng.integers(1, 5))), [1.0]])
        return unit(np.interp(t, knots, np.cumsum(rng.standard_normal(knots.size))))
    if kind < 0.52:  # growth or decay at a constant rate
        return unit(np.exp(rng.uniform(0.5, 4.0) * rng.choice([-1.0, 1.0]) * t))
    if kind < 0.66:  # saturation
        steep = _log_uniform(rng, 4.0, 40.0)
        return rng.choice([-1.0, 1.0]) * 2.5 / (1.0 + np.exp(-steep * (t - rng.uniform(-0.1, 1.1))))
    if kind < 0.85:
        return smooth(rng, length, rng.uniform(0.05, 0.6) * length)
    return unit(np.cumsum(rng.standard_normal(length)))


def noise(rng: np.random.Generator, length: int) -> Values:
    """White, fat-tailed, autocorrelated or of changing size; of unit scale or so."""
    kind = rng.random()
    if kind < 0.4:
        return rng.standard_normal(length)
    if kind < 0.6:
        return rng.standard_t(rng.uniform(2.5, 8.0), length) * 0.8
    if kind < 0.85:
        return unit(lfilter([1.0], [1.0, -rng.uniform(0.2, 0.97)], rng.standard_normal(length)))
    return rng.standard_normal(length) * np.exp(0.7 * smooth(rng, length, rng.uniform(5, 100)))


def _choose_calendar(rng: np.random.Generator) -> tuple[float, ...]:
    weights = np.array([weight for weight, _ in CALENDARS])
    draw = rng.random()
    if draw > weights.sum():  # no calendar: any period
        return (_log_uniform(rng, 3.0, 200.0),)
    return CALENDARS[int(np.searchsorted(np.cumsum(weights), draw))][1]


def seasonal(rng: np.random.Generator, length: int) -> Values:
    """Trend, one or two seasons of a calendar and noise, added or multiplied."""
    periods = _choose_calendar(rng)
    if len(periods) == 2 and abs(periods[1] - 7 * periods[0]) < 1e-9 and rng.random() < 0.6:
        pattern = _week(rng, length, periods[0])
    else:
        pattern = season(rng, length, periods[0])
        if len(periods) > 1 and rng.random() < 0.7:
            pattern = pattern + rng.uniform(0.1, 1.0) * season(rng, length, periods[1])
    # Often a trend many times as large as the season: carbon dioxide, populations, prices.
    course = trend(rng, length) * _log_uniform(rng, 0.03, 12.0) if rng.random() < 0.8 else 0.0
    level = 0.0
    if rng.random() < 0.35:  # what a season is not: weather, demand, a level that wanders
        level = coloured(rng, length, rng.uniform(1.0, 2.2)) * _log_uniform(rng, 0.05, 1.5)
    spread = noise(rng, length) * _log_uniform(rng, 0.01, 1.0)
    if rng.random() < 0.4:  # everything in proportion to the level
        exponent = rng.uniform(0.1, 0.9) * (pattern + course + level + spread)
        total = np.exp(exponent * min(1.0, 6.0 / max(np.ptp(exponent), 1e-12)))
    else:
        total = pattern + course + level + spread
    if rng.random() < 0.08:  # dark at night, closed on Sundays
        total = np.maximum(total - np.quantile(total, rng.uniform(0.1, 0.6)), 0.0)
    return total


def gaussian_process(rng: np.random.Generator, length: int) -> Values:
    """Sums and products of kernels: RBF, rough, periodic, linear, white."""

    def part() -> Values:
        kind = rng.random()
        if kind < 0.3:
            return smooth(rng, length, _log_uniform(rng, 2.0, length))
        if kind < 0.5:
            return coloured(rng, length)
        if kind < 0.85:
            return season(rng, length, _choose_calendar(rng)[0])
        return np.linspace(-1.7, 1.7, length) * rng.choice([-1.0, 1.0])

    total = part()
    for _ in range(rng.integers(0, 4)):
        total = total + rng.uniform(0.2, 1.5) * part() if rng.random() < 0.6 else total * part()
    return unit(total) + noise(rng, length) * _log_uniform(rng, 0.005, 0.5)


def autoregression(rng: np.random.Generator, length: int) -> Values:
    """ARMA with stable roots, differenced not at all or once."""
    poly = np.ones(1)
    for _ in range(rng.integers(1, 4)):
        radius = rng.uniform(0.3, 0.995)
        if rng.random() < 0.5:
            poly = np.convolve(poly, [1.0, -radius * rng.choice([1.0, 1.0, 1.0, -1.0])])
        else:
            angle = 2.0 * np.pi / _log_uniform(rng, 2.5, 100.0)
            poly = np.convolve(poly, [1.0, -2.0 * radius * np.cos(angle), radius * radius])
    moving = np.concatenate([[1.0], rng.uniform(-0.6, 0.6, rng.integers(0, 4))])
    values = lfilter(moving, poly, noise(rng, length + 200))[200:]
    return np.cumsum(unit(values)) if rng.random() < 0.15 else values


def walk(rng: np.random.Generator, length: int) -> Values:
    """A price: fat-tailed steps whose size comes in clusters, sometimes a drift, jumps, ticks."""
    persistence = rng.uniform(0.9, 0.995)
    shock = rng.standard_normal(length) * np.sqrt(1.0 - persistence**2)
    start = [persistence * rng.standard_normal()]  # begin in the middle of the clusters
    clusters, _ = lfilter([1.0], [1.0, -persistence], shock, zi=start)
    size = _log_uniform(rng, 0.003, 0.05) * np.exp(rng.uniform(0.0, 0.8) * clusters)
    steps = size * rng.standard_t(rng.uniform(3.0, 12.0), length)
    drift = rng.normal(0.0, 0.04) * size.mean()
    if rng.random() < 0.15:
        steps += (rng.random(length) < 0.01) * rng.standard_normal(length) * size.mean() * 8.0
    if rng.random() < 0.2:  # trades that bounce between two quotes
        bounce = rng.standard_normal(length) * size.mean() * rng.uniform(0.1, 0.6)
        return np.exp(np.cumsum(steps + drift) + bounce)
    path = np.cumsum(steps + drift)
    return np.exp(np.clip(path, -20.0, 20.0)) if rng.random() < 0.8 else path


def structural(rng: np.random.Generator, length: int) -> Values:
    """Local level, local slope and a season that renews itself: what exponential smoothing fits."""
    level = np.cumsum(noise(rng, length)) * _log_uniform(rng, 0.003, 0.5)
    slope = np.cumsum(rng.standard_normal(length)) * _log_uniform(rng, 1e-4, 0.01)
    slope += rng.normal(0.0, 0.02)
    values = (
        level + np.cumsum(slope) * rng.choice([0.0, 1.0]) + noise(rng, length) * rng.uniform(0, 0.5)
    )
    period = int(round(_choose_calendar(rng)[0]))
    if rng.random() < 0.7 and period < length:
        rounds = -(-length // period)
        renewed = np.cumsum(rng.standard_normal((rounds, period)), axis=0) * _log_uniform(
            rng, 0.005, 0.2
        )
        values = values + (renewed + _template(rng, period)).reshape(-1)[:length] * rng.uniform(
            0.3, 3.0
        )
    return np.exp(0.3 * unit(values)) if rng.random() < 0.3 else values


def intermittent(rng: np.random.Generator, length: int) -> Values:
    """Counts, many of them zero, with a rate that may have a season."""
    rate = _log_uniform(rng, 0.05, 20.0) * np.exp(0.5 * smooth(rng, length, rng.uniform(20, 200)))
    if rng.random() < 0.6:
        rate = rate * np.exp(rng.uniform(0.3, 1.2) * season(rng, length, _choose_calendar(rng)[0]))
    rate = np.minimum(rate, 1e4)
    if rng.random() < 0.5:  # overdispersed
        shape = rng.uniform(0.5, 5.0)
        rate = rate * rng.gamma(shape, 1.0 / shape, length)
    return rng.poisson(rate).astype(np.float64)


def shifts(rng: np.random.Generator, length: int) -> Values:
    """Levels that hold for a while, with noise, ramps and returns to the old level."""
    count = int(rng.integers(1, max(2, length // 40)))
    where = np.sort(rng.integers(0, length, count))
    heights = rng.standard_normal(count + 1)
    if rng.random() < 0.4:
        heights = heights[0] + (np.arange(count + 1) % 2) * heights[-1]  # two states
    values = heights[np.searchsorted(where, np.arange(length), side="right")]
    if rng.random() < 0.3:
        decay = rng.uniform(0.7, 0.98)
        values = lfilter([1.0 - decay], [1.0, -decay], values, zi=[decay * values[0]])[0]
    if rng.random() < 0.4:
        values = values + 0.5 * season(rng, length, _choose_calendar(rng)[0])
    return values + noise(rng, length) * _log_uniform(rng, 0.005, 0.4)


MAKERS: list[tuple[float, Maker]] = [
    (0.38, seasonal),
    (0.12, gaussian_process),
    (0.07, autoregression),
    (0.19, walk),
    (0.12, structural),
    (0.04, intermittent),
    (0.04, shifts),
    (0.04, coloured),
]


def make(rng: np.random.Generator, length: int) -> Values:
    """One series of unit scale about zero, of a kind drawn at random."""
    weights = np.cumsum([weight for weight, _ in MAKERS])
    maker = MAKERS[int(np.searchsorted(weights, rng.random() * weights[-1]))][1]
    values = maker(rng, length)
    if rng.random() < 0.06:  # outliers
        hit = rng.random(length) < rng.uniform(0.002, 0.02)
        values = values + hit * rng.standard_t(3.0, length) * 4.0 * values.std()
    return unit(np.nan_to_num(values, posinf=0.0, neginf=0.0))
