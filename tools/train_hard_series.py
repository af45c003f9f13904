"""Made-up series of the kinds that a small model gets wrong unless it has seen many of them.

Constant and nearly constant series, zeros with rare events, levels that jump, weeks of hours with
holidays, years of days, smooth trends with a season and hardly any noise, returns whose size comes
in clusters, plain random walks, and variates that lead and lag. The makers have the interface of
train_synthetic.py: a random generator and a length in, float64 values of any level and scale out.
"""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from train_synthetic import (
    Maker,
    Values,
    _log_uniform,
    _template,
    coloured,
    noise,
    season,
    smooth,
    unit,
)


def constant(rng: np.random.Generator, length: int) -> Values:
    """One value throughout; or with rare glitches, a new level, ticks of a coarse scale."""
    values = np.full(length, rng.normal(0.0, 3.0))
    kind = rng.random()
    if kind < 0.45:
        return values
    if kind < 0.6:  # glitches of one point
        hit = rng.random(length) < _log_uniform(rng, 0.5 / length, 0.03)
        return values + hit * rng.standard_normal(length)
    if kind < 0.75:  # one or two new levels, held
        for _ in range(rng.integers(1, 3)):
            values[int(rng.integers(length)) :] += rng.standard_normal()
        return values
    if kind < 0.9:  # a slow course or little noise, rounded to a few steps
        course = smooth(rng, length, rng.uniform(0.05, 1.0) * length)
        course = course if rng.random() < 0.5 else noise(rng, length)
        return np.round(course * _log_uniform(rng, 0.3, 4.0))
    stop = int(rng.integers(length))  # noise that stops
    values[:stop] += noise(rng, length)[:stop]
    return values


def zeros(rng: np.random.Generator, length: int) -> Values:
    """Zero but for rare events: single sizes, bursts, a rate that fades in and out."""
    gap = _log_uniform(rng, 2.0, max(4.0, 0.7 * length))
    events = rng.random(length) < 1.0 / gap
    if rng.random() < 0.3:  # events come at a rhythm
        period = max(2, int(round(gap)))
        events = (np.arange(length) + rng.integers(period)) % period == 0
        events &= rng.random(length) < rng.uniform(0.5, 1.0)
    kind = rng.random()
    if kind < 0.35:
        size = np.ones(length)
    elif kind < 0.7:
        size = np.exp(rng.uniform(0.2, 1.2) * rng.standard_normal(length))
    else:
        size = 1.0 + rng.poisson(_log_uniform(rng, 0.3, 10.0), length)
    values = events * size
    if rng.random() < 0.25:  # a burst ebbs away
        values = lfilter([1.0], [1.0, -rng.uniform(0.3, 0.9)], values)
    if rng.random() < 0.2:
        values = values * (smooth(rng, length, 0.1 * length) > rng.uniform(-1.0, 0.5))
    return np.asarray(values, dtype=np.float64)


def states(rng: np.random.Generator, length: int) -> Values:
    """Levels that last, a counter that starts over, a queue that fills and drains."""
    kind = rng.random()
    if kind < 0.5:  # a chain of a few levels
        count = int(rng.integers(2, 6))
        stay = 1.0 - 1.0 / _log_uniform(rng, 4.0, 0.5 * length + 5.0)
        moves = rng.random(length) > stay
        level = rng.standard_normal(count)[np.cumsum(moves) * int(rng.integers(1, count + 1)) % count]
    elif kind < 0.75:  # sawtooth
        period = _log_uniform(rng, 4.0, max(8.0, 0.6 * length))
        level = (np.arange(length) / period + rng.random()) % 1.0
        level = level if rng.random() < 0.5 else level ** rng.uniform(0.5, 3.0)
    else:  # reflected walk
        steps = rng.standard_normal(length) + rng.normal(0.0, 0.1)
        level = np.cumsum(steps)
        level = level - np.minimum.accumulate(np.minimum(level, 0.0))
    return np.asarray(level) + noise(rng, length) * _log_uniform(rng, 1e-4, 0.3)


def _days(rng: np.random.Generator, days: int, first: int) -> tuple[Values, Values]:
    """Per day: its weekday's height and 1 on a holiday."""
    weekday = (np.arange(days) + first) % 7
    height = np.ones(7)
    kind = rng.random()
    if kind < 0.55:
        height[5:] = rng.uniform(0.1, 1.3, 2) if rng.random() < 0.5 else rng.uniform(0.2, 1.0)
    elif kind < 0.9:
        height += rng.uniform(0.05, 0.6) * rng.standard_normal(7)
    holiday = np.zeros(days)
    if rng.random() < 0.6:
        fixed = rng.integers(0, 365, rng.integers(3, 12))
        year = (np.arange(days) + rng.integers(365)) % 365
        for day in fixed:
            holiday[(year >= day) & (year < day + rng.choice([1, 1, 1, 2, 7]))] = 1.0
    return height[weekday], holiday


