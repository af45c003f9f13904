"""Toto 2.0's training: the reference's network, runs that can be repeated and continued, clean data.

`make train-test` runs it.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import numpy as np
import torch
from safetensors.torch import load_file
from toto2 import Toto2Model
from toto2.configuration import Toto2ModelConfig

import train_corpus
import train_hard_series
import train_optimizer
import train_run
import train_toto2
import train_toto2_corpus
import train_toto2_data as data
import train_toto2_network as network
import train_toto2_score

TINY = network.CONFIG | {
    "d_model": 32,
    "num_heads": 2,
    "num_groups": 2,
    "num_layers": 2,
    "layer_group_size": 2,
    "d_ff": 40,
    "qk_dim": 16,
    "v_dim": 16,
}
PLAN = train_toto2.Plan(4, 0.01, 0.1, TINY)


def corpus() -> train_corpus.Corpus:
    """One series per group, of lengths from 40 to 5000 points."""
    groups = list(data.GROUP_WEIGHTS)
    lengths = np.linspace(40, 5000, len(groups)).astype(np.int64)
    values = np.random.default_rng(0).normal(10.0, 3.0, lengths.sum()).astype(np.float32)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    return train_corpus.Corpus(values, starts, lengths, groups, np.arange(len(groups)))


def lively(model: Toto2Model) -> Toto2Model:
    """Weights that make every part matter: fresh ones hardly attend and say almost nothing."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.normal_()
            if "per_dim_scale" in name:
                parameter.add_(3.0)
            if "output_head" in name:
                parameter.mul_(8.0)
    return model


