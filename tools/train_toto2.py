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
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

import train_run
import train_toto2_corpus
import train_toto2_data
import train_toto2_network
import train_toto2_score
from forecast_score import geometric_mean, score
from train_optimizer import Optimizer
from train_run import Curve, StopSignal, TrainingError, read_checkpoint, read_curve, write_atomically

WARMUP = 200
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
class Plan(train_run.Plan):
    precision: str = "float32"


class Training(train_run.TrainingState):
    FIXED = (*train_run.TrainingState.FIXED, "precision")

    def __init__(self, plan: Plan) -> None:
        self.dtype = getattr(torch, plan.precision)
        try:
            super().__init__(plan, train_toto2_network.build(plan.config, plan.seed))
        except (TypeError, ValueError, AssertionError) as error:
            raise TrainingError(f"--config: {error}") from None
        self.forward = train_toto2_network.Forward(self.network, self.dtype)
        self.optimizer = Optimizer(self.network, plan.weight_decay, self.dtype)

    def update(self, batch: train_toto2_data.Batch, learning_rate: float) -> list[float]:
        """One step; the loss and the norm of the gradient."""
        patches, groups, target, weight = batch.tensors()
        loss = train_toto2_network.pinball(self.forward(patches, groups), target, weight)
        self.optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), CLIP)
        if torch.isfinite(norm):  # one bad batch must not end hours of work
            self.optimizer.step(learning_rate)
        self.count_step()
        return [loss.item(), norm.item()]

    def begin_with(self, folder: Path) -> None:
        """The weights of an export; its steps are counted on, so that no batch comes twice."""
        weights = {name: w.float() for name, w in load_file(folder / "model.safetensors").items()}
        told = json.loads((folder / "training.json").read_text())
        self.network.load_state_dict(weights)
        self.average = {n: p.detach().clone() for n, p in self.network.named_parameters()}
        self.step = self.warm_from = int(told["steps"])
        self.phases = [*told["phases"], self.plan.phase(self.step)]
        self.cpu_seconds = float(told["cpu_seconds"])


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
    told = training.figures(path) | {"tokens_per_step": train_toto2_data.TOKENS}
    for name, content in (("config.json", config), ("training.json", told | more)):
        text = json.dumps(content, indent=1) + "\n"
        write_atomically(folder / name, lambda to, text=text: to.write_text(text))


def describe(corpus: train_toto2_corpus.Corpus, out: Path) -> dict[str, Any]:
    """What a reader of the model card wants to check."""
    validation = out / "validation.csv"
    return {
        "data": train_run.data_figures(corpus, train_toto2_corpus, train_toto2_corpus.ALL_PACKAGES, train_toto2_data),
        "curve": read_curve(out / "curve.csv", CURVE),
        "validation": validation.read_text().splitlines() if validation.is_file() else [],
    }


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
        config,
        arguments.prices,
        precision,
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
    training.plan_end(arguments.steps, arguments.decay)
    return training


def train(arguments: argparse.Namespace) -> None:
    train_run.prepare_torch(arguments.threads)
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
    before = (arguments.resume or checkpoint).with_name("curve.csv")
    curve = Curve(out / "curve.csv", before, training.step, CURVE)
    patch = plan.config["patch_size"]
    batches = train_toto2_data.stream(
        corpus, patch, plan.seed, plan.prices, training.step, arguments.workers
    )
    stopping = StopSignal()  # after the workers began: they end with the run
    started = saved = validated = time.monotonic()
    while training.step < training.decay[1] and not stopping:
        before_cpu = time.process_time()
        if arguments.minutes and time.monotonic() - started > 60.0 * arguments.minutes:
            break
        rate = training.learning_rate(WARMUP)
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
    print(training.summary())


def parse() -> argparse.Namespace:
    # The learning rate is the part of a matrix that a step changes.
    parser = train_run.options_of_a_run(__doc__, learning_rate=0.02, weight_decay=0.1)
    parser.add_argument("--workers", type=int, default=1, help="processes that make batches")
    parser.add_argument("--init-from", type=Path, help="folder of an export to go on from")
    parser.add_argument("--export", type=Path, help="only write the export of the checkpoint here")
    parser.add_argument("--precision", choices=("auto", "float32", "bfloat16"), default="auto")
    parser.add_argument(
        "--compile", action="store_true", help="faster steps; needs a C++ compiler and a minute"
    )
    parser.add_argument(
        "--validate-minutes", type=float, default=15.0, help="time between validations; 0: never"
    )
    arguments = train_run.parse_run(parser)
    if arguments.export is not None:
        arguments.resume = arguments.resume or arguments.out / "checkpoint.pt"
        return arguments
    train_run.check_run(parser, arguments)
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
    work = train if arguments.export is None else export_only
    return train_run.exit_code_of(lambda: work(arguments))


if __name__ == "__main__":
    sys.exit(main())
