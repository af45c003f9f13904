"""The result as Markdown for people and as JSON for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from jobs import JOBS
from race import Result
from verdicts import Results, Verdict

OTHER_TITLES = {
    "start": "Process start to first forecast (context 512, 1 step, 128 samples)",
    "memory": "Peak memory (context 512, 1 step, 128 samples)",
    "spread": "Latency spread over 200 forecasts (context 512, 1 step, 128 samples)",
    "gemm": "f32 matrix products at 512 rows, every weight matrix of the network once",
}


def title_of(row: str) -> str:
    return JOBS[row].title if row in JOBS else OTHER_TITLES[row]


def number(value: float) -> str:
    """Three digits that matter."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def figure(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "%":
        return f"{100 * value:.0f} %"
    return f"{number(value)}{'x' if unit == 'x' else ''}"


def bound(value: float, unit: str) -> str:
    if unit == "%":
        return f"{100 * value:.0f} %"
    return f"{value:g}x" if unit == "x" else f"at most {value:g}"


def _table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    rule = "|" + "---|" * len(header)
    return [f"| {' | '.join(header)} |", rule, *(f"| {' | '.join(line)} |" for line in lines)]


def claim_table(verdicts: list[Verdict]) -> list[str]:
    header = ("work, base-size model", "against", "at least", "aim", "measured", "best / best", "")
    lines = []
    for verdict in verdicts:
        claim = verdict.claim
        lines.append(
            (
                claim.work,
                verdict.against,
                bound(claim.at_least, claim.unit),
                bound(claim.aim, claim.unit),
                figure(verdict.measured, claim.unit),
                figure(verdict.best, claim.unit),
                verdict.outcome + (f" ({verdict.note})" if verdict.note else ""),
            )
        )
    return _table(header, lines)


def _remarks(result: Result) -> str:
    facts, remarks = result.facts, []
    if result.factor != 1:
        remarks.append(f"1/{result.factor:g} of the samples measured, times {result.factor:g}")
    if facts.get("first_ms", 0) > 10 * 1e3:
        remarks.append(f"first call {facts['first_ms'] / 1e3:.0f} s")
    if "peak_mb" in facts:
        remarks.append(f"peak {facts['peak_mb']:.0f} MB")
    if "peak_rss_mb" in facts:
        remarks.append(f"peak {facts['peak_rss_mb']:.0f} MB, weights {facts['weights_mb']:.0f} MB")
    for fact, noun in (("replans_after_warmup", "replans"), ("allocations_after_warmup", "allocations")):
        if facts.get(fact):
            remarks.append(f"{facts[fact]} {noun} after warm-up")
    return "; ".join(remarks)


def result_table(results: dict[str, Result]) -> list[str]:
    header = (
        "contender", "best ms", "median ms", "middle half of rounds", "runs", "agreement", "remarks",
    )
    lines, missing = [], []
    for result in results.values():
        if not result.timed:
            missing.append(f"- {result.name}: not timed: {result.missing}")
            continue
        low, high = result.middle_half
        lines.append(
            (
                result.name,
                number(result.best),
                number(result.median),
                f"{number(low)} to {number(high)}",
                f"{result.runs} in {len(result.bursts)} rounds",
                str(result.agreement) if result.agreement else "-",
                _remarks(result),
            )
        )
    return _table(header, lines) + ([""] + missing if missing else [])


def markdown(
    verdicts: list[Verdict], results: Results, head: list[str], golden: str, complaints: list[str]
) -> str:
    lines = [
        "# Side by side",
        "",
        "One run, contenders interleaved, the same number of threads each. Ratios are of medians over"
        " the rounds; best / best is next to them. What is compared, and the limits of the comparison:"
        " docs/benchmarks.md.",
        "",
        *(f"- {line}" for line in head),
        "",
        *claim_table(verdicts),
        "",
        f"Answers, checked before anything was timed: {golden}",
    ]
    if complaints:
        lines += ["", "**Failed:**", "", *(f"- {complaint}" for complaint in complaints)]
    for row, found in results.items():
        lines += ["", f"## {title_of(row)}", "", *result_table(found)]
    return "\n".join(lines) + "\n"


def as_json(verdicts: list[Verdict], results: Results, head: dict[str, Any]) -> dict[str, Any]:
    rows = {
        row: [
            {
                "contender": result.name,
                "missing": result.missing or None,
                "agreement": asdict(result.agreement) if result.agreement else None,
                "best_ms": result.best if result.timed else None,
                "median_ms": result.median if result.timed else None,
                "middle_half_ms": list(result.middle_half) if result.timed else None,
                "runs": result.runs,
                "rounds": [asdict(burst) for burst in result.bursts],
                "factor": result.factor,
                "facts": result.facts,
            }
            for result in found.values()
        ]
        for row, found in results.items()
    }
    claims = [
        {
            "work": verdict.claim.work,
            "against": verdict.against,
            "unit": verdict.claim.unit,
            "at_least": verdict.claim.at_least,
            "aim": verdict.claim.aim,
            "measured": verdict.measured,
            "best": verdict.best,
            "outcome": verdict.outcome,
            "note": verdict.note or None,
        }
        for verdict in verdicts
    ]
    return {**head, "claims": claims, "rows": rows}
