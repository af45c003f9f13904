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
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

import train_corpus
import train_data
import train_network
import train_run
from train_run import Curve, Plan, StopSignal, TrainingError, TrainingState, read_curve, write_atomically

WARMUP = 300
CLIP = 1.0
CURVE = ["step", "cpu_seconds", "learning_rate", "loss", "nll", "robust", "gradient_norm"]


class Training(TrainingState):
    def __init__(self, plan: Plan) -> None:
        super().__init__(plan, train_network.build(plan.config, plan.seed))
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
        self.count_step()
        return [loss.total.item(), loss.nll.item(), loss.robust.item(), norm.item()]


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


def describe(training: Training, corpus: train_corpus.Corpus, out: Path) -> dict[str, Any]:
    """What a reader of the model card wants to check, of the exported run in `out`."""
    return training.figures(out / "model" / "model.safetensors") | {
        "data": train_run.data_figures(corpus, train_corpus, train_corpus.TRAINING_PACKAGES, train_data),
        "curve": read_curve(out / "curve.csv", CURVE),
    }


def train(arguments: argparse.Namespace) -> None:
    train_run.prepare_torch(arguments.threads)
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
    training.plan_end(arguments.steps, arguments.decay)
    stopping = StopSignal()
    batches = train_data.Batches(corpus, config["patch_size"], plan.seed, plan.prices)
    before = (arguments.resume or checkpoint).with_name("curve.csv")
    curve = Curve(out / "curve.csv", before, training.step, CURVE)
    started = saved = time.monotonic()
    while training.step < training.decay[1] and not stopping:
        before_cpu = time.process_time()
        if arguments.minutes and time.monotonic() - started > 60.0 * arguments.minutes:
            break
        rate = training.learning_rate(WARMUP)
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
    print(training.summary())


def main() -> int:
    parser = train_run.options_of_a_run(__doc__, learning_rate=1e-3, weight_decay=0.05)
    arguments = train_run.parse_run(parser)
    train_run.check_run(parser, arguments)
    return train_run.exit_code_of(lambda: train(arguments))


if __name__ == "__main__":
    sys.exit(main())
