"""Writes tests/golden/README.md, so that it cannot disagree with the goldens next to it."""

from __future__ import annotations

from pathlib import Path

from golden_cases import Golden
from golden_environment import environment
from golden_network import num_components

TEXT = """\
# Goldens: what the reference answers

Written by `tools/make_golden.py`; do not edit. Every number here was computed by the reference, the
PyPI package `toto-ts` 0.2.0 on PyTorch, from seeded random weights. None ever came from this engine:
if the engine disagrees with a golden, the engine is wrong.

Run once in float32 and once in float64 (`model.double()`) on the same weights and inputs, through
`TotoForecaster.forecast(num_samples=None)` with and without its cache. On one machine the script gives
the same bytes every time; on another CPU the `f32.*` tensors may round differently. Made with:

{environment}

## Format, version 1
A folder with `config.json`, `model.safetensors` (or shards and an index) and `case.safetensors`:

| tensor | type and shape | |
|---|---|---|
| `series` | F32 [batch, variates, time] | |
| `padding_mask` | U8, same shape | 0: the value does not count |
| `id_mask` | I64, same shape | variates of one id see each other |
| `future_exogenous` | F32 [batch, exogenous, horizon] | optional; the last variates |
| `f32.*`, `f64.*` | F32, F64 | the reference's answer in that precision |
| `*.loc`, `*.scale` | [batch, variates, patch] | affine transform of the first forecast patch |
| `*.df`, `*.component_loc`, `*.component_scale`, `*.logits` | [batch, variates, patch, k] | its \
mixture; k = 1 and no `logits` for a single Student-T |
| `*.mean`, `*.mean_no_cache` | [batch, variates, horizon] | autoregressive mean, cached and uncached |

Metadata, all strings: `horizon`, `num_exogenous`, `variate_labels` (`true` or `false`). `logits` are the
raw outputs of `mixture_weights`. An exogenous variate with a known future carries it in the means.

An engine passes if, for each output and for the means also for each series of the batch, its mean
|ours - f64| is at most 1.25 x mean |f32 - f64| + 1e-7 x mean |f64|: a bound from the reference's own
rounding.

## What the script checks before it writes a golden
- All answers are finite, and the float32 error is below 1e-4 of mean |f64| everywhere.
- The bound is not a lucky draw: the reference evaluated again in float32 with its channels renumbered
  ({shuffles} times), and with its sums in float64, stays inside {share} of every bound.
- Taking away any one layer, its attention, MLP or scores, the rotation or a label moves `mean` of every
  series by at least {part} bounds, taking away xPos by at least {xpos}. Making an input trivial (ids,
  mask, values under the mask, known future) moves `mean` by at least {part}.
- Cached and uncached `mean` are at least {paths} bounds apart in every series, where they can differ.
- Components differ; where a case says the clamp binds, it does.

Not here, because float32 and float64 rightly disagree about it or no random number is involved:
`replace_extreme_values` and the smallest `df` and `scale` (their limits depend on the type), and
sampling.

## Cases
Network: patch / embed / heads / MLP / layers, space-wise every n (f: first), k components.
Data: batch x variates x context -> horizon. Paths: cached against uncached. Least: the part whose removal
moves `mean` least.

| case | covers | network | data | paths, bounds | least, bounds | kB |
|---|---|---|---|---|---|---|
{rows}

{count} goldens, {total:.2f} MB.
"""


def network_text(golden: Golden) -> str:
    config = golden.case.config
    sizes = ("patch_size", "embed_dim", "num_heads", "mlp_hidden_dim", "num_layers")
    # The reference's default for spacewise_first is true.
    every = str(config["spacewise_every_n_layers"])
    first = "f" if config.get("spacewise_first", True) else ""
    shape = " / ".join(str(config[size]) for size in sizes)
    return f"{shape}, {every}{first}, k {num_components(config) or 1}"


def row(golden: Golden) -> str:
    batch, variates, length = golden.shape
    name, effect = golden.least_effect
    cells = (
        f"`{golden.case.name}`",
        golden.case.covers,
        network_text(golden),
        f"{batch} x {variates} x {length} -> {golden.case.horizon}",
        f"{golden.paths_apart:,.0f}" if golden.case.paths_differ else "equal",
        f"{name}, {effect:,.0f}",
        f"{golden.num_bytes / 1000:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def write_readme(path: Path, goldens: list[Golden], **limits: float) -> None:
    text = TEXT.format(
        environment="\n".join(f"- {line}" for line in environment()),
        rows="\n".join(row(golden) for golden in goldens),
        count=len(goldens),
        total=sum(golden.num_bytes for golden in goldens) / 1e6,
        **limits,
    )
    path.write_text(text)
