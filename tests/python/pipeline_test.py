"""TotoPipeline, as the wrappers around toto-ts call it."""

from __future__ import annotations

import os
import unittest
import warnings
from unittest import mock

import numpy as np
from support import engine, wave

import totocpp

METADATA = {
    "num_samples_requested",
    "num_samples_used",
    "samples_per_batch_requested",
    "samples_per_batch_used",
    "torch_dtype",
    "torch_compile_requested",
    "torch_compile_success",
    "torch_compile_mode",
    "torch_compile_backend",
    "batch_size",
}


def pipeline(**arguments: object) -> totocpp.TotoPipeline:
    return totocpp.TotoPipeline.from_pretrained("toto-mini", **arguments)


class Predict(unittest.TestCase):
    def test_samples_and_metadata(self) -> None:
        pipe = pipeline(device_map="cpu", torch_dtype="float32")
        (answer,) = pipe.predict(wave(), 8, num_samples=32, samples_per_batch=16)
        self.assertEqual(answer.samples.shape, (32, 8))
        self.assertIs(answer.numpy(), answer.samples)
        self.assertEqual(pipe.predict(wave(), 1, num_samples=32)[0].samples.shape, (32, 1))
        self.assertEqual(pipe.last_run_metadata.keys(), METADATA)
        self.assertEqual(pipe.last_run_metadata["samples_per_batch_requested"], 512)
        np.testing.assert_array_equal(answer.samples, engine().forecast(wave(), 8, samples=32, scale=1).samples)

    def test_a_batch_holds_independent_series(self) -> None:
        rows = np.stack([wave(), wave(level=-2), wave(level=30)])
        answers = pipeline().predict(rows, 4, num_samples=16)
        self.assertEqual(len(answers), 3)
        for row, answer in zip(rows, answers):
            np.testing.assert_array_equal(pipeline().predict(row, 4, num_samples=16)[0].samples, answer.samples)
        variates = pipeline().predict(rows, 4, num_samples=16, multivariate=True)
        self.assertEqual([v.samples.shape for v in variates], [(16, 4)] * 3)
        self.assertFalse(np.array_equal(variates[0].samples, answers[0].samples))

    def test_a_long_context_is_used_in_full(self) -> None:
        long = wave(6000)
        long[:1000] += 5
        whole = pipeline().predict(long, 3, num_samples=4)[0].samples
        np.testing.assert_array_equal(engine().forecast(long, 3, samples=4, context=6000, scale=1).samples, whole)
        self.assertFalse(np.array_equal(pipeline().predict(long, 3, num_samples=4, max_context=512)[0].samples, whole))

    def test_seeds(self) -> None:
        first = pipeline().predict(wave(), 3, num_samples=8)[0].samples
        np.testing.assert_array_equal(pipeline().predict(wave(), 3, num_samples=8, seed=0)[0].samples, first)
        self.assertFalse(np.array_equal(pipeline().predict(wave(), 3, num_samples=8, seed=1)[0].samples, first))

    def test_rejected_arguments(self) -> None:
        pipe = pipeline()
        with self.assertRaisesRegex(ValueError, "prediction_length is 0, expected 1 to 100000"):
            pipe.predict(wave(), 0)
        with self.assertRaisesRegex(ValueError, "num_samples is 0"):
            pipe.predict(wave(), 3, num_samples=0)


