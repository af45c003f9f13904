"""From measured results to the table of claims."""

from __future__ import annotations

from dataclasses import dataclass

from jobs import CLAIMS, OURS, Claim
from race import Result

Results = dict[str, dict[str, Result]]  # by row, then by contender


@dataclass(frozen=True)
class Verdict:
    claim: Claim
    against: str  # the contender it was measured against
    measured: float | None = None  # of medians
    best: float | None = None  # of the best runs
    note: str = ""

    @property
    def outcome(self) -> str:
        if self.measured is None:
            return "not measured"
        less = self.claim.unit == "<"
        for bound, word in ((self.claim.aim, "aim met"), (self.claim.at_least, "met")):
            if (self.measured <= bound) if less else (self.measured >= bound):
                return word
        return "missed"


def _timed(results: dict[str, Result], names: tuple[str, ...]) -> list[Result]:
    return [results[name] for name in names if name in results and results[name].timed]


def _why_missing(results: dict[str, Result], names: tuple[str, ...]) -> str:
    reasons = [f"{n}: {results[n].missing}" for n in names if n in results and results[n].missing]
    return "; ".join(reasons) or "left out"


def _judge(claim: Claim, results: dict[str, Result]) -> Verdict:
    if claim.row in ("memory", "spread"):
        fact = "peak_over_weights" if claim.row == "memory" else "p99_over_p50"
        ours = results.get(OURS)
        if ours is None or fact not in ours.facts:
            return Verdict(claim, claim.against, note=_why_missing(results, (OURS,)))
        return Verdict(claim, claim.against, ours.facts[fact], ours.facts[fact])

    ours = _timed(results, (claim.ours,))
    if not ours:
        return Verdict(claim, claim.against, note=_why_missing(results, (claim.ours,)))
    theirs, note = _timed(results, claim.theirs), ""
    if not theirs and claim.instead:
        theirs = _timed(results, claim.instead)
        note = _why_missing(results, claim.theirs)
    if not theirs:
        return Verdict(claim, claim.against, note=_why_missing(results, claim.theirs))
    rival = min(theirs, key=lambda result: result.median)
    fastest = min(theirs, key=lambda result: result.best)
    median, best = rival.median / ours[0].median, fastest.best / ours[0].best
    if claim.unit == "<":
        median, best = 1 / median, 1 / best
    against = rival.name if len(claim.theirs) > 1 or note else claim.against
    if rival.factor != 1:
        note = f"{rival.name} from 1/{rival.factor:g} of the samples, times {rival.factor:g}"
    return Verdict(claim, against, median, best, note)


def judge(results: Results) -> list[Verdict]:
    """A line for every claim whose row was raced."""
    return [_judge(claim, results[claim.row]) for claim in CLAIMS if claim.row in results]
