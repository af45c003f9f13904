#!/usr/bin/env python3
"""Train a small Toto 2.0 (at most 4.0 M parameters) from nothing, from a checkpoint or an export.

    tools/train_toto2.py --download --data DATA --out RUN --steps 1000000 --minutes 600

trains, with a checkpoint and an export (RUN/model, half precision, toto-2's own format) every few
minutes, RUN/curve.csv and RUN/validation.csv. The network is toto-2's (train_toto2_network.py), the
loss its quantile loss with contiguous patch masking (train_toto2_data.py). Data, splits and what is
kept out: train_toto2_corpus.py.

The learning rate warms up, stays, and falls over the last --decay steps (1 - sqrt). A run without
--decay can be ended at any time; a second run falls from where it is, and the first goes on:

    tools/train_toto2.py --data DATA --out RUN --resume --minutes 300
    tools/train_toto2.py --data DATA --out END --resume RUN/checkpoint.pt --decay 6000

Without its checkpoint, which is six times as large, a run goes on from its export: new momentum, a
short warm-up, batches that it has not seen:

    tools/train_toto2.py --data DATA --out MORE --init-from RUN/model --steps 1000000

    tools/train_toto2.py --out RUN --export FOLDER        writes the export of RUN/checkpoint.pt

What is exported and validated is the moving average of the weights. The same seed, steps, threads,
precision and --compile give the same weights on the same machine, however often the run was
interrupted.

Needs Python 3.12, PyTorch, scipy, and toto-2 2.0.0 with its dependencies, which are installed so:
    pip install torch scipy safetensors einops jaxtyping pandas huggingface_hub gluonts lightning
    pip install --no-deps toto-2==2.0.0 dd-unit-scaling==0.1.0 unit-scaling==0.3.5 docstring-parser tabulate
Exit codes: 0 done, 2 wrong usage, 3 a checkpoint or archive is not what it should be, 5 a download
failed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

import train_toto2_corpus
import train_toto2_data
import train_toto2_network
import train_toto2_score
from fetch_sample_data import FetchError
from forecast_score import geometric_mean, score
from train_optimizer import Optimizer
from train_run import Curve, TrainingError, read_curve, weights_sha256, write_atomically

WARMUP = 200
AVERAGE = 0.999  # of the weights, for what is exported
CLIP = 0.2
CURVE = ["step", "cpu_seconds", "learning_rate", "loss", "gradient_norm"]
VALIDATED_CONTEXT = 1024
LARGEST_EXPORT = 8_000_000  # bytes
PROBE = """
import torch
x = torch.ones(64, 64, dtype=torch.bfloat16)
assert (torch.nn.functional.linear(x, x) == 64).all()
"""


@dataclass(frozen=True)
class Plan:
    """What decides the weights, besides the code."""

    seed: int
    learning_rate: float
    weight_decay: float
    precision: str
    config: train_toto2_network.Config
    prices: float = 0.0  # share of the series

    def phase(self, step: int) -> dict[str, float]:
        """What may change when a run goes on."""
        return {"from_step": step, "learning_rate": self.learning_rate, "prices": self.prices}


class Training:
    """Weights, optimizer and their averages at a step."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.step = 0
        self.warm_from = 0  # the step at which the learning rate began to rise
        self.decay = (0, 0)  # the steps between which it falls; training ends there
        self.phases = [plan.phase(0)]
        self.cpu_seconds = 0.0
        self.dtype = getattr(torch, plan.precision)
        try:
            self.network = train_toto2_network.build(plan.config, plan.seed)
        except (TypeError, ValueError, AssertionError) as error:
            raise TrainingError(f"--config: {error}") from None
        self.forward = train_toto2_network.Forward(self.network, self.dtype)
        self.optimizer = Optimizer(self.network, plan.weight_decay, self.dtype)
        self.average = {n: p.detach().clone() for n, p in self.network.named_parameters()}

    def update(self, batch: train_toto2_data.Batch, learning_rate: float) -> list[float]:
        """One step; the loss and the norm of the gradient."""
        patches, groups, target, weight = batch.tensors()
        loss = train_toto2_network.pinball(self.forward(patches, groups), target, weight)
        self.optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), CLIP)
        if torch.isfinite(norm):  # one bad batch must not end hours of work
            self.optimizer.step(learning_rate)
        self.step += 1
        # Short at first: the average of random weights is of no use.
        done = self.step - self.warm_from
        keep = min(AVERAGE, (1.0 + done) / (10.0 + done))
        with torch.no_grad():
            averages = [self.average[n] for n, _ in self.network.named_parameters()]
            torch._foreach_lerp_(averages, list(self.network.parameters()), 1.0 - keep)
        return [loss.item(), norm.item()]

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
        names = ("seed", "weight_decay", "precision", "config")
        others = [name for name in names if found.get(name) != wanted[name]]
        if others:
            names_found = ", ".join(others)
            raise TrainingError(f"{path} was made with another {names_found}; expected the same options")
        self.step, self.cpu_seconds = state["step"], state["cpu_seconds"]
        self.warm_from, self.decay = state["warm_from"], tuple(state["decay"])
        self.phases = state["phases"]
        if self.plan.phase(0) != Plan(**found).phase(0):
            self.phases = [*self.phases, self.plan.phase(self.step)]
        self.network.load_state_dict(state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.average = state["average"]

    def begin_with(self, folder: Path) -> None:
        """The weights of an export; its steps are counted on, so that no batch comes twice."""
        weights = {name: w.float() for name, w in load_file(folder / "model.safetensors").items()}
        told = json.loads((folder / "training.json").read_text())
        self.network.load_state_dict(weights)
        self.average = {n: p.detach().clone() for n, p in self.network.named_parameters()}
        self.step = self.warm_from = int(told["steps"])
        self.phases = [*told["phases"], self.plan.phase(self.step)]
        self.cpu_seconds = float(told["cpu_seconds"])


def read_checkpoint(path: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = torch.load(path, weights_only=True)
        state["plan"]
    except Exception as error:
        raise TrainingError(f"{path} is not a checkpoint of this script: {error}") from None
    return state


def config_of(folder: Path) -> train_toto2_network.Config:
    try:
        return json.loads((folder / "config.json").read_text())
    except (OSError, ValueError) as error:
        raise TrainingError(f"{folder} is not an export of this script: {error}") from None


def export(training: Training, folder: Path, more: dict[str, Any]) -> None:
    """config.json, model.safetensors and training.json, as the reference names everything, in half
    precision."""
    folder.mkdir(parents=True, exist_ok=True)
    # Buffers (the taus) are stored, too: the reference's loader expects them.
    state = training.network.state_dict() | training.average
    half = {n: w.detach().to(torch.float16).contiguous() for n, w in state.items() if "tau" not in n}
    exact = {n: w.detach().float().contiguous() for n, w in state.items() if "tau" in n}
    path = folder / "model.safetensors"
    write_atomically(path, lambda to: save_file(half | exact, to, metadata={"format": "pt"}))
    if path.stat().st_size > LARGEST_EXPORT:
        raise TrainingError(f"{path} has {path.stat().st_size} bytes, at most {LARGEST_EXPORT} allowed")
    config = train_toto2_network.full_config(training.network)
    told = {
        "plan": asdict(training.plan),
        "parameters": sum(p.numel() for p in training.network.parameters()),
        "phases": training.phases,
        "steps": training.step,
        "cpu_seconds": round(training.cpu_seconds),
        "tokens_per_step": train_toto2_data.TOKENS,
        "float32_weights_sha256": weights_sha256(training.average),
        "model_safetensors_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "versions": {"torch": torch.__version__, "numpy": np.__version__},
    }
    for name, content in (("config.json", config), ("training.json", told | more)):
        text = json.dumps(content, indent=1) + "\n"
        write_atomically(folder / name, lambda to, text=text: to.write_text(text))


def describe(corpus: train_toto2_corpus.Corpus, out: Path) -> dict[str, Any]:
    """What a reader of the model card wants to check."""
    validation = out / "validation.csv"
    return {
        "data": {
            "splits": train_toto2_corpus.__doc__,
            "packages": {
                p.name: {"version": p.version, "sha256": p.sha256}
                for p in train_toto2_corpus.ALL_PACKAGES
            },
            "corpus_sha256": corpus.sha256(),
            "groups": corpus.summary(),
            "group_weights": train_toto2_data.GROUP_WEIGHTS,
            "real_share": train_toto2_data.REAL_SHARE,
        },
        "curve": read_curve(out / "curve.csv", CURVE),
        "validation": validation.read_text().splitlines() if validation.is_file() else [],
    }


def learning_rate(plan: Plan, training: Training) -> float:
    step, (decay_from, decay_to) = training.step, training.decay
    rate = plan.learning_rate * min(1.0, (step - training.warm_from + 1) / WARMUP)
    if step < decay_from:
        return rate
    progress = (step - decay_from) / max(1, decay_to - decay_from)
    return rate * max(0.0, 1.0 - math.sqrt(progress))


class Validation:
    """Scores of the averaged weights on the validation sets, one row each time in a CSV."""

    def __init__(self, data: Path, path: Path) -> None:
        self.tasks = train_toto2_score.validation_tasks(data)
        self.path = path
        if not path.is_file():
            names = ",".join(f"{name}" for name in self.tasks)
            path.write_text(f"step,point,bands,widest_constant,stocks_coverage,{names}\n")

    def __call__(self, training: Training) -> None:
        network = train_toto2_network.build(training.plan.config, 0)
        network.load_state_dict(training.network.state_dict() | training.average)
        forward = train_toto2_network.Forward(network.eval(), training.dtype)

        def forecaster(contexts: list[Any], horizon: int) -> Any:
            return train_toto2_score.forecast(forward, contexts, horizon, VALIDATED_CONTEXT)

        found = {name: score(task, forecaster) for name, task in self.tasks.items()}
        rows = list(found.values())
        widest = max(train_toto2_score.flat_bands(forecaster).values())
        point, bands = (geometric_mean(rows, key) for key in ("point", "bands"))
        cells = [f"{point:.4f}", f"{bands:.4f}", f"{widest:.3g}", f"{found['stocks']['coverage']:.3f}"]
        cells += [f"{row['point']:.4f}" for row in rows]
        with self.path.open("a") as file:
            file.write(",".join([str(training.step), *cells]) + "\n")
        print(f"validation at step {training.step}: point {point:.4f} bands {bands:.4f}", flush=True)


def best_precision() -> str:
    """bfloat16 where the CPU multiplies it in tiles (AMX) and PyTorch manages to; else float32,
    which is the faster of the two there."""
    flags = Path("/proc/cpuinfo")
    if not flags.is_file() or "amx_bf16" not in flags.read_text():
        return "float32"
    probe = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, check=False)
    return "bfloat16" if probe.returncode == 0 else "float32"


def build_training(arguments: argparse.Namespace) -> Training:
    config = train_toto2_network.CONFIG | json.loads(arguments.config)
    if arguments.init_from is not None:
        config = config_of(arguments.init_from)
    precision, checkpoint = arguments.precision, arguments.out / "checkpoint.pt"
    if arguments.resume is not None:
        before = read_checkpoint(arguments.resume)["plan"]
        config = before["config"]
        precision = before["precision"] if precision == "auto" else precision
    if precision == "auto":
        precision = best_precision()
    plan = Plan(
        arguments.seed,
        arguments.learning_rate,
        arguments.weight_decay,
        precision,
        config,
        arguments.prices,
    )
    training = Training(plan)
    if arguments.resume is not None:
        training.load(arguments.resume)
    elif checkpoint.exists():
        raise TrainingError(f"{checkpoint} exists already; give --resume, or another --out")
    elif arguments.init_from is not None:
        try:
            training.begin_with(arguments.init_from)
        except (OSError, KeyError, ValueError, RuntimeError) as error:
            raise TrainingError(f"{arguments.init_from} cannot be continued: {error}") from None
    if arguments.steps is not None or arguments.decay:
        last = arguments.steps if arguments.steps is not None else training.step + arguments.decay
        training.decay = (last - arguments.decay, last)
    return training


def train(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(arguments.threads)
    torch.use_deterministic_algorithms(True)
    torch.set_flush_denormal(True)
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    if arguments.compile:
        train_toto2_network.Kernels.compile()
    training = build_training(arguments)
    plan, checkpoint = training.plan, out / "checkpoint.pt"
    corpus = train_toto2_corpus.read_corpus(arguments.data, arguments.download)
    validate = None
    if arguments.validate_minutes > 0.0:
        validate = Validation(arguments.data, out / "validation.csv")
    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True

    before = (arguments.resume or checkpoint).with_name("curve.csv")
    curve = Curve(out / "curve.csv", before, training.step, CURVE)
    patch = plan.config["patch_size"]
    batches = train_toto2_data.stream(
        corpus, patch, plan.seed, plan.prices, training.step, arguments.workers
    )
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    started = saved = validated = time.monotonic()
    while training.step < training.decay[1] and not stopping:
        before_cpu = time.process_time()
        if arguments.minutes and time.monotonic() - started > 60.0 * arguments.minutes:
            break
        rate = learning_rate(plan, training)
        values = training.update(next(batches), rate)
        training.cpu_seconds += time.process_time() - before_cpu
        curve.add(training.step, training.cpu_seconds, rate, values)
        if time.monotonic() - saved > 60.0 * arguments.save_minutes:
            training.save(checkpoint)
            export(training, out / "model", {})
            saved = time.monotonic()
        if validate and time.monotonic() - validated > 60.0 * arguments.validate_minutes:
            validate(training)
            validated = time.monotonic()
    batches.close()
    if validate:
        validate(training)
    training.save(checkpoint)
    export(training, out / "model", describe(corpus, out))
    print(f"step {training.step}, weights {weights_sha256(dict(training.network.named_parameters()))}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    parser.add_argument("--data", type=Path, help="folder of the training data")
    parser.add_argument("--download", action="store_true", help="fetch what --data lacks")
    parser.add_argument("--steps", type=int, help="the step to stop at")
    parser.add_argument(
        "--decay", type=int, default=0, help="steps of falling learning rate at the end"
    )
    parser.add_argument("--minutes", type=float, help="stop after this time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch")
    parser.add_argument("--workers", type=int, default=1, help="processes that make batches")
    parser.add_argument(
        "--resume",
        type=Path,
        nargs="?",
        const=Path(),
        help="go on from OUT/checkpoint.pt or this file",
    )
    parser.add_argument("--init-from", type=Path, help="folder of an export to go on from")
    parser.add_argument("--export", type=Path, help="only write the export of the checkpoint here")
    parser.add_argument(
        "--learning-rate", type=float, default=0.02, help="part of a matrix that a step changes"
    )
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument(
        "--prices", type=float, default=0.0, help="share of the series that are prices, 0 to 1"
    )
    parser.add_argument("--precision", choices=("auto", "float32", "bfloat16"), default="auto")
    parser.add_argument(
        "--compile", action="store_true", help="faster steps; needs a C++ compiler and a minute"
    )
    parser.add_argument("--config", default="{}", help="JSON that changes the network's sizes")
    parser.add_argument("--save-minutes", type=float, default=4.0, help="time between checkpoints")
    parser.add_argument(
        "--validate-minutes", type=float, default=15.0, help="time between validations; 0: never"
    )
    arguments = parser.parse_args()
    if arguments.resume == Path():
        arguments.resume = arguments.out / "checkpoint.pt"
    if arguments.export is not None:
        arguments.resume = arguments.resume or arguments.out / "checkpoint.pt"
        return arguments
    if arguments.data is None:
        parser.error("expected --data")
    if arguments.steps is None and not arguments.decay and arguments.resume is None:
        parser.error("expected --steps")
    if arguments.init_from is not None and arguments.resume is not None:
        parser.error("expected --resume or --init-from, not both")
    return arguments


def export_only(arguments: argparse.Namespace) -> None:
    plan = Plan(**read_checkpoint(arguments.resume)["plan"])
    training = Training(plan)
    training.load(arguments.resume)
    export(training, arguments.export, {})


def main() -> int:
    arguments = parse()
    try:
        if arguments.export is not None:
            export_only(arguments)
        else:
            train(arguments)
    except FetchError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except (TrainingError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
