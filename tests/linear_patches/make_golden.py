#!/usr/bin/env python3
"""Writes the golden of the linear test architecture: its model and what plain Python makes of it.

Independent of the engine: float64 is Python's own arithmetic, float32 rounds every result to single precision.
"""

import json
import math
import random
import struct
import sys
from collections.abc import Callable
from pathlib import Path

PATCH, BLOCK, LEVELS = 4, 2, [0.1, 0.3, 0.5, 0.7, 0.9]
BATCH, VARIATES, LENGTH, HORIZON = 2, 2, 24, 19
TYPES = {"F32": "f", "F64": "d", "I64": "q", "U8": "B"}
Round = Callable[[float], float]
Tensor = tuple[str, list[int], list[float]]


def single(x: float) -> float:
    return struct.unpack("f", struct.pack("f", x))[0]


def write(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    header: dict[str, object] = {"__metadata__": metadata}
    data = b""
    for name, (kind, shape, values) in tensors.items():
        start = len(data)
        data += struct.pack(f"<{len(values)}{TYPES[kind]}", *values)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def forecast(weights: dict[str, Tensor], values: list[float], mask: list[int], r: Round) -> dict[str, list[float]]:
    """One variate: loc, scale, raw of the first block [patch][step][level] and quantiles [step][level]."""
    known = [x for x, flag in zip(values, mask) if flag]
    row_values, row_mask = values[-PATCH:], mask[-PATCH:]
    positions, quantiles, first = LENGTH // PATCH, [], {}
    while len(quantiles) < HORIZON:
        patches = min(BLOCK, math.ceil((HORIZON - len(quantiles)) / PATCH))
        loc = sum(known) / len(known)
        scale = max(math.sqrt(sum((x - loc) ** 2 for x in known) / (len(known) - 1)), 1e-6)
        row = [r((x - loc) / scale) if flag else 0.0 for x, flag in zip(row_values, row_mask)]
        row += [0.0 if flag else 1.0 for flag in row_mask]
        raw: list[float] = []
        for patch in range(patches):
            x = row if patch == 0 else weights["query"][2]
            for n in range(PATCH * len(LEVELS)):
                y = r(weights["bias"][2][n] + r(weights["drift"][2][n] * r((positions - 1 + patch) / 100)))
                for k in range(2 * PATCH):
                    y = r(y + r(weights["weight"][2][n * 2 * PATCH + k] * x[k]))
                raw.append(y)
        steps = [sorted(r(y * scale + loc) for y in raw[i : i + len(LEVELS)]) for i in range(0, len(raw), len(LEVELS))]
        first = first or {"loc": [loc], "scale": [scale], "raw": raw}
        quantiles += steps
        medians = [step[len(LEVELS) // 2] for step in steps]
        known += medians
        row_values, row_mask = medians[-PATCH:], [1] * PATCH
        positions += patches
    return first | {"quantiles": [q for step in quantiles[:HORIZON] for q in step]}


def main() -> int:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    generator = random.Random(16)
    outputs, width = PATCH * len(LEVELS), 2 * PATCH

    def drawn(count: int, size: float) -> list[float]:
        return [single(generator.gauss(0, size)) for _ in range(count)]

    weights = {
        "weight": ("F32", [outputs, width], drawn(outputs * width, 0.2)),
        "bias": ("F32", [outputs], drawn(outputs, 1)),
        "drift": ("F32", [outputs], drawn(outputs, 1)),
        "query": ("F32", [width], drawn(width, 1)),
    }
    config = {"linear_patches": 1, "patch_size": PATCH, "block_patches": BLOCK}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    write(folder / "model.safetensors", weights, {"format": "pt", "trained": "false"})

    target = drawn(BATCH * VARIATES * LENGTH, 3)
    mask = [0 if i % 11 == 5 else 1 for i in range(len(target))]
    tensors: dict[str, Tensor] = {
        "target": ("F32", [BATCH, VARIATES, LENGTH], target),
        "target_mask": ("U8", [BATCH, VARIATES, LENGTH], mask),
        "series_ids": ("I64", [BATCH, VARIATES], [0] * (BATCH * VARIATES)),
    }
    rounds: dict[str, Round] = {"f32": single, "f64": lambda x: x}
    for name, r in rounds.items():
        kind = name.upper()
        all_of: dict[str, list[list[float]]] = {}
        for at in range(0, len(target), LENGTH):
            for key, values in forecast(weights, target[at : at + LENGTH], mask[at : at + LENGTH], r).items():
                all_of.setdefault(key, []).append(values)
        for key in ("loc", "scale"):
            tensors[f"{name}.{key}"] = (kind, [BATCH, VARIATES], [series[0] for series in all_of[key]])
        for key, shape in (("raw", [BLOCK, PATCH]), ("quantiles", [HORIZON])):
            levels_first = [q for level in range(len(LEVELS)) for series in all_of[key] for q in series[level :: len(LEVELS)]]
            tensors[f"{name}.{key}"] = (kind, [len(LEVELS), BATCH, VARIATES, *shape], levels_first)
    write(folder / "case.safetensors", tensors, {"architecture": "linear_patches", "horizon": str(HORIZON)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