def hours(rng: np.random.Generator, length: int) -> Values:
    """Weeks of hours (or half, quarter hours): days of two kinds, holidays, weather, a year."""
    day = int(rng.choice([24, 24, 24, 24, 48, 96]))
    days = length // day + 2
    height, holiday = _days(rng, days, int(rng.integers(7)))
    if rng.random() < 0.8:  # a holiday is like a Sunday
        height = np.where(holiday > 0.0, rng.uniform(0.1, 0.9), height)
    working, free = _template(rng, day), _template(rng, day)
    free = free if rng.random() < 0.4 else working
    is_free = (height < 0.85)[:, None]
    profile = np.where(is_free, free, working) - min(working.min(), free.min())
    table = profile * height[:, None] * np.exp(
        rng.uniform(0.0, 0.25) * coloured(rng, days, rng.uniform(0.0, 2.0))
    )[:, None]
    if rng.random() < 0.5:  # a level beneath, which moves with the weather
        table += rng.uniform(0.2, 3.0) + rng.uniform(0.05, 0.6) * coloured(rng, days, 1.5)[:, None]
    start = int(rng.integers(day))
    values = table.reshape(-1)[start : start + length]
    if rng.random() < 0.5:
        values = values * (1.0 + rng.uniform(0.05, 0.4) * smooth(rng, length, 60.0 * day))
    spread = noise(rng, length) * _log_uniform(rng, 0.01, 0.5)
    kind = rng.random()
    if kind < 0.5:
        return values + spread
    if kind < 0.8:
        return values * np.exp(np.clip(spread, -2.0, 2.0))
    return rng.poisson(np.clip(values, 0.0, None) * _log_uniform(rng, 0.5, 300.0)).astype(np.float64)


def days(rng: np.random.Generator, length: int) -> Values:
    """Years of days: weekdays, the year's course, holidays before and after which it differs."""
    height, holiday = _days(rng, length, int(rng.integers(7)))
    year = season(rng, length, 365.25) * rng.uniform(0.0, 0.6)
    course = coloured(rng, length, rng.uniform(1.2, 2.4)) * _log_uniform(rng, 0.02, 1.0)
    effect = rng.normal(0.0, 1.0)
    around = lfilter([1.0], [1.0, -rng.uniform(0.0, 0.7)], holiday)[::-1].copy()
    around = around if rng.random() < 0.4 else holiday
    log = np.log(np.maximum(height, 0.05)) + year + course + effect * around
    log = log + noise(rng, length) * _log_uniform(rng, 0.01, 0.5)
    if rng.random() < 0.5:
        return log
    values = np.exp(np.clip(log, -6.0, 6.0))
    return rng.poisson(values * _log_uniform(rng, 0.3, 300.0)) * 1.0 if rng.random() < 0.4 else values


def smooth_season(rng: np.random.Generator, length: int) -> Values:
    """A trend and a season that hardly change, with little noise: carbon dioxide, populations,
    employment; sometimes with one break."""
    period = float(rng.choice([12.0, 12.0, 12.0, 4.0, 52.18, 7.0, 24.0, 365.25]))
    t = np.arange(length) / max(length, 1)
    slope = rng.normal(0.0, 1.0)
    trend = slope * t + rng.normal(0.0, 0.5) * t * t
    trend += rng.uniform(0.0, 0.15) * smooth(rng, length, rng.uniform(0.1, 0.5) * length)
    if rng.random() < 0.4:
        trend += rng.uniform(0.01, 0.1) * coloured(rng, length, rng.uniform(1.8, 3.0))
    if rng.random() < 0.15:  # a sudden fall that heals
        at = int(rng.integers(length))
        after = np.maximum(np.arange(length) - at, 0)
        trend -= (np.arange(length) >= at) * rng.uniform(0.1, 1.0) * np.exp(
            -after / _log_uniform(rng, 2.0, length)
        )
    pattern = season(rng, length, period) * _log_uniform(rng, 0.02, 0.5)
    if rng.random() < 0.25:  # without a season
        pattern = np.zeros(length)
    if rng.random() < 0.4:  # it grows with the level
        pattern = pattern * np.exp(np.clip(trend, -2.0, 2.0))
    return trend + pattern + noise(rng, length) * _log_uniform(rng, 1e-4, 0.05)


