"""What a call costs beyond the library's own part of it. bench/python_overhead.py has the figures."""

from __future__ import annotations

import sys
import time
import unittest
from collections.abc import Callable
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
    """Microseconds, in the best of many calls: what others do on the machine only adds to it."""
    best = float("inf")
    for _ in range(calls):
        start = time.perf_counter()
        call()
        elapsed = time.perf_counter() - start
        best = min(best, 1e6 * elapsed - 1e3 * engine().timings["call"])
    return best


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

    def test_a_usual_call_goes_straight_to_the_library(self) -> None:
        for name, call in self.calls.items():
            call()
            made = [function for function in calls_made(call) if function != "engine"]
            if name == "the pipeline":  # checks its three numbers, and wraps the answer
                self.assertLessEqual(len(made), 7, made)
            else:
                self.assertEqual(made, ["forecast"], name)

    def test_fifty_microseconds(self) -> None:
        for name, call in self.calls.items():
            with self.subTest(name):
                self.assertLess(best_overhead(call), 50)


if __name__ == "__main__":
    unittest.main()
