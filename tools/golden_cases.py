"""The committed golden cases: network, data, and what each one guards against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from golden_data import (
    Random,
    changing_volatility,
    flat,
    gaps,
    groups,
    prices,
    regrouped,
    scaled,
    waves,
    zeros,
)
from golden_format import Answer, Inputs
from golden_network import Config, Init, Storage

DATA_STREAM = 0x5EED  # data and weights of one seed come from different streams

# ----------------------------------------------------------------------------------------- networks


def network(
    patch: int,
    embed: int,
    heads: int,
    hidden: int,
    layers: int,
    every: int,
    *,
    first: bool = False,
    scaler: str = "CausalPatchStdMeanScaler",
    components: int | None = 6,
    stabilize: bool = True,
    exponent: float = 10.0,
    efficient: bool = True,
) -> Config:
    """A config.json with the keys of the published checkpoint."""
    kind = "StudentTOutput" if components is None else "MixtureOfStudentTsOutput"
    return {
        "patch_size": patch,
        "stride": patch,
        "embed_dim": embed,
        "num_layers": layers,
        "num_heads": heads,
        "mlp_hidden_dim": hidden,
        "dropout": 0.1,
        "spacewise_every_n_layers": every,
        "spacewise_first": first,
        "scaler_cls": f"<class 'model.scaler.{scaler}'>",
        "output_distribution_classes": [f"<class 'model.distribution.{kind}'>"],
        "output_distribution_kwargs": None if components is None else {"k_components": components},
        "stabilize_with_global": stabilize,
        "scale_factor_exponent": exponent,
        "use_memory_efficient_attention": efficient,
    }


def without(config: Config, *keys: str) -> Config:
    return {key: value for key, value in config.items() if key not in keys}


def small(layers: int = 2, every: int = 2, **options: object) -> Config:
    """The network of most cases: patch 8."""
    return network(8, 24, 2, 40, layers, every, **options)


# -------------------------------------------------------------------------------------------- cases


@dataclass(frozen=True)
class Case:
    name: str
    covers: str  # for the README's table
    seed: int  # the first that passes every check, as `make_golden.py --search` finds it
    data: Callable[[Random], np.ndarray]  # -> series [batch, variates, time]
    config: Config = field(default_factory=small)
    horizon: int = 40
    mask: Callable[[np.ndarray], np.ndarray] | None = None  # series -> padding mask; default: all
    ids: Callable[[np.ndarray], np.ndarray] | None = None  # series -> ids; default: all one group
    masked_value: float | None = 0.0  # stored where the mask is false; None: keep the data
    num_exogenous: int = 0
    known_future: bool = False
    variate_labels: bool = False
    init: Init = Init()
    storage: Storage = Storage()
    clamp: frozenset[str] = frozenset()  # what golden_reference.scale_clamp_effects must report

    @property
    def patch_size(self) -> int:
        return self.config["patch_size"]

    @property
    def paths_differ(self) -> bool:
        """Whether the cached and the uncached path can differ at all: both decode beyond the first
        patch, and some layer keeps keys."""
        return self.horizon > self.patch_size and self.config["spacewise_every_n_layers"] != 1

    @property
    def official_loader(self) -> bool:
        """Whether the reference's own loader understands this checkpoint."""
        plain = self.storage.num_shards == 1 and self.storage.prefix == "model."
        return plain and not self.variate_labels

    def inputs(self, seed: int) -> Inputs:
        random = Random([seed, DATA_STREAM])
        known = self.horizon if self.known_future else 0
        # The known future continues the same data, as in real use.
        everything = self.data(random).astype(np.float32)
        series = everything[..., : everything.shape[-1] - known].copy()
        mask = np.ones(series.shape, bool) if self.mask is None else self.mask(series)
        if self.masked_value is not None:
            series[~mask] = np.float32(self.masked_value)
        ids = np.zeros(series.shape, np.int64) if self.ids is None else self.ids(series)
        future = None
        if self.known_future:
            future = everything[:, -self.num_exogenous :, -known:].copy()
        return Inputs(series, mask, ids, future, self.num_exogenous)