class Network(unittest.TestCase):
    def test_outputs_equal_the_references(self) -> None:
        for variates in (1, 3):
            with self.subTest(variates=variates):
                model = lively(network.build(TINY, seed=3)).double()
                rng = np.random.default_rng(variates)
                values = rng.normal(size=(2, variates, 8 * 32)).cumsum(-1)
                mask = np.ones(values.shape, dtype=bool)
                mask[0, 0, :70] = False  # two patches absent, one incomplete
                shown = np.ones((2, variates, 8), dtype=bool)
                shown[:, :, 5:7] = False
                ids = np.array([[0] * variates, list(range(variates))])
                values = np.where(mask, values, 0.0)
                batch = data.prepare(values, mask, shown, ids, 32)
                self.assertIsNotNone(batch.groups)
                patches, groups, _, _ = batch.tensors()
                with torch.no_grad():
                    ours = network.Forward(model, torch.float64)(patches.double(), groups)
                    reference = model(
                        torch.from_numpy(values[..., :-32]),
                        torch.from_numpy(mask[..., :-32]),
                        torch.from_numpy(np.repeat(shown[..., :-1], 32, -1)),
                        torch.from_numpy(ids),
                    )
                expected = reference.quantiles.permute(1, 2, 3, 4, 0)
                # The reference's tables are float32, and so are the prepared patches.
                used = torch.from_numpy(batch.weight.sum(-1) > 0.0)
                torch.testing.assert_close(ours[used], expected[used], rtol=1e-4, atol=1e-4)
                self.assertGreater(expected[used].std().item(), 0.05)

    def test_gradients_equal_autograds(self) -> None:
        generator = torch.Generator().manual_seed(0)

        def draw(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()

        cos, sin = network._tables(3, 8, True)
        cases = (
            (lambda x: network._Norm.apply(x, 1e-4, torch.float64), draw(4, 6)),
            (network._Gate.apply, draw(4, 6)),
            (lambda x: network._Turn.apply(x, cos, sin), draw(2, 3, 3, 2, 8)),
        )
        for function, x in cases:
            self.assertTrue(torch.autograd.gradcheck(function, (x,)))

    def test_forecasts_equal_the_references(self) -> None:
        model = lively(network.build(TINY, seed=5)).eval()
        contexts = [np.random.default_rng(n).normal(5.0, 2.0, n) for n in (20, 96, 100)]
        ours = train_toto2_score.forecast(network.Forward(model), contexts, 40, 4096)
        for context, found in zip(contexts, ours, strict=True):
            length = -(-context.size // 32) * 32
            target = torch.zeros(1, 1, length)
            target[..., length - context.size :] = torch.from_numpy(context)
            mask = torch.arange(length)[None, None] >= length - context.size
            with torch.no_grad():
                expected = model.forecast(
                    {"target": target, "target_mask": mask, "series_ids": torch.zeros(1, 1).long()},
                    40,
                    scaler_fallback_min_obs=8,
                )
            reference = expected[:, 0, 0].T.double().numpy()
            np.testing.assert_allclose(found, reference, rtol=1e-3, atol=1e-3)

    def test_the_loss_is_least_at_the_quantiles(self) -> None:
        sample = torch.from_numpy(np.random.default_rng(0).normal(size=100_000))
        exact = torch.quantile(sample, torch.tensor(network.LEVELS, dtype=torch.float64))
        weight = torch.full_like(sample, 1.0 / sample.numel())

        def loss(levels: torch.Tensor) -> float:
            return network.pinball(levels.expand(sample.numel(), -1), sample, weight).item()

        for shift in (-0.05, 0.05):
            self.assertLess(loss(exact), loss(exact + shift))

    def test_a_network_that_is_too_large_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "at most 4000000"):
            network.build(network.CONFIG | {"d_ff": 1024}, seed=0)


class Optimizer(unittest.TestCase):
    def test_singular_values_become_alike(self) -> None:
        matrices = torch.randn(2, 24, 64, generator=torch.Generator().manual_seed(0))
        for x in (matrices, matrices.mT):
            values = torch.linalg.svdvals(train_optimizer.orthogonalized(x, torch.float32))
            self.assertGreater(values.min().item(), 0.7)
            self.assertLess(values.max().item(), 1.3)

    def test_every_parameter_has_one_optimizer(self) -> None:
        model = network.build(TINY, seed=0)
        hidden, others = train_optimizer.split(model)
        held = [id(p) for group in (*hidden, *others.values()) for p in group]
        self.assertEqual(sorted(held), sorted(id(p) for p in model.parameters()))

    def test_a_step_changes_a_matrix_by_its_rate(self) -> None:
        model = network.build(TINY, seed=0)
        optimizer = train_optimizer.Optimizer(model, 0.0, torch.float32)
        before = model.transformer.layers[0].ffn.fc1.weight.detach().clone()
        for parameter in model.parameters():
            parameter.grad = torch.randn_like(parameter)
        optimizer.step(0.01)
        change = model.transformer.layers[0].ffn.fc1.weight.detach() - before
        self.assertAlmostEqual(change.square().mean().sqrt().item(), 0.01, delta=1e-4)


def advance(training: train_toto2.Training, steps: int) -> None:
    batches = data.Batches(corpus(), 32, PLAN.seed)
    for _ in range(steps):
        training.update(batches(training.step), 0.01)


def fingerprint(training: train_toto2.Training) -> str:
    return train_run.weights_sha256(dict(training.network.named_parameters()))


class Run(unittest.TestCase):
    def setUp(self) -> None:
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_interruption_changes_nothing(self) -> None:
        whole, broken = train_toto2.Training(PLAN), train_toto2.Training(PLAN)
        advance(whole, 6)
        advance(broken, 3)
        broken.save(self.folder / "checkpoint.pt")
        resumed = train_toto2.Training(PLAN)
        resumed.load(self.folder / "checkpoint.pt")
        advance(resumed, 3)
        self.assertEqual(fingerprint(whole), fingerprint(resumed))
        averages = [train_run.weights_sha256(one.average) for one in (whole, resumed)]
        self.assertEqual(*averages)

    def test_training_lowers_the_loss(self) -> None:
        training = train_toto2.Training(PLAN)
        batch = data.Batches(corpus(), 32, 1)(3)
        losses = [training.update(batch, 0.01)[0] for _ in range(12)]
        self.assertLess(losses[-1], 0.9 * losses[0])

    def test_the_reference_reads_the_export(self) -> None:
        training = train_toto2.Training(PLAN)
        advance(training, 2)
        train_toto2.export(training, self.folder, {})
        config = json.loads((self.folder / "config.json").read_text())
        model = Toto2Model(Toto2ModelConfig(**config))
        stored = load_file(self.folder / "model.safetensors")
        model.load_state_dict(stored)  # every name and shape, nothing more
        kinds = {name: w.dtype for name, w in stored.items()}
        self.assertTrue(
            all((kind == torch.float32) == ("tau" in name) for name, kind in kinds.items())
        )
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(parameter, training.average[name], rtol=1e-3, atol=1e-3)

    def test_a_run_goes_on_from_an_export(self) -> None:
        training = train_toto2.Training(PLAN)
        advance(training, 3)
        train_toto2.export(training, self.folder, {})
        more = train_toto2.Training(PLAN)
        more.begin_with(self.folder)
        self.assertEqual((more.step, more.warm_from), (3, 3))
        rate = more.learning_rate(train_toto2.WARMUP)
        more.decay = (1000, 2000)
        self.assertAlmostEqual(more.learning_rate(train_toto2.WARMUP), PLAN.learning_rate / 200)
        self.assertEqual(rate, 0.0)  # no steps are planned yet
        self.assertEqual([phase["from_step"] for phase in more.phases], [0, 3])

    def test_a_checkpoint_of_other_options_is_refused(self) -> None:
        train_toto2.Training(PLAN).save(self.folder / "checkpoint.pt")
        other = train_toto2.Plan(5, 0.01, 0.1, TINY)
        with self.assertRaisesRegex(train_run.TrainingError, "another seed"):
            train_toto2.Training(other).load(self.folder / "checkpoint.pt")


class Command(unittest.TestCase):
    """The command as a user gives it, but for the corpus."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.enterContext(
            unittest.mock.patch.object(train_toto2_corpus, "read_corpus", lambda *_: corpus())
        )
        self.enterContext(unittest.mock.patch.object(train_run.Curve, "EVERY", 1))

    def run_command(self, out: str, *options: str) -> tuple[int, str]:
        """The exit code, and the last line of output or of errors."""
        command = ["train_toto2", "--data", "unused", "--out", str(self.folder / out)]
        command += ["--config", json.dumps(TINY), "--validate-minutes", "0", "--precision", "float32"]
        output, errors = io.StringIO(), io.StringIO()
        with (
            unittest.mock.patch.object(sys, "argv", [*command, *options]),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(errors),
        ):
            code = train_toto2.main()
        lines = (errors.getvalue() or output.getvalue()).splitlines()
        return code, lines[-1] if lines else ""

    def test_an_interrupted_run_reaches_the_same_end(self) -> None:
        whole = self.run_command("whole", "--steps", "4", "--decay", "2")
        self.assertEqual(whole[0], 0)
        # Nothing is done within no time: the checkpoint knows where the run was to end.
        self.run_command("parts", "--steps", "4", "--decay", "2", "--minutes", "1e-9")
        self.assertEqual(self.run_command("parts", "--resume", "--workers", "0"), whole)

    def test_exports_and_goes_on_from_the_export(self) -> None:
        self.run_command("run", "--steps", "2")
        exported = self.folder / "exported"
        self.assertEqual(self.run_command("run", "--export", str(exported))[0], 0)
        one, two = (load_file(f / "model.safetensors") for f in (exported, self.folder / "run/model"))
        self.assertTrue(all(torch.equal(one[name], two[name]) for name in two))
        code, _ = self.run_command("more", "--init-from", str(exported), "--steps", "4")
        self.assertEqual(code, 0)
        told = json.loads((self.folder / "more/model/training.json").read_text())
        self.assertEqual(told["steps"], 4)

    def test_a_run_is_not_overwritten(self) -> None:
        self.run_command("run", "--steps", "1")
        code, message = self.run_command("run", "--steps", "1")
        self.assertEqual(code, 3)
        self.assertIn("exists already; give --resume", message)


class Data(unittest.TestCase):
    def test_a_batch_depends_on_seed_and_step_alone(self) -> None:
        one, two = (data.Batches(corpus(), 32, seed=9) for _ in range(2))
        for step in (5, 0, 17):
            a, b = one(step), two(step)
            self.assertTrue(np.array_equal(a.patches, b.patches) and np.array_equal(a.target, b.target))

    def test_batches_are_finite_and_weights_sum_to_one(self) -> None:
        batches = data.Batches(corpus(), 32, seed=2)
        for step in range(30):
            batch = batches(step)
            for part in (batch.patches, batch.target, batch.weight):
                self.assertTrue(np.isfinite(part).all())
            self.assertAlmostEqual(float(batch.weight.sum()), 1.0, delta=1e-3)
            self.assertLessEqual(batch.patches[..., 0].size, data.TOKENS * 64)

    def test_hidden_patches_do_not_count_and_are_asked_for(self) -> None:
        values = np.concatenate([np.tile([1.0, 3.0], 48), np.full(64, 500.0)])[None, None]
        mask, shown = np.ones(values.shape, dtype=bool), np.ones((1, 1, 5), dtype=bool)
        shown[..., 3:] = False
        batch = data.prepare(values, mask, shown, np.zeros((1, 1), dtype=np.int64), 32)
        self.assertEqual(batch.patches.shape, (1, 1, 4, 64))
        self.assertTrue((batch.patches[0, 0, 3, :32] == 0.0).all())
        self.assertTrue((batch.patches[0, 0, 3, 32:] == 1.0).all())
        deviation = np.std(np.tile([1.0, 3.0], 48), ddof=1)
        np.testing.assert_allclose(batch.target[0, 0, 2:], np.arcsinh(498.0 / deviation), rtol=1e-5)

    def test_the_first_patch_is_shown_and_spans_differ(self) -> None:
        shown = data.spans(np.random.default_rng(0), 400, 16)
        self.assertTrue(shown[:, 0].all())
        hidden = (~shown).sum(1)
        self.assertGreater(np.unique(hidden).size, 8)
        self.assertLess((hidden == 0).mean(), 0.4)

    def test_makers_give_finite_series(self) -> None:
        rng = np.random.default_rng(1)
        for _, maker in train_hard_series.MAKERS:
            for length in (64, 1056):
                for _ in range(20):
                    self.assertTrue(np.isfinite(maker(rng, length)).all(), maker.__name__)
        rows = train_hard_series.lead_and_lag(rng, 200, 4, 64)
        self.assertEqual(rows.shape, (4, 200))


class Splits(unittest.TestCase):
    def test_nothing_judges_that_trains(self) -> None:
        left_out = train_toto2_corpus.LEFT_OUT_SYMBOLS
        self.assertEqual(len(train_toto2_corpus.RETURN_SYMBOLS), 10)
        self.assertEqual(len(left_out), 4 + 10 + 20)
        self.assertTrue(train_corpus.HELD_OUT_SYMBOLS < left_out)
        with unittest.mock.patch.object(
            train_toto2_corpus, "_m4", lambda *_: [np.arange(60.0) + i for i in range(300)]
        ):
            lengths = [v.size for v in train_toto2_corpus._m4_without_ends(Path(), "Monthly")]
            with unittest.mock.patch.object(train_toto2_corpus, "archive_in", lambda *_: Path()):
                held = train_toto2_corpus._m4_ends(Path(), "Monthly")
        cut = {str(i) for i, length in enumerate(lengths) if length == 42}
        self.assertEqual(cut, set(held.series))

    def test_overlaps_are_found_in_any_unit(self) -> None:
        rng = np.random.default_rng(0)
        tests = rng.normal(100.0, 10.0, (50, 18))
        text = "\n".join(["id", *(f"T{i}," + ",".join(map(str, row)) for i, row in enumerate(tests))])
        with unittest.mock.patch.object(train_toto2_corpus, "_member", lambda *_: text):
            overlaps = train_toto2_corpus.Overlaps(Path())
        other = rng.normal(100.0, 10.0, 400)
        self.assertFalse(overlaps.found(other))
        other[200:218] = 3.0 * tests[7] - 40.0
        self.assertTrue(overlaps.found(other))


if __name__ == "__main__":
    unittest.main()
