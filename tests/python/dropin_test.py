"""Toto, TotoForecaster and TotoPipeline as called by code written for PyTorch."""

from __future__ import annotations

import os
import tempfile
import unittest
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from support import engine, wave

from totocpp import MaskedTimeseries, Toto, TotoForecaster, TotoPipeline

MODEL = Path(str(engine().info["path"]))


class Said(unittest.TestCase):
    def said(self, call: Any) -> tuple[Any, list[str]]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answer = call()
        self.assertEqual({warning.filename for warning in caught} - {__file__}, set())
        return answer, [str(warning.message) for warning in caught]


class CompileSwitches(Said):
    def mode(self, **arguments: Any) -> tuple[str, str, list[str]]:
        pipe, said = self.said(lambda: TotoPipeline.from_pretrained("toto-mini", cache_policy="never", **arguments))
        return pipe.engine.mode, pipe.engine.dtype, said

    def test_either_argument_enables_compiling(self) -> None:
        """Wrappers have torch_compile=False and compile_model=True by default, and compile."""
        self.assertEqual(
            self.mode(compile_model=True, compile_mode="max-autotune", torch_compile=False), ("max-autotune", "f32", [])
        )
        self.assertEqual(
            self.mode(compile_model=True, torch_compile=False, torch_dtype="bfloat16"), ("default", "bf16", [])
        )
        self.assertEqual(self.mode(compile_model=False, torch_compile=False)[0], "reference")
        pipe = TotoPipeline.from_pretrained("toto-mini", compile_model=True, torch_compile=False)
        pipe.predict(wave(), 1, num_samples=2)
        assert pipe.last_run_metadata is not None
        self.assertTrue(pipe.last_run_metadata["torch_compile_requested"])

    def test_warns_about_ignored_settings(self) -> None:
        mode, _, (sentence,) = self.mode(torch_compile=False, compile_mode="max-autotune")
        self.assertEqual(mode, "reference")
        self.assertIn("compile_mode='max-autotune' has no effect: torch_compile is False", sentence)
        for off in ({"torch_compile": False}, {"compile_mode": "reference"}):
            mode, dtype, (sentence,) = self.mode(torch_dtype="bfloat16", **off)
            self.assertEqual((mode, dtype), ("reference", "f32"))
            self.assertIn("torch_dtype='bfloat16' is ignored: reference mode", sentence)
        with mock.patch.dict(os.environ, {"TOTO_DTYPE": "int8"}):
            mode, dtype, (sentence,) = self.mode(torch_compile=False)
            self.assertEqual((mode, dtype), ("reference", "f32"))
            self.assertIn("TOTO_DTYPE='int8' is ignored: reference mode", sentence)
        self.assertEqual(self.mode(torch_compile=False, torch_dtype="float64"), ("reference", "f64", []))

    def test_max_autotune_no_cudagraphs(self) -> None:
        mode, _, (sentence,) = self.mode(compile_mode="max-autotune-no-cudagraphs")
        self.assertEqual(mode, "max-autotune")
        self.assertIn("compile_mode='max-autotune-no-cudagraphs' is max-autotune here", sentence)
        toto = Toto.from_pretrained("toto-mini", cache=False)
        _, (sentence,) = self.said(lambda: toto.compile(mode="max-autotune-no-cudagraphs"))
        self.assertEqual(toto.engine.mode, "max-autotune")
        self.assertIn("is max-autotune here", sentence)


class PipelineParts(unittest.TestCase):
    def test_attributes_that_wrappers_use(self) -> None:
        pipe = TotoPipeline.from_pretrained("toto-mini", torch_dtype="bfloat16")
        self.assertIsNone(pipe.last_run_metadata)
        self.assertEqual((pipe.device, pipe.model_dtype, pipe.compiled), ("cpu", "torch.bfloat16", True))
        self.assertFalse(TotoPipeline.from_pretrained("toto-mini", torch_compile=False).compiled)
        self.assertIsInstance(pipe.forecaster, TotoForecaster)
        self.assertIs(pipe.forecaster.model.engine, pipe.engine)
        self.assertIn("TotoPipeline(Engine('toto-mini'", repr(pipe))
        pipe.unload()
        self.assertEqual(repr(pipe), "TotoPipeline(unloaded)")
        with self.assertRaisesRegex(RuntimeError, "the pipeline was unloaded"):
            pipe.predict(wave(), 3)