class Modes(unittest.TestCase):
    def test_compile_arguments_choose_the_mode(self) -> None:
        for arguments, mode in (
            ({}, "default"),
            ({"torch_compile": False}, "reference"),
            ({"compile_model": False}, "reference"),
            ({"torch_compile": True}, "default"),
            ({"torch_compile": True, "compile_mode": "reduce-overhead"}, "reduce-overhead"),
            ({"compile_mode": "max-autotune", "cache_policy": "never"}, "max-autotune"),
            ({"torch_compile": True, "compile_model": False}, "default"),
        ):
            with self.subTest(**arguments):
                pipe = pipeline(**arguments)
                pipe.predict(wave(), 1, num_samples=2)
                self.assertEqual(pipe.last_run_metadata["torch_compile_mode"], mode)
                self.assertEqual(pipe.last_run_metadata["torch_compile_success"], mode != "reference")
        for off in (0, np.False_):
            self.assertEqual(pipeline(torch_compile=off).engine.mode, "reference")
        for switch in ({"TOTO_DISABLE_COMPILE": "1"}, {"TOTO_COMPILE": "0"}):
            with mock.patch.dict(os.environ, switch):
                self.assertEqual(pipeline(torch_compile=True).engine.mode, "reference")
                self.assertEqual(pipeline(compile_mode="reduce-overhead").engine.mode, "reduce-overhead")
                with self.assertWarnsRegex(UserWarning, 'reference mode; dtype \\("bf16"\\) is ignored') as caught:
                    self.assertEqual(pipeline(torch_dtype="bfloat16").engine.dtype, "f32")
                self.assertEqual(caught.filename, __file__)
        with self.assertRaisesRegex(ValueError, 'unknown mode "fast"'):
            pipeline(compile_mode="fast")

    def test_types(self) -> None:
        for given, stored in (("bfloat16", "bf16"), ("torch.bfloat16", "bf16"), ("int8", "int8"), ("auto", "f32")):
            self.assertEqual(pipeline(torch_dtype=given).engine.dtype, stored)
        self.assertEqual(pipeline(torch_dtype="float64", torch_compile=False).engine.dtype, "f64")

    def test_a_warm_up_makes_the_plans(self) -> None:
        pipe = pipeline(compile_mode="reduce-overhead", warmup_sequence=512)
        made = pipe.engine.plans
        self.assertIsNone(pipe.last_run_metadata)
        for number in (128, 256, 512, 1024, 2048, 4096):
            pipe.predict(wave(), 1, number)
        pipe.predict(wave()[None], 1)
        self.assertEqual((pipe.engine.plans, pipe.engine.replans), (made, 0))
        pipe.predict(wave(), 70, 16)
        self.assertEqual((pipe.engine.plans, pipe.engine.replans), (made + 1, 1))

    def test_a_warm_up_for_given_shapes(self) -> None:
        pipe = pipeline(compile_mode="reduce-overhead")
        pipe.predict(wave(), 2, 3)
        before = pipe.last_run_metadata
        pipe.warm_up(512, [1, 70], 16, batch_size=2)
        self.assertIs(pipe.last_run_metadata, before)
        for steps in (1, 70):
            pipe.predict(np.stack([wave(), wave()]), steps, 16)
        self.assertEqual((pipe.engine.plans, pipe.engine.replans), (3, 0))
        for sentence, arguments in (
            ("length is 0", (0,)),
            ("prediction_lengths is 0", (512, [1, 0])),
            ("num_samples is 0", (512, 1, [8, 0])),
        ):
            with self.assertRaisesRegex(ValueError, sentence):
                pipe.warm_up(*arguments)
        with self.assertRaisesRegex(TypeError, "prediction_lengths is 'x', expected a whole number"):
            pipe.warm_up(512, "x")


class Warnings(unittest.TestCase):
    def said(self, call: object) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()  # type: ignore[operator]
        for warning in caught:
            self.assertEqual(warning.filename, __file__, warning.message)  # points at the caller's line
        return [str(warning.message) for warning in caught]

    def test_each_ignored_argument_gives_a_warning(self) -> None:
        for name, value in (
            ("device_map", "cuda"),
            ("torch_dtype", "float16"),
            ("compile_backend", "cudagraphs"),
            ("cache_policy", "only"),
            ("max_oom_retries", 3),
            ("min_samples_per_batch", 32),
            ("min_num_samples", 256),
            ("attn_implementation", "eager"),
        ):
            with self.subTest(name):
                (sentence,) = self.said(lambda: totocpp.TotoPipeline.from_pretrained("toto-mini", **{name: value}))
                self.assertIn(f"{name}={value!r} is ignored", sentence)
        pipe = pipeline()
        (sentence,) = self.said(lambda: pipe.predict(wave(), 1, num_samples=2, max_oom_retries=1))
        self.assertIn("max_oom_retries=1", sentence)
        (sentence,) = self.said(lambda: pipe.predict(wave(), 1, num_samples=2, num_sample=3))
        self.assertIn("num_sample=3 is ignored: there is no such argument", sentence)
        (sentence,) = self.said(lambda: pipe.predict(wave(), 1, num_samples=2, freq=None))
        self.assertIn("freq=None is ignored: there is no such argument", sentence)

    def test_usual_arguments_give_no_warning(self) -> None:
        arguments = {"device_map": "cpu", "torch_dtype": "float32", "compile_backend": "inductor", "torch_compile": True}
        self.assertEqual(self.said(lambda: totocpp.TotoPipeline.from_pretrained("toto-mini", **arguments)), [])


if __name__ == "__main__":
    unittest.main()