@dataclass(frozen=True)
class Golden:
    """A case with the reference's answers and the results of the checks."""

    case: Case
    shape: tuple[int, int, int]  # batch, variates, context
    f32: Answer
    f64: Answer
    paths_apart: float  # cached from uncached `mean`, in tolerances, the closest series
    effects: dict[str, float]  # by the part removed: how far `mean` moves, in tolerances
    share_of_tolerance: float  # the most that another float32 evaluation needs
    clamp: set[str]  # as golden_reference.scale_clamp_effects
    num_bytes: int

    @property
    def least_effect(self) -> tuple[str, float]:
        return min(self.effects.items(), key=lambda effect: effect[1])


def stored(name: str, covers: str, seed: int, **storage: Any) -> Case:
    """A short case about the files of the weights."""
    return Case(name, covers, seed, waves(1, 1, 48), horizon=24, storage=Storage(**storage))


def spacewise(name: str, covers: str, seed: int, layers: int, every: int, first: bool = False) -> Case:
    """Three variates through time-wise and space-wise layers in some order."""
    config = network(4, 24, 3, 40, layers, every, first=first)
    return Case(name, covers, seed, waves(1, 3, 48), config, horizon=32)


CASES = (
    Case(
        "univariate_mini",
        "base config in miniature; stray `rotary_emb.freqs` with wrong values, to be ignored",
        seed=2,
        config=network(16, 36, 3, 80, 4, 4, components=8),
        horizon=64,
        data=waves(1, 1, 128),
        storage=Storage(rotary_freqs=True),
    ),
    Case(
        "long_horizon",
        "13 patches decoded: the cached and the uncached path drift apart",
        seed=26,
        config=network(8, 32, 2, 48, 3, 3),
        horizon=100,
        data=waves(1, 1, 96),
    ),
    Case(
        "ragged_context",
        "context and horizon no multiple of the patch: zeros on the left, masked",
        seed=5,
        horizon=37,
        data=waves(1, 1, 53),
    ),
    Case(
        "one_point",
        "context of one value, horizon inside the first patch",
        seed=0,
        horizon=5,
        data=waves(3, 1, 1),
    ),
    Case(
        "two_groups",
        "id groups, negative and beyond 32 bits, space-wise layers first",
        seed=60,
        config=network(8, 32, 4, 48, 4, 2, first=True, efficient=False),
        data=waves(2, 5, 64),
        ids=groups((3, 3, -1, -1, -1), (0, 2**40, 0, 2**40, 7)),
    ),
    Case(
        "missing_values",
        "values missing at the head (more than a patch) and inside, stored as 0",
        seed=4,
        data=waves(2, 2, 90),
        mask=gaps,
    ),
    Case(
        "masked_nonzero",
        "masked values that are not 0: out of the statistics, still in the embedding",
        seed=0,
        data=waves(1, 3, 88),
        mask=gaps,
        masked_value=None,
    ),
    Case(
        "exogenous",
        "two exogenous variates with known future, no labels",
        seed=9,
        config=small(4, 2),
        horizon=37,
        data=waves(1, 4, 64 + 37),
        num_exogenous=2,
        known_future=True,
    ),
    Case(
        "variate_labels",
        "exogenous with known future and variate labels: one token prepended",
        seed=58,
        config=network(8, 32, 4, 48, 4, 2),
        horizon=45,
        data=waves(2, 3, 60 + 45),
        num_exogenous=1,
        known_future=True,
        variate_labels=True,
    ),
    Case(
        "labels_future_unknown",
        "variate labels and an exogenous variate whose future is forecast; regrouped ids",
        seed=1,
        config=small(2, 2, first=True),
        data=waves(1, 3, 56),
        ids=regrouped(8),
        num_exogenous=1,
        variate_labels=True,
    ),
    Case(
        "labels_targets_only",
        "variate labels without exogenous variates, time-wise layers only",
        seed=3,
        config=small(2, -1),
        data=waves(1, 1, 60),
        variate_labels=True,
    ),
    Case(
        "student_t_std_mean",
        "single Student-T, StdMeanScaler; the clamp in the config is not for it",
        seed=6,
        config=small(scaler="StdMeanScaler", components=None, exponent=0.001),
        data=waves(1, 2, 70),
        mask=gaps,
    ),
    Case(
        "causal_std_mean",
        "CausalStdMeanScaler: statistics per step; the clamp in the config is not for it",
        seed=2,
        config=small(scaler="CausalStdMeanScaler", exponent=0.001),
        data=waves(2, 1, 61),
    ),
    Case("huge_values", "values around 1e30", seed=27, data=scaled(waves(1, 2, 64), 1e30)),
    Case(
        "tiny_values",
        "values around 1e-30, below the minimum scale",
        seed=10,
        data=scaled(waves(1, 1, 64), 1e-30),
    ),
    Case(
        "denormals",
        "float32 denormals around 1e-40: flushing them to zero shows in `loc`",
        seed=9,
        horizon=20,
        data=scaled(waves(1, 1, 64), 1e-40),
    ),
    Case("flat_series", "a constant, and a series with a tail of zeros", seed=17, data=flat(64)),
    Case("all_zeros", "nothing but zeros", seed=10, data=zeros(64)),
    Case(
        "scale_clamp",
        "the global clamp raises and lowers scales of the context",
        seed=86,
        config=small(exponent=0.25),
        data=changing_volatility(72),
        clamp=frozenset({"raised", "lowered"}),
    ),
    Case(
        "scale_clamp_tight",
        "a clamp so tight that it also binds in the last patch, which scales the forecast; with gaps",
        seed=4,
        config=small(exponent=0.001),
        data=changing_volatility(69),
        mask=gaps,
        clamp=frozenset({"raised", "lowered", "last"}),
    ),
    Case(
        "clamp_off",
        "stabilize_with_global false: the same exponent must do nothing",
        seed=44,
        config=small(exponent=0.001, stabilize=False),
        data=changing_volatility(72),
    ),
    Case(
        "config_defaults",
        "optional config keys absent: space-wise first, clamp on, Student-T",
        seed=7,
        config=without(
            small(components=None),
            "spacewise_first",
            "output_distribution_kwargs",
            "use_memory_efficient_attention",
            "stabilize_with_global",
            "scale_factor_exponent",
        ),
        data=waves(1, 3, 64),
    ),
    stored("fused_mlp", "MLP named mlp.0.w12 and mlp.0.w3", seed=1, fused_mlp=True),
    stored("no_prefix", "tensor names without `model.`", seed=1, prefix=""),
    stored("sharded", "two shards and their index", seed=1, num_shards=2),
    stored("f16_weights", "weights stored as F16", seed=3, dtype="F16"),
    stored("bf16_weights", "weights stored as BF16, fused MLP names", seed=6, dtype="BF16", fused_mlp=True),
    Case(
        "head_dim_64",
        "the base model's head: head_dim 64, 24 components",
        seed=1,
        config=network(8, 64, 1, 96, 2, 2, components=24),
        horizon=48,
        data=waves(1, 2, 80),
    ),
    Case(
        "batch_of_series",
        "four series of two variates in one batch, each held to its own bound",
        seed=5,
        data=waves(4, 2, 70),
    ),
    spacewise("spacewise_every_2", "time, space, time, space", seed=7, layers=4, every=2),
    spacewise("spacewise_every_3_first", "space, time, time, twice", seed=7, layers=6, every=3, first=True),
    spacewise("spacewise_none", "spacewise_every_n_layers -1: variates never meet", seed=4, layers=3, every=-1, first=True),
    spacewise("spacewise_all", "every layer space-wise: no cache, no positions", seed=3, layers=2, every=1),
    Case(
        "ids_over_time",
        "ids that change between patches along time, ragged context",
        seed=5,
        config=small(4, 2),
        data=waves(1, 3, 61),
        ids=regrouped(8),
    ),
    Case(
        "price_walk",
        "random-walk prices, 64 patches of context: xPos over a long way",
        seed=9,
        config=network(4, 32, 2, 56, 4, 4),
        horizon=48,
        data=prices(2, 1, 256),
    ),
    Case(
        "odd_sizes",
        "embed 40, 5 heads, patch 7, MLP 27, 3 components",
        seed=49,
        config=network(7, 40, 5, 27, 3, 3, components=3),
        horizon=33,
        data=waves(1, 3, 100),
    ),
    Case(
        "odd_head_dim",
        "embed 30, 3 heads of 10, patch 5, MLP 19, 5 components",
        seed=5,
        config=network(5, 30, 3, 19, 2, 2, components=5),
        horizon=33,
        data=waves(1, 2, 71),
    ),
    Case(
        "saturated",
        "scores near one-hot, gates far out, logits near 100, df near 100: exp must not overflow",
        seed=10,
        horizon=24,
        data=waves(1, 2, 64),
        init=Init(score=2.4, gate=30.0, logit_offset=100.0, df_peak=95.0),
    ),
)
