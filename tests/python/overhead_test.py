"""The cost of a call in addition to the library's part. bench/python_overhead.py has the figures."""

from __future__ import annotations

import os
import statistics
import sys
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from support import engine, wave

import totocpp


def calls_made(call: Callable[[], Any]) -> list[str]:
    """The Python functions entered below `call`."""
    names: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            names.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return names[1:]


def best_overhead(call: Callable[[], Any], calls: int = 300) -> float:
    """Microseconds, the best of many calls: other load on the machine only adds to it."""
    best = float("inf")
    for _ in range(calls):
        start = time.perf_counter()
        call()
        elapsed = time.perf_counter() - start
        best = min(best, 1e6 * elapsed - 1e3 * engine().timings["call"])
    return best


def resident() -> int:
    """Bytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def python_method(series: Any, horizon: int = 64, *, quantiles: Any = (), samples: int | None = None) -> Any:
    """About the interpreter's work for any call."""
    asked = (horizon, quantiles, samples)
    return asked if series is not None else None


def median_overhead(call: Callable[[], Any], values: Any, calls: int = 60) -> tuple[float, float]:
    """Microseconds, of `call` and of a Python function right after it.

    A forecast, and other processes on a busy machine, evict the interpreter from the CPU's caches:
    both are slowed down by that in the same way.
    """
    ours, others = [], []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        elapsed = time.perf_counter() - start
        ours.append(1e6 * elapsed - 1e3 * engine().timings["call"])
        call()
        start = time.perf_counter()
        python_method(values, 64, samples=128)
        others.append(1e6 * (time.perf_counter() - start))
    return statistics.median(ours), statistics.median(others)


class Overhead(unittest.TestCase):
    def setUp(self) -> None:
        values = wave(96)
        doubles, numbers, table = values.astype(np.float64), values.tolist(), np.stack([values, values])
        pipeline = totocpp.TotoPipeline(engine())
        self.calls: dict[str, Callable[[], Any]] = {
            "float32": lambda: engine().forecast(values, 1),
            "float64": lambda: engine().forecast(doubles, 1),
            "a list": lambda: engine().forecast(numbers, 1, quantiles=[0.1, 0.5]),
            "two series": lambda: engine().forecast(table, 1, samples=8),
            "a list of arrays": lambda: engine().forecast([values, doubles], 1),
            "the pipeline": lambda: pipeline.predict(values, 1, 64),
        }

    def test_a_usual_call_runs_almost_no_python(self) -> None:
        for name, call in self.calls.items():
            call()
            made = [function for function in calls_made(call) if function != "engine"]
            if name == "the pipeline":  # checks its three numbers, and wraps the answer
                self.assertLessEqual(len(made), 7, made)
            else:
                self.assertEqual(made, ["forecast"], name)

    def test_after_long_forecasts_a_call_costs_a_few_python_calls(self) -> None:
        values = wave(512)
        table = np.stack([values] * 8)
        for name, call, most in (
            ("eight series", lambda: engine().forecast(table, 1), 12),
            ("samples beyond a patch", lambda: engine().forecast(values, 64, samples=128), 12),
        ):
            with self.subTest(name):
                call()
                ours, python = min(
                    (median_overhead(call, values) for _ in range(3)), key=lambda medians: medians[0] / medians[1]
                )
                self.assertLess(ours, most * python)

    def test_memory_of_deleted_forecasts_is_reused(self) -> None:
        values = wave(512)
        table = np.stack([values] * 8)
        paths, means = set(), set()
        for _ in range(20):
            paths.add(engine().forecast(values, 64, samples=128).samples.ctypes.data)
        for _ in range(20):
            means |= {forecast.mean.ctypes.data for forecast in engine().forecast(table, 1)}
        self.assertLessEqual(len(paths), 2)  # one is the engine's, for the next call
        self.assertLessEqual(len(means), 16)

    def test_memory_in_use_is_not_reused(self) -> None:
        values = wave(96)
        kept = [engine().forecast(values * scale, 3, samples=4) for scale in (1, 2, 3)]
        samples = [forecast.samples for forecast in kept]
        mean = engine().forecast(values * 4, 3, samples=4).mean  # without its forecast
        copies = [array.copy() for array in (*samples, mean)]
        del kept
        for scale in range(5, 30):
            engine().forecast([values * scale] * 3, 3, samples=4)
        for array, copy in zip((*samples, mean), copies):
            np.testing.assert_array_equal(array, copy)

    def test_a_large_answer_is_not_kept(self) -> None:
        # One patch of six variates, 46 MB in one piece: more than the C library keeps for itself.
        steps, paths, variates = engine().patch_size, 80_000, np.stack([wave(96)] * 6)
        self.assertGreater(4 * steps * paths * len(variates), 40e6)
        for _ in range(2):  # so that the engine has its own memory
            engine().forecast(variates, steps, samples=paths, keep_samples=False, multivariate=True)
        before = resident()
        engine().forecast(variates, steps, samples=paths, multivariate=True)
        self.assertLess(resident() - before, 4 * steps * paths * len(variates) / 2)

    def test_a_call_costs_less_than_fifty_microseconds(self) -> None:
        for name, call in self.calls.items():
            with self.subTest(name):
                self.assertLess(best_overhead(call), 50)


if __name__ == "__main__":
    unittest.main()
