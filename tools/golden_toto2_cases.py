"""The golden cases of Toto 2.0: small networks, inputs, and what each one covers. NumPy only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from golden_data import Random, prices, waves
from golden_network import Storage

Config = dict[str, Any]


@dataclass(frozen=True)
class Inputs:
    """What `Toto2Model.forecast` takes; times are a multiple of the patch."""

    target: np.ndarray  # float32 [batch, variates, context]
    mask: np.ndarray  # bool, same shape; False: not observed
    ids: np.ndarray  # int64 [batch, variates]
    known: np.ndarray | None = None  # float32 [batch, known variates, context + horizon]
    known_mask: np.ndarray | None = None
    known_ids: np.ndarray | None = None


@dataclass(frozen=True)
class Case:
    name: str
    covers: str
    config: Config
    data: Callable[[Random], np.ndarray]
    horizon: int = 20
    block: int = 0
    min_obs: int = 0
    cap: float = 0.0
    gaps: Callable[[np.ndarray], None] | None = None  # clears entries of the mask
    ids: tuple[int, ...] = ()  # of the variates; empty: all 0
    known: int = 0  # known variates
    known_ids: tuple[int, ...] = ()
    known_gaps: Callable[[np.ndarray], None] | None = None
    storage: Storage = field(default_factory=lambda: Storage(prefix=""))
    head: float = 4.0  # gain of the head's weights; the output of unit-scaled weights is dull
    without: tuple[str, ...] = ()  # parts that cannot have an effect here
    taus: bool = True  # stored; else they follow from the config
    seed: int = 0

    def inputs(self, seed: int) -> Inputs:
        random = np.random.RandomState(1000 + seed)
        target = self.data(random).astype(np.float32)
        batch, variates, length = target.shape
        mask = np.ones(target.shape, bool)
        if self.gaps is not None:
            self.gaps(mask)
        ids = np.tile(np.array(self.ids or (0,) * variates, np.int64), (batch, 1))
        if self.known == 0:
            return Inputs(target, mask, ids)
        total = length + self.horizon
        known = waves(batch, self.known, total)(random).astype(np.float32)
        known_mask = np.ones(known.shape, bool)
        if self.known_gaps is not None:
            self.known_gaps(known_mask)
        known_ids = np.tile(np.array(self.known_ids or (0,) * self.known, np.int64), (batch, 1))
        return Inputs(target, mask, ids, known, known_mask, known_ids)


def config(**changes: Any) -> Config:
    return {
        "patch_size": 8,
        "d_model": 16,
        "num_heads": 2,
        "num_layers": 2,
        "layer_group_size": 2,
        "num_variate_layers_per_group": 1,
        "variate_layer_first": False,
        "dropout_p": 0.0,
        "norm_eps": 1e-4,
        "attn_bias": True,
        "mlp_bias": False,
        "num_output_patches": 1,
        "pre_norm": True,
        "d_ff": 24,
        "qk_dim": 8,
        "v_dim": 8,
        "num_groups": changes.get("num_groups", changes.get("num_heads", 2)),
        "heads_per_group": 1,
        "residual_mult": 0.75,
        "residual_attn_ratio": 5.136215466577748,
        "qk_norm": False,
        "norm_include_weight": False,
        "qk_norm_include_weight": False,
        "per_dim_scale": True,
        "use_xpos": True,
        **changes,
    }


SMALL = config()
WIDE = config(d_model=32, num_heads=2, qk_dim=16, v_dim=16, d_ff=40, num_layers=3, layer_group_size=3)


def leading(*steps: int) -> Callable[[np.ndarray], None]:
    """The first steps of each variate are missing."""

    def clear(mask: np.ndarray) -> None:
        for variate, count in enumerate(steps):
            mask[:, variate, :count] = False

    return clear


def leading_per_series(*steps: int) -> Callable[[np.ndarray], None]:
    def clear(mask: np.ndarray) -> None:
        for series, count in enumerate(steps):
            mask[series, :, :count] = False

    return clear


def holes(*ranges: tuple[int, int, int]) -> Callable[[np.ndarray], None]:
    """(variate, first, last) is missing."""

    def clear(mask: np.ndarray) -> None:
        for variate, first, last in ranges:
            mask[:, variate, first:last] = False

    return clear


def first_points(*counts: int) -> Callable[[np.ndarray], None]:
    """Series i begins with counts[i] observed points in its first patch, the rest of it is missing."""

    def clear(mask: np.ndarray) -> None:
        for series, count in enumerate(counts):
            mask[series, :, : 16 - count] = False

    return clear


def zero_heavy(random: Random) -> np.ndarray:
    """Issue 101 of the reference: a first patch of zeros but for one point, then data."""
    values = np.abs(waves(2, 1, 104)(random)) + 1
    values[:, :, 7:60] = 0.0
    return values


def constant(random: Random) -> np.ndarray:
    values = waves(3, 1, 64)(random)
    values[0] = 1e-4  # larger ones have no room for bands of 1e-6 in float32
    values[1] = 0.0
    return values


def offset(random: Random) -> np.ndarray:
    return 1e5 + 500 * waves(1, 2, 64)(random)


def times(factor: float) -> Callable[[Random], np.ndarray]:
    return lambda random: factor * waves(1, 1, 64)(random)


CASES = [
    Case("toto2_univariate", "one variate, heads of 32, three layers", config(
        patch_size=16, d_model=64, qk_dim=32, v_dim=32, d_ff=96, num_layers=3, layer_group_size=3),
        waves(1, 1, 160), 40, storage=Storage(prefix="", dtype="BF16")),
    Case("toto2_patch_32", "patches of 32, as the published models", config(patch_size=32, d_ff=48),
         prices(2, 1, 192), 64),
    Case("toto2_two_variates", "two variates", WIDE, waves(2, 2, 96)),
    Case("toto2_three_variates", "three variates, two of the same id", SMALL, waves(2, 3, 72), 24,
         ids=(3, 9, 3)),
    Case("toto2_variate_first", "the variate layer comes first", config(variate_layer_first=True),
         waves(2, 2, 64)),
    Case("toto2_groups_of_two", "two groups of layers, two of three across variates",
         config(num_layers=6, layer_group_size=3, num_variate_layers_per_group=2), waves(2, 3, 64),
         ids=(0, 0, 1)),
    Case("toto2_one_time_layer", "a single layer, along time",
         config(num_layers=1, layer_group_size=1, num_variate_layers_per_group=0), waves(2, 1, 64)),
    Case("toto2_no_time_layer", "a single layer, across variates: no past",
         config(num_layers=1, layer_group_size=1), waves(2, 2, 64),
         without=("rotation", "xPos")),
    Case("toto2_leading_gap", "one variate begins 20 steps later", SMALL, waves(2, 3, 80),
         gaps=leading(0, 20, 37)),
    Case("toto2_gap_of_patches", "whole patches are missing, also across variates", SMALL,
         waves(2, 2, 96), gaps=holes((0, 24, 41), (1, 30, 56), (1, 70, 75))),
    Case("toto2_gap_at_the_end", "missing values in the last patch count as they are", SMALL,
         waves(2, 2, 64), gaps=holes((0, 58, 64), (1, 40, 60))),
    Case("toto2_short_series", "shorter than a patch: padding zeros count", SMALL, waves(3, 1, 8), 12,
         gaps=leading_per_series(3, 5, 7), without=("rotation", "xPos", "scores", "attention")),
    Case("toto2_one_patch", "exactly one patch of context", SMALL, waves(2, 1, 8), 30),
    Case("toto2_block_1_odd", "blocks of one patch after 9 patches", SMALL, waves(1, 1, 72), 37, block=8),
    Case("toto2_block_1_even", "blocks of one patch after 10 patches", SMALL, waves(1, 1, 80), 37, block=8,
         seed=3),
    Case("toto2_block_2_odd", "blocks of two patches, a short last one", SMALL, waves(1, 2, 72), 40,
         block=16),
    Case("toto2_block_3_even", "blocks of three patches, a short last one", SMALL, waves(1, 2, 80), 61,
         block=24),
    Case("toto2_block_gap_ids", "blocks, a leading gap and two ids", SMALL, waves(1, 3, 64), 40,
         block=16, ids=(1, 1, 2), gaps=leading(0, 18, 33)),
    Case("toto2_block_larger", "a block longer than the horizon", SMALL, waves(1, 1, 64), 20, block=64),
    Case("toto2_known", "known futures of another and of the same id", SMALL, waves(2, 2, 64), 27,
         ids=(0, 1), known=2, known_ids=(1, 0)),
    Case("toto2_known_holes", "known futures with gaps, also at the end of the context", SMALL,
         waves(2, 1, 64), 27, known=2, known_gaps=holes((0, 50, 70), (1, 5, 30), (1, 80, 84)),
         seed=4),
    Case("toto2_known_block", "known futures with gaps, block by block", SMALL, waves(1, 1, 72), 43,
         block=16, known=2, known_gaps=holes((0, 60, 77), (1, 82, 101))),
    Case("toto2_min_obs", "series that begin with 1, 7, 8 and 9 points", SMALL, waves(4, 1, 64),
         gaps=first_points(9, 15, 16, 10), min_obs=8, cap=1e4),
    Case("toto2_min_obs_long", "more than a patch of first points, block by block", SMALL,
         waves(1, 1, 8), 30, gaps=leading_per_series(2), min_obs=20, block=8),
    Case("toto2_min_obs_known", "few known values, some of them in the future", SMALL,
         waves(2, 1, 64), 20, min_obs=8, known=1, known_gaps=holes((0, 0, 57), (0, 62, 71))),
    Case("toto2_zeros_96", "mostly zeros, 96 points in 104", SMALL, zero_heavy, gaps=leading(8),
         min_obs=8, cap=1e4),
    Case("toto2_zeros_97", "mostly zeros, 97 points in 104", SMALL, zero_heavy, gaps=leading(7),
         min_obs=8, cap=1e4),
    Case("toto2_cap", "a cap that binds", SMALL, waves(2, 1, 64), cap=0.02),
    Case("toto2_constant", "a constant, zeros, and a series that varies", SMALL, constant, min_obs=8),
    Case("toto2_huge", "values near 1e30", SMALL, times(1e30)),
    Case("toto2_tiny", "values near 1e-9: below the smallest scale", SMALL, times(1e-9),
         without=("rotation", "xPos", "scores", "attention", "flags")),
    Case("toto2_offset", "an offset of 1e5", SMALL, offset),
    Case("toto2_sinh_overflow", "outputs beyond sinh's range, cut by the cap", SMALL, waves(2, 1, 64),
         cap=3.0, head=300.0, without=("*",)),
    Case("toto2_horizon_1", "one step", SMALL, waves(2, 1, 64), 1),
    Case("toto2_horizon_7", "one step less than a patch", SMALL, waves(2, 1, 64), 7),
    Case("toto2_horizon_8", "exactly a patch", SMALL, waves(2, 1, 64), 8),
    Case("toto2_horizon_9", "one step more than a patch", SMALL, waves(2, 1, 64), 9),
    Case("toto2_no_xpos", "rotation without xPos", config(use_xpos=False), waves(2, 1, 64)),
    Case("toto2_no_per_dim_scale", "no scale per dimension", config(per_dim_scale=False),
         waves(2, 1, 64), without=("xPos", "rotation", "scores")),
    Case("toto2_biases", "no bias in attention, biases in the MLP",
         config(attn_bias=False, mlp_bias=True), waves(2, 2, 64)),
    Case("toto2_qk_norm", "normalised queries and keys, with weights",
         config(qk_norm=True, qk_norm_include_weight=True), waves(2, 2, 64)),
    Case("toto2_qk_norm_plain", "normalised queries and keys, no weight, absent keys of the config",
         {k: v for k, v in config(d_ff=48, qk_dim=8).items()
          if k not in ("qk_norm", "qk_norm_include_weight", "norm_include_weight", "d_ff", "v_dim",
                       "num_groups", "heads_per_group", "mlp_bias", "pre_norm",
                       "num_output_patches", "dropout_p", "norm_eps")},
         waves(2, 2, 64)),
    Case("toto2_gqa", "four heads share two groups of keys, narrow values",
         config(d_model=32, num_heads=4, num_groups=2, v_dim=4, d_ff=24), waves(1, 2, 64), 30, block=16),
    Case("toto2_wide_values", "values wider than keys", config(num_heads=2, num_groups=1, v_dim=12),
         waves(2, 2, 64)),
    Case("toto2_norm_weights", "norms with weights", config(norm_include_weight=True), waves(2, 2, 64)),
    Case("toto2_f16", "F16 weights", WIDE, waves(2, 2, 64), storage=Storage(prefix="", dtype="F16")),
    Case("toto2_sharded", "two shards", SMALL, waves(1, 1, 64), storage=Storage(prefix="", num_shards=2)),
    Case("toto2_no_taus", "taus that follow from the config", SMALL, waves(1, 2, 64), taus=False),
    Case("toto2_eps", "an epsilon of 5e-4, an odd MLP width", config(norm_eps=5e-4, d_ff=27),
         waves(2, 1, 64)),
]
