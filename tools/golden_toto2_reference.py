"""Runs Toto 2.0's reference, the PyPI package `toto-2` 2.0.0, in float32 and in true float64.

`.double()` alone is not float64 there: the norms take their statistic in float32, and the tables of
the rotary embedding are built in float32. Both are replaced for the float64 answers.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
import unit_scaling.functional as scaled_functions
from golden_format import Answer
from golden_toto2_cases import Case, Inputs
from toto2.model import Toto2Model, backfill_short_patches


def load_reference(folder: Path) -> Toto2Model:
    return copy.deepcopy(_loaded(folder))


@functools.lru_cache(maxsize=1)
def _loaded(folder: Path) -> Toto2Model:
    index = folder / "model.safetensors.index.json"
    strict = "attn_tau" in (index if index.exists() else folder / "model.safetensors").read_bytes().decode(
        "latin-1"
    )
    return Toto2Model.from_pretrained(str(folder), strict=strict).eval()


def _rms(x, dims=None, keepdim=False, eps=0.0):
    return (x.pow(2).mean(dims, keepdim=keepdim) + eps).sqrt()


@contextmanager
def norms_in_double() -> Iterator[None]:
    before = scaled_functions.rms
    scaled_functions.rms = _rms
    try:
        yield
    finally:
        scaled_functions.rms = before


def rotary_modules(model: Toto2Model) -> Iterator[torch.nn.Module]:
    for module in model.modules():
        if hasattr(module, "theta") and hasattr(module, "cos"):
            yield module


def tables_in_double(model: Toto2Model) -> None:
    for module in rotary_modules(model):
        width = module.proj_width
        pairs = torch.arange(0, width, 2, dtype=torch.float64)
        module.theta = 10000.0 ** (-pairs / width)
        angles = torch.arange(module.cos.shape[0], dtype=torch.float64)[:, None] * module.theta
        module.cos = angles.cos().repeat_interleave(2, dim=-1)
        module.sin = angles.sin().repeat_interleave(2, dim=-1)
        if hasattr(module, "xpos_base_scale"):
            module.xpos_base_scale = (pairs + 0.4 * width) / (1.4 * width)


def tensors_of(inputs: Inputs, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    result = {
        "target": torch.from_numpy(inputs.target).to(dtype),
        "target_mask": torch.from_numpy(inputs.mask),
        "series_ids": torch.from_numpy(inputs.ids),
    }
    if inputs.known is not None:
        result["known_dynamic"] = torch.from_numpy(inputs.known).to(dtype)
        result["known_dynamic_mask"] = torch.from_numpy(inputs.known_mask)
        result["known_dynamic_series_ids"] = torch.from_numpy(inputs.known_ids)
    return result


def statistics(model: Toto2Model, inputs: Inputs, case: Case, dtype: torch.dtype):
    """loc and scale of the first block, as `forecast` uses them."""
    patch = model.config.patch_size
    patches = math.ceil(case.horizon / patch)
    target, mask, _, variates = model._prepare_forecast_inputs(tensors_of(inputs, dtype), patches)
    _, loc, scale = model.scaler(target, mask)
    if case.min_obs > 0:
        loc, scale = backfill_short_patches(target, loc, scale, mask, patch, case.min_obs)
    at = inputs.target.shape[-1]
    return loc[..., :variates, at], scale[..., :variates, at]


@torch.no_grad()
def ask(model: Toto2Model, inputs: Inputs, case: Case) -> Answer:
    dtype = next(model.parameters()).dtype
    heads: list[torch.Tensor] = []
    handle = model.output_head.register_forward_hook(lambda _, __, output: heads.append(output))

    def forecast(block: int) -> np.ndarray:
        heads.clear()
        quantiles = model.forecast(
            tensors_of(inputs, dtype),
            case.horizon,
            decode_block_size=block,
            scaler_fallback_min_obs=case.min_obs,
            quantile_real_cap_k=case.cap,
        )
        return quantiles.numpy()

    variates = inputs.target.shape[1]
    try:
        answer: Answer = {"quantiles": forecast(0)}
        if case.block > 0:
            answer["quantiles_block"] = forecast(case.block)
        answer["raw"] = heads[0][:, :, :variates].numpy()
    finally:
        handle.remove()
    loc, scale = statistics(model, inputs, case, dtype)
    return answer | {"loc": loc.numpy(), "scale": scale.numpy()}


def ask_in_double(folder: Path, inputs: Inputs, case: Case) -> tuple[Answer, Toto2Model]:
    model = load_reference(folder).double()
    tables_in_double(model)
    with norms_in_double():
        return ask(model, inputs, case), model


def ask_half_patched(folder: Path, inputs: Inputs, case: Case) -> dict[str, Answer]:
    """Float64 with only one of the two replacements: each must move the answer."""
    without_norms = load_reference(folder).double()
    tables_in_double(without_norms)
    without_tables = load_reference(folder).double()
    answers = {"norms": ask(without_norms, inputs, case)}
    with norms_in_double():
        return answers | {"tables": ask(without_tables, inputs, case)}


@torch.no_grad()
def ablations(folder: Path, inputs: Inputs, case: Case) -> Iterator[tuple[str, Answer]]:
    """The float64 answer without one part of the network or with a trivial input."""

    def changed(change) -> Answer:
        model = load_reference(folder).double()
        tables_in_double(model)
        change(model)
        with norms_in_double():
            return ask(model, inputs, case)

    config = load_reference(folder).config
    for i in range(config.num_layers):
        layer = lambda model, i=i: model.transformer.layers[i]
        queries = config.num_heads * config.qk_dim
        is_variate = load_reference(folder).transformer._if_variate_layer(i)
        yield f"attention {i}", changed(lambda m: layer(m).attn_tau.zero_())
        yield f"MLP {i}", changed(lambda m: layer(m).mlp_tau.zero_())
        if not is_variate or inputs.ids.shape[1] + case.known > 1:
            yield f"scores {i}", changed(lambda m: layer(m).attn.in_proj.weight[:queries].zero_())
        if config.per_dim_scale and not is_variate:
            yield f"per-dim scale {i}", changed(lambda m: layer(m).attn._pds.per_dim_scale.zero_())

    def no_rotation(model):
        for module in rotary_modules(model):
            module.cos = torch.ones_like(module.cos)
            module.sin = torch.zeros_like(module.sin)

    def no_xpos(model):
        for module in rotary_modules(model):
            module.xpos_base_scale = torch.ones_like(module.xpos_base_scale)

    def no_flags(model):
        patch = model.config.patch_size
        model.patch_proj.linear1.weight[:, patch:] = 0
        model.patch_proj.skip_proj.weight[:, patch:] = 0

    yield "rotation", changed(no_rotation)
    if config.use_xpos:
        yield "xPos", changed(no_xpos)
    if case.horizon > config.patch_size or not inputs.mask[..., : -config.patch_size].all():
        yield "flags", changed(no_flags)


@torch.no_grad()
def shuffled(folder: Path, inputs: Inputs, case: Case, seed: int) -> Answer:
    """Float32 with the channels of the stream and of the MLPs renumbered: other rounding only."""
    model = load_reference(folder)
    random = np.random.RandomState(seed)
    stream = torch.from_numpy(random.permutation(model.config.d_model))
    for linear in (model.patch_proj.linear2, model.patch_proj.skip_proj):
        _permute(linear, rows=stream)
    head = model.output_head.param_projection.proj
    for linear in (head.linear1, head.skip_proj):
        _permute(linear, columns=stream)
    norms = [model.transformer.out_norm]
    for layer in model.transformer.layers:
        hidden = torch.from_numpy(random.permutation(model.config.d_ff))
        _permute(layer.attn.in_proj, columns=stream)
        _permute(layer.attn.out_proj, rows=stream)
        _permute(layer.ffn.fc1, rows=torch.cat([hidden, hidden + model.config.d_ff]), columns=stream)
        _permute(layer.ffn.fc2, rows=stream, columns=hidden)
        norms += [layer.norm1, layer.norm2]
    for norm in norms:
        if norm.weight is not None:
            norm.weight.copy_(norm.weight[stream].clone())
    return ask(model, inputs, case)


def _permute(linear, rows=None, columns=None) -> None:
    if rows is not None:
        linear.weight.copy_(linear.weight[rows].clone())
        if linear.bias is not None:
            linear.bias.copy_(linear.bias[rows].clone())
    if columns is not None:
        linear.weight.copy_(linear.weight[:, columns].clone())
