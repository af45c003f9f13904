"""A training run can be repeated and interrupted, and does not see what it is judged on.

`make train-test` runs it.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import sys
import tempfile
import unittest
import unittest.mock
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import numpy as np
import torch
from safetensors.torch import load_file

import train_bundled
import train_corpus
import train_data
import train_network
import train_run

TINY = train_network.CONFIG | {
    "embed_dim": 16,
    "num_layers": 2,
    "num_heads": 2,
    "mlp_hidden_dim": 16,
    "spacewise_every_n_layers": 2,
    "output_distribution_kwargs": {"k_components": 2},
}
PLAN = train_bundled.Plan(seed=4, learning_rate=1e-3, weight_decay=0.05, config=TINY)


def corpus() -> train_corpus.Corpus:
    """One series per group, of lengths from 30 to 1000 points."""
    groups = list(train_data.GROUP_WEIGHTS)
    lengths = np.linspace(30, 1000, len(groups)).astype(np.int64)
    values = np.random.default_rng(0).normal(10.0, 3.0, lengths.sum()).astype(np.float32)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    return train_corpus.Corpus(values, starts, lengths, groups, np.arange(len(groups)))


def advance(training: train_bundled.Training, steps: int) -> None:
    batches = train_data.Batches(corpus(), TINY["patch_size"], PLAN.seed)
    for _ in range(steps):
        training.update(batches(training.step), 1e-3)


def fingerprint(training: train_bundled.Training) -> str:
    return train_run.weights_sha256(dict(training.network.named_parameters()))


class Run(unittest.TestCase):
    def setUp(self) -> None:
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_same_seed_gives_the_same_weights(self) -> None:
        first, second = train_bundled.Training(PLAN), train_bundled.Training(PLAN)
        advance(first, 200)
        advance(second, 200)
        self.assertEqual(fingerprint(first), fingerprint(second))

    def test_interruption_changes_nothing(self) -> None:
        whole = train_bundled.Training(PLAN)
        advance(whole, 6)
        broken = train_bundled.Training(PLAN)
        advance(broken, 3)
        broken.save(self.folder / "checkpoint.pt")
        resumed = train_bundled.Training(PLAN)
        resumed.load(self.folder / "checkpoint.pt")
        advance(resumed, 3)
        self.assertEqual(fingerprint(whole), fingerprint(resumed))
        self.assertEqual(
            train_run.weights_sha256(whole.average),
            train_run.weights_sha256(resumed.average),
        )

    def test_a_checkpoint_of_other_options_is_refused(self) -> None:
        train_bundled.Training(PLAN).save(self.folder / "checkpoint.pt")
        other = train_bundled.Plan(5, PLAN.learning_rate, PLAN.weight_decay, TINY)
        with self.assertRaisesRegex(train_bundled.TrainingError, "another seed"):
            train_bundled.Training(other).load(self.folder / "checkpoint.pt")

    def test_export_holds_every_weight_under_the_references_name(self) -> None:
        training = train_bundled.Training(PLAN)
        train_bundled.export(self.folder, TINY, training.average)
        stored = load_file(self.folder / "model.safetensors")
        expected = {f"model.{name}" for name, _ in training.network.named_parameters()}
        self.assertEqual(set(stored), expected)
        self.assertTrue(all(w.dtype == torch.float16 for w in stored.values()))


class Command(unittest.TestCase):
    """The command as a user gives it, but for the corpus."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.enterContext(
            unittest.mock.patch.object(train_corpus, "read_corpus", lambda *_: corpus())
        )
        self.enterContext(unittest.mock.patch.object(train_bundled.Curve, "EVERY", 1))

    def run_command(self, out: str, *options: str) -> tuple[int, str]:
        """The exit code, and the last line of output or of errors."""
        command = ["train_bundled", "--data", "unused", "--out", str(self.folder / out)]
        command += ["--config", json.dumps(TINY), *options]
        output, errors = io.StringIO(), io.StringIO()
        with (
            unittest.mock.patch.object(sys, "argv", command),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(errors),
        ):
            code = train_bundled.main()
        return code, (errors.getvalue() or output.getvalue()).splitlines()[-1]

    def steps(self, out: str) -> list[str]:
        lines = (self.folder / out / "curve.csv").read_text().splitlines()
        return [line.partition(",")[0] for line in lines]

    def test_an_interrupted_run_reaches_the_same_end(self) -> None:
        whole = self.run_command("whole", "--steps", "5", "--decay", "2")
        self.assertEqual(whole[0], 0)
        # A time limit of 0 does no step: the checkpoint holds the planned end of the run.
        self.run_command("parts", "--steps", "5", "--decay", "2", "--minutes", "1e-9")
        self.assertEqual(self.run_command("parts", "--resume"), whole)
        self.assertEqual(self.steps("parts"), ["step", "1", "2", "3", "4", "5"])

    def test_the_description_names_the_exported_file(self) -> None:
        self.run_command("run", "--steps", "1")
        told = json.loads((self.folder / "run" / "training.json").read_text())
        exported = (self.folder / "run" / "model" / "model.safetensors").read_bytes()
        self.assertEqual(told["model_safetensors_sha256"], hashlib.sha256(exported).hexdigest())

    def test_a_run_can_be_ended_elsewhere_and_goes_on(self) -> None:
        self.run_command("run", "--steps", "3")
        checkpoint = str(self.folder / "run" / "checkpoint.pt")
        code, _ = self.run_command("end", "--resume", checkpoint, "--decay", "2")
        self.assertEqual(code, 0)
        self.assertEqual(self.steps("end"), ["step", "1", "2", "3", "4", "5"])
        described = json.loads((self.folder / "end" / "training.json").read_text())
        self.assertEqual((described["steps"], len(described["curve"])), (5, 5))
        self.assertEqual(self.run_command("run", "--resume", "--steps", "4")[0], 0)

    def test_a_run_is_not_overwritten(self) -> None:
        self.run_command("run", "--steps", "1")
        code, message = self.run_command("run", "--steps", "1")
        self.assertEqual(code, 3)
        self.assertIn("is there already; give --resume", message)


