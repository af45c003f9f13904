#!/usr/bin/env python3
"""Makes a golden of your own checkpoint with your own PyTorch: the answers of the reference, the PyPI
package `toto-ts`, to seeded series and to your data, in float32 and in float64. `toto verify` compares
toto.cpp with it.

    tools/dump_golden.py --model my-checkpoint --output my-golden --toto build/toto

The golden links to the checkpoint, so weights that change later are noticed; --copy copies them instead.
On another machine, where the links are broken, name the model that is served there:

    toto verify --golden my-golden --golden-only --model /srv/model

The checkpoint is a folder with config.json and model.safetensors (or shards), or
owner/name of the Hugging Face hub. It needs the environment the model runs in: PyTorch, NumPy and
toto-ts. xFormers is not used even if it is installed: its kernels round differently.

Exit code 0 if the golden was made (and, with --toto, holds), 1 if it does not hold or proves nothing,
2 for wrong usage, 3 for a checkpoint or data that cannot be read, 5 if something is not installed.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

from golden_environment import import_reference, stop

try:
    import numpy as np
except ModuleNotFoundError:
    stop("NumPy is not installed; run in the environment that the model runs in", 5)

from golden_data import prices, waves
from golden_format import (
    REFUSED_FLOAT32_ERROR,
    Answer,
    Inputs,
    relative_error,
    write_case,
)

BAD_INPUT = 3
MODEL_FILES = ("config.json", "model*.safetensors", "model.safetensors.index.json")


def find_checkpoint(name: str) -> Path:
    folder = Path(name)
    if not (folder / "config.json").is_file():
        if folder.exists() or name.count("/") != 1:
            stop(
                f"{name}: no config.json there; expected a checkpoint's folder or owner/name", BAD_INPUT
            )
        folder = download(name)
    if not any(folder.glob("model*.safetensors")):
        stop(f"{folder}: no model.safetensors there, expected the weights next to config.json", BAD_INPUT)
    return folder.resolve()


def download(name: str) -> Path:
    """From the local cache, else from the hub."""
    try:
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(name, allow_patterns=list(MODEL_FILES)))
    except ModuleNotFoundError:
        stop(f"huggingface_hub is not installed, needed to find {name}; give a folder", 5)
    except Exception as error:  # noqa: BLE001: the hub has dozens of exception types
        stop(f"{name} is not available: {str(error).splitlines()[0]}; give a folder", BAD_INPUT)


def read_column(path: Path, column: str, length: int) -> np.ndarray:
    """The last values of a CSV column, float32 [1, 1, time]."""
    try:
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        stop(f"{path}: {error.strerror}; expected a CSV with a column {column}", BAD_INPUT)
    if not rows or column not in rows[0]:
        stop(f"{path}: no column {column}, found {', '.join(rows[0]) if rows else 'no row'}", BAD_INPUT)
    values = []
    for number, row in enumerate(rows[-length:], start=len(rows) - min(length, len(rows)) + 2):
        try:
            values.append(float(row[column]))
        except (TypeError, ValueError):
            values.append(math.nan)
        if not math.isfinite(values[-1]):
            stop(f"{path}:{number}: {column} is {row[column]!r}, expected a number", BAD_INPUT)
    return np.asarray(values, np.float32)[None, None]


def make_requests(arguments: argparse.Namespace) -> dict[str, Inputs]:
    random = np.random.RandomState(arguments.seed)
    series = {
        "prices": prices(3, 1, arguments.context)(random),
        "three_variates": waves(1, 3, arguments.context)(random),
    }
    for path in arguments.data:
        if path.stem in series:
            stop(f"--data names {path.stem} twice; expected names that differ", 2)
        series[path.stem] = read_column(path, arguments.column, arguments.context)
    return {
        name: Inputs(
            values.astype(np.float32), np.ones(values.shape, bool), np.zeros(values.shape, np.int64)
        )
        for name, values in series.items()
    }


def place_model(checkpoint: Path, folder: Path, copy: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in MODEL_FILES:
        for stale in folder.glob(pattern):
            stale.unlink()
        for file in checkpoint.glob(pattern):
            if copy:
                shutil.copy(file, folder / file.name)
            else:
                (folder / file.name).symlink_to(file)


def check_evidence(name: str, f32: Answer, f64: Answer) -> None:
    for output, double in f64.items():
        error = relative_error(f32[output], double)
        if not error < REFUSED_FLOAT32_ERROR:  # a NaN is not below anything
            stop(
                f"{name}: PyTorch's own float32 error of {output} is {error:.1e} of its size, expected"
                f" less than {REFUSED_FLOAT32_ERROR}; such a golden proves nothing: take another --seed"
                " or other --data"
            )


def dump(arguments: argparse.Namespace) -> list[Path]:
    checkpoint = find_checkpoint(arguments.model)
    requests = make_requests(arguments)
    reference = import_reference(own_environment=True)
    reference.make_repeatable(num_threads=os.cpu_count() or 1)
    try:
        toto = reference.load_reference(checkpoint)
    except (RuntimeError, ValueError, TypeError, KeyError, OSError) as error:
        stop(f"{checkpoint}: the reference cannot load it: {str(error).splitlines()[0]}", BAD_INPUT)
    single = {name: reference.ask(toto, inputs, arguments.horizon) for name, inputs in requests.items()}
    toto.double()
    folders = []
    for name, inputs in requests.items():
        f32, f64 = single[name], reference.ask(toto, inputs, arguments.horizon)
        check_evidence(name, f32, f64)
        folder = arguments.output / name
        place_model(checkpoint, folder, arguments.copy)
        labels = toto.model.target_variate_label is not None
        write_case(folder / "case.safetensors", inputs, arguments.horizon, labels, f32, f64)
        print(f"{folder}: {len(f64)} outputs of {inputs.series.shape[0]} series", file=sys.stderr)
        folders.append(folder)
    return folders


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True, help="the checkpoint's folder, or owner/name")
    parser.add_argument("--output", required=True, type=Path, help="folder of the golden folders")
    parser.add_argument(
        "--data", nargs="+", default=[], type=Path, metavar="CSV", help="add your own series"
    )
    parser.add_argument("--column", default="close", help="column of the CSV files (%(default)s)")
    parser.add_argument("--context", type=int, default=512, help="steps of history (%(default)s)")
    parser.add_argument("--horizon", type=int, default=192, help="steps to forecast (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the series (%(default)s)")
    parser.add_argument("--copy", action="store_true", help="copy the weights instead of linking them")
    parser.add_argument("--toto", type=Path, help="check this command against the golden")
    arguments = parser.parse_args()
    for name in ("context", "horizon"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name} is {getattr(arguments, name)}, expected at least 1")
    if arguments.toto is not None and not os.access(arguments.toto, os.X_OK):
        parser.error(f"--toto is {arguments.toto}, expected a command that can be run")
    return arguments


def main() -> None:
    arguments = parse_arguments()
    dump(arguments)
    command = ["verify", "--golden", str(arguments.output), "--golden-only"]
    if arguments.toto is None:
        print(f"check with: toto {' '.join(command)}", file=sys.stderr)
        print("on another machine: copy the folder there, and add --model FOLDER", file=sys.stderr)
        return
    raise SystemExit(subprocess.run([str(arguments.toto), *command], check=False).returncode)


if __name__ == "__main__":
    main()