class Loading(Said):
    def test_checkpoints(self) -> None:
        for given, more in (
            ((MODEL, "cpu"), {}),
            ((str(MODEL / "model.safetensors"), "cpu", True), {}),
            ((), {"checkpoint_path": MODEL, "map_location": "cpu", "threads": 1}),
        ):
            toto, said = self.said(lambda: Toto.load_from_checkpoint(*given, **more))
            self.assertEqual((toto.engine.info["weights_sha256"], said), (engine().info["weights_sha256"], []))
        with tempfile.TemporaryDirectory() as folder:
            other = Path(folder) / "other.safetensors"
            other.symlink_to(MODEL / "model.safetensors")
            with self.assertRaisesRegex(ValueError, "other.safetensors, expected model.safetensors, next to config.json"):
                Toto.load_from_checkpoint(other)
        _, (sentence,) = self.said(lambda: Toto.load_from_checkpoint(MODEL, "cuda"))
        self.assertIn("runs on the CPU", sentence)
        with self.assertRaises(FileNotFoundError):
            Toto.load_from_checkpoint("no/such/folder/model.safetensors")

    def test_pretrained(self) -> None:
        for arguments in ({"pretrained_model_name_or_path": "toto-mini"}, {"model_id": "toto-mini"}):
            self.assertEqual(Toto.from_pretrained(**arguments).engine.name, "toto-mini")
        with self.assertRaisesRegex(TypeError, "both given"):
            Toto.from_pretrained("toto-mini", model_id="toto-mini")
        _, (sentence,) = self.said(lambda: Toto.from_pretrained("toto-mini", proxies={"http": "x"}))
        self.assertIn("proxies={'http': 'x'} is ignored", sentence)
        with tempfile.TemporaryDirectory() as folder:
            snapshot = Path(folder) / "models--a--b" / "snapshots" / "main"
            snapshot.parent.mkdir(parents=True)
            snapshot.symlink_to(MODEL)
            self.assertEqual(Toto.from_pretrained("a/b", cache_dir=folder).engine.name, "a/b")

    def test_devices(self) -> None:
        toto = Toto(engine())
        self.assertIs(toto.cpu(), toto)
        self.assertEqual(str(toto.device), "cpu")
        for call in (toto.cuda, lambda: toto.cuda("cuda:1")):
            answer, (sentence,) = self.said(call)
            self.assertIs(answer, toto)
            self.assertIn("the model runs on the CPU", sentence)
        self.assertIn("Toto(Engine('toto-mini'", repr(toto))


class Forecaster(unittest.TestCase):
    def test_collated_batches(self) -> None:
        """torch's default_collate repeats a common number for each series."""
        series = np.stack([np.stack([wave(96), wave(96, level=3)])] * 2)
        inputs = MaskedTimeseries(series, np.ones(series.shape, bool), np.zeros(series.shape))
        forecaster = TotoForecaster(engine())
        for one, each in ((0, np.array([0, 0])), (1, [1, 1])):
            collated = forecaster.forecast(inputs._replace(num_exogenous_variables=each), 5)
            np.testing.assert_array_equal(
                collated.mean, forecaster.forecast(inputs._replace(num_exogenous_variables=one), 5).mean
            )
        with self.assertRaisesRegex(ValueError, r"num_exogenous_variables is \[0, 1\], expected the same number"):
            forecaster.forecast(inputs._replace(num_exogenous_variables=np.array([0, 1])), 5)

    def test_the_uncached_path_gives_the_engines_numbers(self) -> None:
        inputs = MaskedTimeseries(wave(64)[np.newaxis], None, None)
        with mock.patch.dict(os.environ, {"TOTO_DTYPE": "bf16", "TOTO_SEED": "7"}):
            toto = Toto.from_pretrained("toto-mini", threads=1, isa="reference", cache=False)
            with self.assertWarnsRegex(UserWarning, "slow"):
                first = TotoForecaster(toto).forecast(inputs, 3, num_samples=4, use_kv_cache=False)
        uncached = toto.uncached()
        self.assertEqual((uncached.threads, uncached.isa, uncached.dtype), (1, "reference", "f32"))
        again = uncached.forecast(wave(64), 3, samples=4, seed=7, scale=1)
        np.testing.assert_array_equal(first.samples[0, 0].T, again.samples)
        exact = Toto.from_pretrained("toto-mini", mode="reference", dtype="f64")
        self.assertEqual(exact.uncached().dtype, "f64")

    def test_rejects_an_array_without_a_mask(self) -> None:
        with self.assertRaisesRegex(TypeError, "the inputs are ndarray, expected totocpp.MaskedTimeseries"):
            TotoForecaster(engine()).forecast(wave(), 5)  # type: ignore[arg-type]


if __name__ == "__main__":
    unittest.main()
