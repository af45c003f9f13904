"""Runs contenders in turn, so that other load on the machine slows all of them."""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agreement import Agreement
from contenders import Broken, Burst, Contender, Unavailable
from jobs import FOR_ORIENTATION

SETTLE_SECONDS = 0.1  # until the threads of the previous contender have stopped spinning
MOST_RUNS = 50  # in one burst


@dataclass
class Result:
    """The result of one contender in one race."""

    name: str
    agreement: Agreement | None = None
    missing: str = ""  # why it was not timed
    failed: bool = False  # it should have been
    bursts: list[Burst] = field(default_factory=list)
    factor: float = 1.0
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def timed(self) -> bool:
        return bool(self.bursts)

    @property
    def best(self) -> float:
        return min(burst.best for burst in self.bursts)

    @property
    def median(self) -> float:
        """Of the rounds' medians."""
        return statistics.median(burst.median for burst in self.bursts)

    @property
    def middle_half(self) -> tuple[float, float]:
        """Lower and upper quartile of the rounds' medians."""
        medians = [burst.median for burst in self.bursts]
        if len(medians) == 1:
            return medians[0], medians[0]
        low, _, high = statistics.quantiles(medians, n=4, method="inclusive")
        return low, high

    @property
    def runs(self) -> int:
        return sum(burst.count for burst in self.bursts)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def _guarded(result: Result) -> Iterator[None]:
    """A contender that fails is dropped; the others continue."""
    try:
        yield
    except Unavailable as reason:
        result.missing = str(reason)
    except Broken as reason:
        result.missing, result.failed = str(reason), True
        result.bursts.clear()


def _admit(contender: Contender, result: Result) -> None:
    """Starts it and compares its answer. A contender with a different answer is not timed."""
    with _guarded(result):
        contender.start()
        result.agreement = contender.agreement()
        if result.agreement is not None and not result.agreement.holds:
            result.missing = f"disagrees: {result.agreement}"
            result.failed = contender.name not in FOR_ORIENTATION
    verdict = result.missing or (f"{result.agreement}" if result.agreement else "ready")
    say(f"  {contender.name}: {verdict}")


def race(
    contenders: list[Contender], rounds: int, budget_seconds: float
) -> dict[str, Result]:
    """Every contender gets the same time in every round, for at least one run."""
    results = {each.name: Result(each.name, factor=each.factor) for each in contenders}
    counts: dict[str, int] = {}
    try:
        for contender in contenders:
            _admit(contender, results[contender.name])
        running = [each for each in contenders if not results[each.name].missing]
        for contender in running:  # the number of runs that fit into the time; also the last warm-up
            result = results[contender.name]
            with _guarded(result):
                once = contender.run(1).median / contender.factor
                counts[contender.name] = max(1, min(MOST_RUNS, int(1e3 * budget_seconds / once)))
        for number in range(rounds):
            # Each round starts with another one, so that no contender always follows the same one.
            start = number % max(1, len(running))
            for contender in running[start:] + running[:start]:
                result = results[contender.name]
                if result.missing:
                    continue
                time.sleep(SETTLE_SECONDS)
                with _guarded(result):
                    result.bursts.append(contender.run(counts[contender.name]))
            say(f"  round {number + 1} of {rounds}")
    finally:
        for contender in contenders:
            contender.close()
            results[contender.name].facts = contender.facts
    return results