def _sizes(rng: np.random.Generator, length: int) -> tuple[Values, Values]:
    """GARCH(1,1) with leverage: returns and their deviations; fat-tailed shocks of unit variance."""
    alpha, beta = rng.uniform(0.02, 0.15), rng.uniform(0.75, 0.96)
    beta = min(beta, 0.998 - alpha)
    leverage = rng.uniform(0.0, 0.08) if rng.random() < 0.4 else 0.0
    beta = max(0.0, beta - 0.5 * leverage)
    freedom = rng.uniform(3.5, 15.0)
    shocks = rng.standard_t(freedom, length) * np.sqrt((freedom - 2.0) / freedom)
    omega = 1.0 - alpha - beta - 0.5 * leverage
    variance, returns, deviations = rng.uniform(0.3, 3.0), [0.0] * length, [0.0] * length
    for index, shock in enumerate(shocks.tolist()):
        deviation = variance**0.5
        value = deviation * shock
        returns[index], deviations[index] = value, deviation
        square = value * value
        variance = omega + alpha * square + beta * variance + (leverage * square if value < 0 else 0.0)
        variance = min(variance, 400.0)
    return np.array(returns), np.array(deviations)


def returns(rng: np.random.Generator, length: int) -> Values:
    """Returns as they are: nothing to know but their size, which comes in clusters."""
    if rng.random() < 0.6:
        values, _ = _sizes(rng, length)
    else:  # stochastic volatility
        persistence = rng.uniform(0.9, 0.995)
        shock = rng.standard_normal(length) * np.sqrt(1.0 - persistence**2)
        clusters, _ = lfilter([1.0], [1.0, -persistence], shock, zi=[rng.standard_normal()])
        values = rng.standard_t(rng.uniform(3.5, 15.0), length) * np.exp(rng.uniform(0.1, 0.7) * clusters)
    kind = rng.random()
    if kind < 0.2:  # what volatility models look at
        return np.abs(values)
    return values + rng.normal(0.0, 0.03)


def prices(rng: np.random.Generator, length: int) -> Values:
    """Prices from such returns, of small and large steps, in money or in logarithms."""
    values, _ = _sizes(rng, length)
    size = _log_uniform(rng, 0.002, 0.06)
    path = np.cumsum(size * (values + rng.normal(0.0, 0.03)))
    if rng.random() < 0.25:
        return path
    return np.exp(np.clip(path - path.mean(), -8.0, 8.0))


def random_walk(rng: np.random.Generator, length: int) -> Values:
    """Gaussian, fat-tailed or whole-numbered steps, with or without drift; sometimes mean-reverting."""
    kind = rng.random()
    if kind < 0.4:
        steps = rng.standard_normal(length)
    elif kind < 0.7:
        steps = rng.standard_t(rng.uniform(3.0, 10.0), length)
    else:
        steps = np.round(rng.standard_normal(length) * _log_uniform(rng, 0.3, 4.0))
    if rng.random() < 0.3:
        steps = steps + rng.normal(0.0, 0.15) * steps.std()
    if rng.random() < 0.25:
        return lfilter([1.0], [1.0, -(1.0 - _log_uniform(rng, 0.003, 0.1))], steps)
    return np.cumsum(steps)


MAKERS: list[tuple[float, Maker]] = [
    (0.09, constant),
    (0.08, zeros),
    (0.05, states),
    (0.22, hours),
    (0.12, days),
    (0.20, smooth_season),
    (0.08, returns),
    (0.10, prices),
    (0.06, random_walk),
]


def make(rng: np.random.Generator, length: int) -> Values:
    """One series of unit scale about zero (or constant), of a kind drawn at random."""
    weights = np.cumsum([weight for weight, _ in MAKERS])
    maker = MAKERS[int(np.searchsorted(weights, rng.random() * weights[-1]))][1]
    return unit(np.nan_to_num(maker(rng, length), posinf=0.0, neginf=0.0))


def lead_and_lag(rng: np.random.Generator, length: int, variates: int, longest: int) -> Values:
    """Variates [variate, time] of which some foretell others: delayed copies, responses, sums."""
    room = longest + 1
    drive = make(rng, length + room) if rng.random() < 0.6 else coloured(rng, length + room)
    rows = [drive[room:]]
    for _ in range(1, variates):
        lag = int(np.floor(np.exp(rng.uniform(0.0, np.log(room)))))
        late = drive[room - lag : room - lag + length]
        kind = rng.random()
        if kind < 0.3:  # it answers slowly
            decay = rng.uniform(0.3, 0.97)
            late = lfilter([1.0 - decay], [1.0, -decay], late)
        elif kind < 0.5:
            late = late + rows[int(rng.integers(len(rows)))]
        elif kind < 0.6:
            late = np.maximum(late, rng.normal())
        gain = rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 2.0)
        rows.append(gain * late + noise(rng, length) * _log_uniform(rng, 0.01, 0.6))
    order = rng.permutation(variates)
    return np.stack([unit(rows[i]) for i in order])
