#!/usr/bin/env python3
"""Train the small Toto 1.0 that is bundled as models/toto-mini.

    tools/train_bundled.py --download --data DATA --out RUN --steps 60000 --decay 12000

trains from nothing and exports RUN/model/config.json and model.safetensors. Modules, scaler and
loss are the reference's (train_network.py). The data, their splits and what is kept out of training
stand in train_corpus.py, train_data.py and train_synthetic.py, and again in RUN/training.json.

The learning rate warms up, stays, and falls over the last --decay steps (1 - sqrt, as
`toto.model.scheduler` has it). A run without --decay can be ended at any time: give it as many
steps as you like, stop it, and let a second run fall from where it is:

    tools/train_bundled.py --data DATA --out RUN --steps 1000000 --minutes 300
    tools/train_bundled.py --data DATA --out END --resume RUN/checkpoint.pt --decay 6000

The second command decays from the checkpoint's step on; RUN can still be continued. A run that was
interrupted goes on to its planned end with --resume alone; --threads may change. What is exported
is the moving average of the weights. A continued run may have another --learning-rate and another share
of --prices among its series; training.json tells its phases.

    tools/train_bundled.py --data DATA --out LAST --resume END/checkpoint.pt --decay 1500 --learning-rate 0.0003 --prices 0.3

The same seed, steps and threads give the same weights on the same machine, to the bit, however
often the run was interrupted: batches depend on the seed and the step alone, a checkpoint holds the
rest. The SHA-256 of the weights is printed at the end.

Needs Python 3.10, PyTorch and toto-ts 0.2.0 (tools/make_golden.py --help says how to install them).
Exit codes: 0 done, 2 wrong usage, 3 a checkpoint or archive is not what it should be, 5 a download
failed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import signal
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

import train_corpus
import train_data
import train_network
from fetch_sample_data import FetchError
from train_run import Curve, TrainingError, read_curve, weights_sha256, write_atomically

WARMUP = 300
AVERAGE = 0.999  # of the weights, for what is exported
CLIP = 1.0
CURVE = ["step", "cpu_seconds", "learning_rate", "loss", "nll", "robust", "gradient_norm"]


@dataclass(frozen=True)
class Plan:
    """What decides the weights, besides the code."""

    seed: int
    learning_rate: float
    weight_decay: float
    config: train_network.Config
    prices: float = 0.0  # share of the series

    def phase(self, step: int) -> dict[str, float]:
        """What may change when a run goes on."""
        return {"from_step": step, "learning_rate": self.learning_rate, "prices": self.prices}


class Training:
    """Weights, optimizer and their averages at a step."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.step = 0
        self.decay = (0, 0)  # the steps between which the learning rate falls; training ends there
        self.phases = [plan.phase(0)]
        self.cpu_seconds = 0.0
        self.network = train_network.build(plan.config, plan.seed)
        self.forward = train_network.Forward(self.network)
        # Norms, biases: decaying them towards zero has no meaning.
        matrices = [p for p in self.network.parameters() if p.ndim > 1]
        others = [p for p in self.network.parameters() if p.ndim <= 1]
        self.optimizer = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": plan.weight_decay},
                {"params": others, "weight_decay": 0.0},
            ],
            lr=plan.learning_rate,
            betas=(0.9, 0.95),
            eps=1e-8,
            fused=True,
        )
        self.average = {n: p.detach().clone() for n, p in self.network.named_parameters()}

    def update(self, batch: train_data.Batch, learning_rate: float) -> list[float]:
        """One step; the loss, its two parts and the norm of the gradient."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        loss = train_network.next_patch_loss(self.forward, batch.series, batch.mask, batch.ids)
        self.optimizer.zero_grad(set_to_none=True)
        loss.total.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), CLIP)
        if torch.isfinite(norm):  # one bad batch must not end hours of work
            self.optimizer.step()
        self.step += 1
        # Short at first: the average of random weights is of no use.
        keep = min(AVERAGE, (1.0 + self.step) / (10.0 + self.step))
        with torch.no_grad():
            averages = [self.average[n] for n, _ in self.network.named_parameters()]
            torch._foreach_lerp_(averages, list(self.network.parameters()), 1.0 - keep)
        return [loss.total.item(), loss.nll.item(), loss.robust.item(), norm.item()]

    def save(self, path: Path) -> None:
        state = {
            "plan": asdict(self.plan),
            "step": self.step,
            "decay": self.decay,
            "phases": self.phases,
            "cpu_seconds": self.cpu_seconds,
            "weights": self.network.state_dict(),
            "average": self.average,
            "optimizer": self.optimizer.state_dict(),
        }
        write_atomically(path, lambda temporary: torch.save(state, temporary))

    def load(self, path: Path) -> None:
        try:
            state = torch.load(path, weights_only=True)
            found = state["plan"]
        except Exception as error:
            raise TrainingError(f"{path} is no checkpoint of this script: {error}") from None
        wanted = asdict(self.plan)
        others = [name for name in ("seed", "weight_decay", "config") if found.get(name) != wanted[name]]
        if others:
            names = ", ".join(others)
            raise TrainingError(f"{path} was made with another {names}; expected the same options")
        self.step, self.cpu_seconds = state["step"], state["cpu_seconds"]
        before = Plan(**found)
        self.phases = state.get("phases", [before.phase(0)])
        if self.plan.phase(0) != before.phase(0):
            self.phases = [*self.phases, self.plan.phase(self.step)]
        self.decay = tuple(state.get("decay", self.decay))
        self.network.load_state_dict(state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.average = state["average"]


def export(folder: Path, config: train_network.Config, weights: dict[str, torch.Tensor]) -> None:
    """config.json and model.safetensors, as the reference names everything, in half precision."""
    folder.mkdir(parents=True, exist_ok=True)
    half = {
        f"model.{name}": w.detach().to(torch.float16).contiguous() for name, w in weights.items()
    }
    write_atomically(
        folder / "model.safetensors", lambda path: save_file(half, path, metadata={"format": "pt"})
    )
    text = json.dumps(config | {"use_memory_efficient_attention": True}, indent=2) + "\n"
    write_atomically(folder / "config.json", lambda path: path.write_text(text))


def learning_rate(plan: Plan, step: int, decay_from: int, decay_to: int) -> float:
    if step < WARMUP:
        return plan.learning_rate * (step + 1) / WARMUP
    if step < decay_from:
        return plan.learning_rate
    progress = (step - decay_from) / max(1, decay_to - decay_from)
    return plan.learning_rate * max(0.0, 1.0 - math.sqrt(progress))


def describe(training: Training, corpus: train_corpus.Corpus, out: Path) -> dict[str, Any]:
    """What a reader of the model card wants to check, of the exported run in `out`."""
    return {
        "plan": asdict(training.plan),
        "parameters": sum(p.numel() for p in training.network.parameters()),
        "phases": training.phases,
        "steps": training.step,
        "cpu_seconds": round(training.cpu_seconds),
        "float32_weights_sha256": weights_sha256(training.average),
        "model_safetensors_sha256": hashlib.sha256(
            (out / "model" / "model.safetensors").read_bytes()
        ).hexdigest(),
        "data": {
            "splits": train_corpus.__doc__,
            "packages": {
                p.name: {"version": p.version, "sha256": p.sha256}
                for p in train_corpus.TRAINING_PACKAGES
            },
            "corpus_sha256": corpus.sha256(),
            "groups": corpus.summary(),
            "group_weights": train_data.GROUP_WEIGHTS,
            "real_share": train_data.REAL_SHARE,
        },
        "versions": {"torch": torch.__version__, "numpy": np.__version__},
        "curve": read_curve(out / "curve.csv", CURVE),
    }


def train(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(arguments.threads)
    torch.use_deterministic_algorithms(True)
    torch.set_flush_denormal(True)
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    corpus = train_corpus.read_corpus(arguments.data, arguments.download)
    config = train_network.CONFIG | json.loads(arguments.config)
    plan = Plan(
        arguments.seed, arguments.learning_rate, arguments.weight_decay, config, arguments.prices
    )
    training = Training(plan)
    checkpoint = out / "checkpoint.pt"
    if arguments.resume is not None:
        training.load(arguments.resume)
    elif checkpoint.exists():
        raise TrainingError(f"{checkpoint} is there already; give --resume, or another --out")
    if arguments.steps is not None or arguments.decay:
        last = arguments.steps if arguments.steps is not None else training.step + arguments.decay
        training.decay = (last - arguments.decay, last)

    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    batches = train_data.Batches(corpus, config["patch_size"], plan.seed, plan.prices)
    before = (arguments.resume or checkpoint).with_name("curve.csv")
    curve = Curve(out / "curve.csv", before, training.step, CURVE)
    started = saved = time.monotonic()
    while training.step < training.decay[1] and not stopping:
        before_cpu = time.process_time()
        if arguments.minutes and time.monotonic() - started > 60.0 * arguments.minutes:
            break
        rate = learning_rate(plan, training.step, *training.decay)
        values = training.update(batches(training.step), rate)
        training.cpu_seconds += time.process_time() - before_cpu
        curve.add(training.step, training.cpu_seconds, rate, values)
        if time.monotonic() - saved > 60.0 * arguments.save_minutes:
            training.save(checkpoint)
            export(out / "model", config, training.average)
            saved = time.monotonic()
    training.save(checkpoint)
    export(out / "model", config, training.average)
    text = json.dumps(describe(training, corpus, out), indent=1) + "\n"
    write_atomically(out / "training.json", lambda path: path.write_text(text))
    print(
        f"step {training.step}, weights {weights_sha256(dict(training.network.named_parameters()))}"
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    parser.add_argument("--data", type=Path, required=True, help="folder of the training data")
    parser.add_argument("--download", action="store_true", help="fetch what --data lacks")
    parser.add_argument("--steps", type=int, help="the step to stop at")
    parser.add_argument(
        "--decay", type=int, default=0, help="steps of falling learning rate at the end"
    )
    parser.add_argument("--minutes", type=float, help="stop after this time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--resume",
        type=Path,
        nargs="?",
        const=Path(),
        help="go on from OUT/checkpoint.pt or this file",
    )
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument(
        "--prices", type=float, default=0.0, help="share of the series that are prices, 0 to 1, beside those in the mix"
    )
    parser.add_argument("--weight-decay", type=float, default=0.05)
    parser.add_argument("--config", default="{}", help="JSON that changes the network's sizes")
    parser.add_argument("--save-minutes", type=float, default=4.0, help="time between checkpoints")
    arguments = parser.parse_args()
    if arguments.steps is None and not arguments.decay and arguments.resume is None:
        parser.error("expected --steps")
    if arguments.resume == Path():
        arguments.resume = arguments.out / "checkpoint.pt"
    return arguments


def main() -> int:
    arguments = parse()
    try:
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