class LearningRate(unittest.TestCase):
    def test_rises_stays_and_falls_to_nothing(self) -> None:
        training = train_bundled.Training(PLAN)
        training.decay = (1000, 2000)

        def rate(step: int) -> float:
            training.step = step
            return training.learning_rate(train_bundled.WARMUP)

        self.assertAlmostEqual(rate(train_bundled.WARMUP // 2 - 1), 0.5e-3)
        self.assertEqual(rate(999), 1e-3)
        self.assertAlmostEqual(rate(1250), 0.5e-3)
        self.assertLess(rate(1999), 1e-6)


class Data(unittest.TestCase):
    def test_a_batch_depends_on_seed_and_step_alone(self) -> None:
        one, two = (train_data.Batches(corpus(), 24, seed=9) for _ in range(2))
        for step in (5, 0, 17):
            a, b = one(step), two(step)
            self.assertTrue(torch.equal(a.series, b.series) and torch.equal(a.mask, b.mask))
        self.assertFalse(torch.equal(one(0).series[0, 0, :24], one(1).series[0, 0, :24]))

    def test_batches_are_finite_and_zero_where_masked(self) -> None:
        batches = train_data.Batches(corpus(), 24, seed=2)
        for step in range(40):
            batch = batches(step)
            self.assertTrue(torch.isfinite(batch.series).all())
            self.assertEqual(batch.series[~batch.mask].abs().sum().item(), 0.0)
            self.assertEqual(batch.series.shape[-1] % 24, 0)

    def test_evaluated_symbols_and_years_are_left_out(self) -> None:
        archive = self.enterContext(tempfile.TemporaryDirectory()) + "/prices.whl"
        table = "Date,AAPL,IBM,GOOGL,AMD,GOOG\n2016-10-13,1,2,3,4,5\n2016-10-14,6,7,8,9,10\n"
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("prices.csv", table)
        found = [list(v) for v in train_corpus._prices(Path(archive), "prices.csv")]
        self.assertEqual(found, [[2.0]])


if __name__ == "__main__":
    unittest.main()
