"""Whether two answers agree, within a stated tolerance. Decided before anything is timed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Mean |difference| to PyTorch float32: of network outputs as a share of their mean size, of forecasts
# in units of the series' own scale (a share of the level would hide errors). The tolerances of bf16 and
# int8 show that they compute the same network; bench/precisions.py measures how accurate they are.
TOLERANCE = {"f32": 1e-5, "bf16": 0.05, "int8": 0.05}
FED_BACK_TOLERANCE = {"f32": 1e-3, "bf16": 0.5, "int8": 0.5}  # after five patches fed back

# The reference's own distribution function maps samples to values that must be uniform. Chance exceeds
# the largest Kolmogorov-Smirnov distance that passes with this probability.
BAD_LUCK = 1e-6


@dataclass(frozen=True)
class Agreement:
    """`figure` is NaN where there was nothing to compare with."""

    figure: float
    bound: float
    what: str

    @property
    def holds(self) -> bool:
        return self.figure <= self.bound  # a NaN is not below anything

    def __str__(self) -> str:
        return f"{self.what} {self.figure:.1e} (at most {self.bound:.2g})"


def network_agreement(
    answer: dict[str, np.ndarray], reference: dict[str, np.ndarray], dtype: str
) -> Agreement:
    """The output that differs most decides."""
    figures = []
    for name, wanted in reference.items():
        got = answer[name].astype(np.float64)
        if got.shape != wanted.shape:
            return Agreement(float("nan"), 0, f"{name} has shape {got.shape}, not {wanted.shape}:")
        figures.append(float(np.abs(got - wanted).mean() / np.abs(wanted).mean()))
    # Not max(): it may skip a NaN.
    return Agreement(float(np.max(figures)), TOLERANCE[dtype], "parameters differ by")


def mean_agreement(
    mean: np.ndarray, reference: np.ndarray, scale: np.ndarray, dtype: str, fed_back: bool
) -> Agreement:
    """[series][step] each, `scale` [series]."""
    bound = (FED_BACK_TOLERANCE if fed_back else TOLERANCE)[dtype]
    steps = min(mean.shape[1], reference.shape[1])
    difference = np.abs(mean[:, :steps].astype(np.float64) - reference[:, :steps])
    return Agreement(float((difference.mean(axis=1) / scale).max()), bound, "mean differs by")


def sample_agreement(
    samples: np.ndarray, parameters: dict[str, np.ndarray], loc: float, scale: float
) -> Agreement:
    """[step][sample] of one series against the mixture that the reference predicts for each step."""
    from scipy import stats

    parameters = {name: values[: len(samples)] for name, values in parameters.items()}
    logits = parameters["logits"].astype(np.float64)  # [step][component]
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    places = (samples.astype(np.float64) - loc) / scale
    below = stats.t.cdf(
        places[:, :, None],
        parameters["df"][:, None],
        parameters["loc"][:, None],
        parameters["scale"][:, None],
    )
    uniform = (below * weights[:, None]).sum(axis=2)
    distance = float(stats.kstest(uniform.ravel(), "uniform").statistic)
    bound = float(np.sqrt(np.log(2 / BAD_LUCK) / (2 * samples.size)))
    return Agreement(distance, bound, "samples' distance")
