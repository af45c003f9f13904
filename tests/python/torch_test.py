"""Tensors in, tensors out, and PyTorch in the same process. Run by check_python.sh if TOTO_TORCH_PYTHON is set."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import threading
import unittest
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from forecaster_test import inputs
from support import engine, needs, wave

import totocpp
from totocpp import MaskedTimeseries, Toto, TotoForecaster


@needs("torch")
class Torch(unittest.TestCase):
    def test_torch_in_torch_out(self) -> None:
        import torch

        series = torch.from_numpy(np.stack([wave(), wave(level=3)])).requires_grad_()
        masked = MaskedTimeseries(
            series=series,
            padding_mask=torch.full_like(series, True, dtype=torch.bool),
            id_mask=torch.zeros_like(series),
            timestamp_seconds=torch.zeros_like(series),
            time_interval_seconds=torch.full((2,), 900),
        ).to(torch.device("cpu"))
        forecast = TotoForecaster(Toto(engine())).forecast(masked, 20, num_samples=16)
        expected = TotoForecaster(engine()).forecast(inputs(series.detach().numpy()), 20, num_samples=16)
        for given, wanted in (
            (forecast.mean, expected.mean),
            (forecast.samples, expected.samples),
            (forecast.median, expected.median),
            (forecast.std, expected.std),
            (forecast.quantile(0.1), expected.quantile(0.1)),
            (forecast.quantile(torch.tensor(0.1)), expected.quantile(np.float32(0.1))),
        ):
            self.assertIsInstance(given, torch.Tensor)
            np.testing.assert_array_equal(given.numpy(), wanted)

    @unittest.skipUnless(importlib.util.find_spec("toto"), "needs toto-ts")
    def test_the_example_of_toto_ts(self) -> None:
        """As in its package, with changed imports, model name and device."""
        import torch

        text = importlib.metadata.metadata("toto-ts")["Description"] or importlib.metadata.metadata("toto-ts").get_payload()
        (code,) = [b for b in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S) if "TotoForecaster(toto.model)" in b]
        for old, new in (
            (r"from toto\.[a-z.]+ import", "from totocpp import"),
            (r"Datadog/Toto-Open-Base-1.0", "toto-mini"),
            (r"'cuda'", "'cpu'"),
        ):
            code, changed = re.subn(old, new, code)
            self.assertGreater(changed, 0, old)
        names: dict[str, Any] = {}
        exec(code, names)
        self.assertIs(names["Toto"], Toto)
        self.assertEqual(names["prediction_samples"].shape, (1, 7, 336, 256))
        for name in ("median_prediction", "lower_quantile", "upper_quantile"):
            self.assertIsInstance(names[name], torch.Tensor)
            self.assertEqual(names[name].shape, (1, 7, 336))

    def test_tensors_of_all_types(self) -> None:
        import torch

        values = np.round(wave(200) * 8)
        expected = engine().forecast(values, 5).mean
        for kind in (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int32):
            given = torch.from_numpy(values).to(kind)
            np.testing.assert_array_equal(engine().forecast(given, 5).mean, expected)
        pipe = totocpp.TotoPipeline.from_pretrained(torch_dtype=torch.bfloat16)
        self.assertEqual(pipe.predict(torch.from_numpy(values), 3, num_samples=4)[0].samples.shape, (4, 3))

    def test_a_type_may_be_the_first_argument(self) -> None:
        import torch

        with self.assertWarnsRegex(UserWarning, "to: torch.bfloat16 is ignored, weights stay f32"):
            Toto(engine()).to(torch.bfloat16)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Toto(engine()).to(torch.device("cpu"), torch.float32)

    def test_dlpack_in_and_out(self) -> None:
        import torch
        from torch.utils import dlpack

        class Exporter:  # exports values only by DLPack
            def __init__(self, tensor: Any) -> None:
                self.__dlpack__, self.__dlpack_device__ = tensor.__dlpack__, tensor.__dlpack_device__

        values = torch.from_numpy(wave(200))
        forecast = engine().forecast(Exporter(values), 5, samples=3)
        expected = engine().forecast(wave(200), 5, samples=3)
        samples, mean = torch.from_dlpack(forecast.samples), dlpack.from_dlpack(forecast.mean)
        samples += 1  # may be changed by the caller
        np.testing.assert_array_equal(forecast.samples, expected.samples + 1)
        del forecast
        for _ in range(3):  # its memory is reused if nothing holds it
            engine().forecast(wave(200) * 2, 5, samples=3)
        np.testing.assert_array_equal(samples.numpy(), expected.samples + 1)
        np.testing.assert_array_equal(mean.numpy(), expected.mean)

    def test_with_pytorch_in_one_process(self) -> None:
        """Both compute in separate threads concurrently; neither changes the other's numbers."""
        import torch

        torch.set_num_threads(2)
        left, right = torch.randn(300, 300), torch.randn(300, 300)
        product = left @ right
        expected = engine().forecast(wave(), 50, samples=8).samples
        stop = threading.Event()

        def multiply() -> int:
            rounds = 0
            while not (stop.is_set() and rounds):
                if not torch.equal(left @ right, product):
                    raise AssertionError("PyTorch's product has changed")
                rounds += 1
            return rounds

        with ThreadPoolExecutor(2) as pool:
            others = [pool.submit(multiply) for _ in range(2)]
            try:
                for _ in range(20):
                    np.testing.assert_array_equal(engine().forecast(wave(), 50, samples=8).samples, expected)
            finally:
                stop.set()
            self.assertGreater(min(other.result() for other in others), 0)


if __name__ == "__main__":
    unittest.main()
