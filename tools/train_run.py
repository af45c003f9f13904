"""What the training of both architectures shares: plan, state, checkpoints, options, the curve."""

from __future__ import annotations

import argparse
import csv
import hashlib
import math
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fetch_sample_data import FetchError

AVERAGE = 0.999  # of the weights, for what is exported


class TrainingError(Exception):
    """Something the user can act on."""


@dataclass(frozen=True)
class Plan:
    """What decides the weights, besides the code."""

    seed: int
    learning_rate: float
    weight_decay: float
    config: dict[str, Any]
    prices: float = 0.0  # share of the series

    def phase(self, step: int) -> dict[str, float]:
        """What may change when a run goes on."""
        return {"from_step": step, "learning_rate": self.learning_rate, "prices": self.prices}


class TrainingState:
    """Weights, optimizer and their averages at a step, in memory and in a checkpoint."""

    FIXED: tuple[str, ...] = ("seed", "weight_decay", "config")  # a run that goes on keeps these
    optimizer: Any

    def __init__(self, plan: Plan, network: torch.nn.Module) -> None:
        self.plan = plan
        self.network = network
        self.step = 0
        self.warm_from = 0  # the step at which the learning rate began to rise
        self.decay = (0, 0)  # the steps between which it falls; training ends there
        self.phases = [plan.phase(0)]
        self.cpu_seconds = 0.0
        self.average = {n: p.detach().clone() for n, p in network.named_parameters()}

    def count_step(self) -> None:
        """Moves the average towards the weights after a step."""
        self.step += 1
        # Short at first: the average of random weights is of no use.
        done = self.step - self.warm_from
        keep = min(AVERAGE, (1.0 + done) / (10.0 + done))
        with torch.no_grad():
            averages = [self.average[n] for n, _ in self.network.named_parameters()]
            torch._foreach_lerp_(averages, list(self.network.parameters()), 1.0 - keep)

    def save(self, path: Path) -> None:
        state = {
            "plan": asdict(self.plan),
            "step": self.step,
            "warm_from": self.warm_from,
            "decay": self.decay,
            "phases": self.phases,
            "cpu_seconds": self.cpu_seconds,
            "weights": self.network.state_dict(),
            "average": self.average,
            "optimizer": self.optimizer.state_dict(),
        }
        write_atomically(path, lambda temporary: torch.save(state, temporary))

    def load(self, path: Path) -> None:
        state = read_checkpoint(path)
        found, wanted = state["plan"], asdict(self.plan)
        others = [name for name in self.FIXED if found.get(name) != wanted[name]]
        if others:
            names = ", ".join(others)
            raise TrainingError(f"{path} was made with another {names}; expected the same options")
        self.step, self.cpu_seconds = state["step"], state["cpu_seconds"]
        self.warm_from, self.decay = state.get("warm_from", 0), tuple(state["decay"])
        self.phases = state["phases"]
        if self.plan.phase(0) != type(self.plan)(**found).phase(0):
            self.phases = [*self.phases, self.plan.phase(self.step)]
        self.network.load_state_dict(state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.average = state["average"]

    def plan_end(self, steps: int | None, decay: int) -> None:
        """Training ends after `steps`, or `decay` steps from here; the last `decay` of them fall."""
        if steps is not None or decay:
            last = steps if steps is not None else self.step + decay
            self.decay = (last - decay, last)

    def learning_rate(self, warmup: int) -> float:
        """It rises over `warmup` steps, stays, and falls as 1 - sqrt."""
        decay_from, decay_to = self.decay
        rate = self.plan.learning_rate * min(1.0, (self.step - self.warm_from + 1) / warmup)
        if self.step < decay_from:
            return rate
        progress = (self.step - decay_from) / max(1, decay_to - decay_from)
        return rate * max(0.0, 1.0 - math.sqrt(progress))

    def figures(self, weights: Path) -> dict[str, Any]:
        """What a reader of the model card wants to check of the exported file of weights."""
        return {
            "plan": asdict(self.plan),
            "parameters": sum(p.numel() for p in self.network.parameters()),
            "phases": self.phases,
            "steps": self.step,
            "cpu_seconds": round(self.cpu_seconds),
            "float32_weights_sha256": weights_sha256(self.average),
            "model_safetensors_sha256": hashlib.sha256(weights.read_bytes()).hexdigest(),
            "versions": {"torch": torch.__version__, "numpy": np.__version__},
        }

    def summary(self) -> str:
        return f"step {self.step}, weights {weights_sha256(dict(self.network.named_parameters()))}"


def data_figures(corpus: Any, corpus_module: Any, packages: list[Any], data_module: Any) -> dict[str, Any]:
    """Which data a run saw: splits, packages with their hashes, groups and their weights."""
    return {
        "splits": corpus_module.__doc__,
        "packages": {p.name: {"version": p.version, "sha256": p.sha256} for p in packages},
        "corpus_sha256": corpus.sha256(),
        "groups": corpus.summary(),
        "group_weights": data_module.GROUP_WEIGHTS,
        "real_share": data_module.REAL_SHARE,
    }


def read_checkpoint(path: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = torch.load(path, weights_only=True)
        state["plan"]
    except Exception as error:
        raise TrainingError(f"{path} is not a checkpoint of this script: {error}") from None
    return state


class StopSignal:
    """True once SIGTERM or SIGINT has arrived: the run ends after its step and is saved."""

    def __init__(self) -> None:
        self.arrived = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)

    def _note(self, *_: object) -> None:
        self.arrived = True

    def __bool__(self) -> bool:
        return self.arrived


def options_of_a_run(description: str, learning_rate: float, weight_decay: float) -> argparse.ArgumentParser:
    """The options that every training has; their help lists these defaults."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    parser.add_argument("--data", type=Path, help="folder of the training data")
    parser.add_argument("--download", action="store_true", help="fetch what --data lacks")
    parser.add_argument("--steps", type=int, help="the step to stop at")
    parser.add_argument("--decay", type=int, default=0, help="steps of falling learning rate at the end")
    parser.add_argument("--minutes", type=float, help="stop after this time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch")
    parser.add_argument(
        "--resume", type=Path, nargs="?", const=Path(), help="go on from OUT/checkpoint.pt or this file"
    )
    parser.add_argument("--learning-rate", type=float, default=learning_rate)
    parser.add_argument("--weight-decay", type=float, default=weight_decay)
    parser.add_argument(
        "--prices", type=float, default=0.0, help="share of the series that are prices, 0 to 1"
    )
    parser.add_argument("--config", default="{}", help="JSON that changes the network's sizes")
    parser.add_argument("--save-minutes", type=float, default=4.0, help="time between checkpoints")
    return parser


def parse_run(parser: argparse.ArgumentParser) -> argparse.Namespace:
    arguments = parser.parse_args()
    if arguments.resume == Path():
        arguments.resume = arguments.out / "checkpoint.pt"
    return arguments


def check_run(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    if arguments.data is None:
        parser.error("expected --data")
    if arguments.steps is None and not arguments.decay and arguments.resume is None:
        parser.error("expected --steps")


def prepare_torch(threads: int) -> None:
    """The same weights from the same seed."""
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    torch.set_flush_denormal(True)


def exit_code_of(work: Callable[[], None]) -> int:
    try:
        work()
    except FetchError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except (TrainingError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    return 0


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Temporary name, then rename: an interruption never leaves half a file."""
    temporary = path.with_name(f".{path.name}")
    write(temporary)
    temporary.replace(path)


def weights_sha256(weights: dict[str, torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(name.encode())
        digest.update(weights[name].detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


class Curve:
    """The loss by step, averaged over a few steps, in a CSV that grows."""

    EVERY = 50

    def __init__(self, path: Path, before: Path, first_step: int, columns: list[str]) -> None:
        """Goes on from the rows up to the first step in the curve of the run before."""
        rows: list[list[str]] = []
        if before.is_file():
            with before.open(newline="") as file:
                rows = [row for row in list(csv.reader(file))[1:] if int(row[0]) <= first_step]
        text = "".join(",".join(row) + "\n" for row in [columns, *rows])
        write_atomically(path, lambda temporary: temporary.write_text(text))
        self.path, self.columns = path, columns
        self.values: list[list[float]] = []

    def add(self, step: int, cpu_seconds: float, rate: float, values: list[float]) -> None:
        self.values.append(values)
        if step % self.EVERY != 0:
            return
        means = (f"{mean:.5f}" for mean in np.mean(self.values, axis=0))
        row = [str(step), f"{cpu_seconds:.0f}", f"{rate:.3g}", *means]
        with self.path.open("a") as file:
            file.write(",".join(row) + "\n")
        pairs = zip(self.columns, row, strict=True)
        print(" ".join(f"{name} {cell}" for name, cell in pairs), flush=True)
        self.values.clear()


def read_curve(path: Path, columns: list[str], most: int = 200) -> list[dict[str, float]]:
    """About `most` rows of a curve."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    every = max(1, len(rows) // most)
    return [{name: float(row[name]) for name in columns} for row in rows[::every]]
