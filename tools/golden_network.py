"""Seeded random networks of Toto's shape, and how their weights are stored. NumPy only.

Weights are drawn so that every part of the network matters to the forecast: attention scores with a
standard deviation near 2 (neither flat nor one-hot), residual branches as large as the stream they
join, mixture components that differ from each other.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from golden_format import write_safetensors

Config = dict[str, Any]
Weights = dict[str, np.ndarray]  # float32, named as in the checkpoint without `model.`

HEADS = ("df", "loc_proj", "scale_proj", "mixture_weights")


@dataclass(frozen=True)
class Init:
    """Gains of the random weights, for inputs of unit size."""

    score: float = 1.4  # queries and keys: scores have a standard deviation of score^2
    branch: float = 0.8  # attention's and MLP's contribution to the stream
    gate: float = 1.0  # input of the MLP's SiLU
    unembed: float = 0.5
    loc: float = 0.4  # larger values make the fed-back mean, and so its rounding, chaotic
    logit_offset: float = 0.0  # added to every logit: changes nothing but the rounding
    df_peak: float = 0.0  # added to component 0's degrees of freedom


@dataclass(frozen=True)
class Storage:
    """How a checkpoint names and stores its weights."""

    dtype: str = "F32"
    prefix: str = "model."
    fused_mlp: bool = False  # mlp.0.w12 and mlp.0.w3 in place of mlp.0 and mlp.2
    num_shards: int = 1
    rotary_freqs: bool = False  # present in old checkpoints, must be ignored


def num_components(config: Config) -> int | None:
    """Mixture components, or None for a single Student-T."""
    if "MixtureOfStudentTs" not in config["output_distribution_classes"][0]:
        return None
    return config["output_distribution_kwargs"]["k_components"]


def draw_weights(config: Config, init: Init, variate_labels: bool, seed: int) -> Weights:
    random = np.random.RandomState(seed)
    embed, patch = config["embed_dim"], config["patch_size"]
    hidden = config["mlp_hidden_dim"]
    weights: Weights = {}

    def normal(*shape: int, std: float = 1.0, mean: float = 0.0) -> np.ndarray:
        return (random.standard_normal(shape) * std + mean).astype(np.float32)

    def linear(name: str, rows: int, columns: int, gain: float, bias: float = 0.1) -> None:
        weights[f"{name}.weight"] = normal(rows, columns, std=gain / np.sqrt(columns))
        weights[f"{name}.bias"] = normal(rows, std=bias)

    linear("patch_embed.projection", embed, patch, 1.0)
    for index in range(config["num_layers"]):
        layer = f"transformer.layers.{index}"
        weights[f"{layer}.norm1.scale"] = normal(embed, std=0.2, mean=1.0)
        weights[f"{layer}.norm2.scale"] = normal(embed, std=0.2, mean=1.0)
        linear(f"{layer}.attention.wQKV", 3 * embed, embed, 1.0)
        weights[f"{layer}.attention.wQKV.weight"][: 2 * embed] *= np.float32(init.score)
        linear(f"{layer}.attention.wO", embed, embed, 1.5 * init.branch)
        linear(f"{layer}.mlp.0", 2 * hidden, embed, 1.0)
        weights[f"{layer}.mlp.0.weight"][:hidden] *= np.float32(init.gate)
        linear(f"{layer}.mlp.2", embed, hidden, 1.5 * init.branch / init.gate)
    linear("unembed", embed * patch, embed, init.unembed)

    components = num_components(config)
    outputs = components or 1
    linear("output_distribution.df", outputs, embed, 0.7, bias=1.0)
    linear("output_distribution.loc_proj", outputs, embed, init.loc, bias=0.3)
    linear("output_distribution.scale_proj", outputs, embed, 0.7, bias=1.0)
    weights["output_distribution.df.bias"][0] += np.float32(init.df_peak)
    if components is not None:
        linear("output_distribution.mixture_weights", outputs, embed, 1.0, bias=1.0)
        weights["output_distribution.mixture_weights.bias"] += np.float32(init.logit_offset)
    if variate_labels:
        # Longer than 1 on purpose: the reference normalises them.
        weights["target_variate_label"] = normal(embed, std=3.0)
        weights["exogenous_variate_label"] = normal(embed, std=0.2)
    return weights


def num_parameters(weights: Weights) -> int:
    return sum(values.size for values in weights.values())


def _stored_name(name: str, storage: Storage) -> str:
    if storage.fused_mlp:
        name = name.replace("mlp.0.", "mlp.0.w12.").replace("mlp.2.", "mlp.0.w3.")
    return storage.prefix + name


def write_model(folder: Path, config: Config, weights: Weights, storage: Storage) -> None:
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    tensors = {_stored_name(name, storage): (storage.dtype, w) for name, w in weights.items()}
    if storage.rotary_freqs:
        # Wrong values: an engine that reads them gives a wrong forecast.
        poison = np.full(config["embed_dim"] // config["num_heads"] // 2, 0.125, np.float32)
        for owner in ("", "layers.0.attention."):
            tensors[f"{storage.prefix}transformer.{owner}rotary_emb.freqs"] = ("F32", poison)

    metadata = {"format": "pt"}
    if storage.num_shards == 1:
        write_safetensors(folder / "model.safetensors", tensors, metadata)
        return
    weight_map: dict[str, str] = {}
    names = list(tensors)
    for shard in range(storage.num_shards):
        file = f"model-{shard + 1:05}-of-{storage.num_shards:05}.safetensors"
        # Every n-th tensor: both shards hold parts of every layer.
        chosen = names[shard :: storage.num_shards]
        write_safetensors(folder / file, {name: tensors[name] for name in chosen}, metadata)
        weight_map |= {name: file for name in chosen}
    total_size = 4 * num_parameters(weights)
    index = {"metadata": {"total_size": total_size}, "weight_map": dict(sorted(weight_map.items()))}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")
