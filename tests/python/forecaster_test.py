"""Toto, MaskedTimeseries, TotoForecaster, Forecast: toto-ts's tutorial with the import changed."""

from __future__ import annotations

import unittest
import warnings
from typing import Any

import numpy as np
from support import engine, wave

from totocpp import MaskedTimeseries, Toto, TotoForecaster


def inputs(series: Any, **changes: Any) -> MaskedTimeseries:
    made = MaskedTimeseries(
        series=series,
        padding_mask=np.ones(series.shape, bool),
        id_mask=np.zeros(series.shape),
        timestamp_seconds=np.zeros(series.shape),
        time_interval_seconds=np.full(series.shape[:-1], 900),
    )
    return made._replace(**changes)


class Tutorial(unittest.TestCase):
    def test_numpy(self) -> None:
        toto = Toto.from_pretrained("toto-mini")
        toto.to("cpu")
        toto.compile()
        forecaster = TotoForecaster(toto.model)
        forecast = forecaster.forecast(
            inputs(np.stack([wave(), wave(level=3), wave(level=-8)])),
            prediction_length=100,
            num_samples=48,
            samples_per_batch=16,
        )
        self.assertEqual(forecast.mean.shape, (1, 3, 100))
        self.assertEqual(forecast.samples.shape, (1, 3, 100, 48))
        np.testing.assert_allclose(forecast.mean, forecast.samples.mean(-1), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(forecast.median, np.quantile(forecast.samples, 0.5, axis=-1), rtol=1e-5)
        np.testing.assert_allclose(forecast.std, forecast.samples.std(-1, ddof=1), rtol=1e-4)
        self.assertTrue((forecast.quantile(0.1) <= forecast.quantile(0.9)).all())

    def test_without_samples_the_mean_is_fed_back(self) -> None:
        forecast = TotoForecaster(Toto(engine())).forecast(inputs(wave()[np.newaxis]), 100)
        self.assertIsNone(forecast.samples)
        np.testing.assert_array_equal(forecast.mean[0, 0], engine().forecast(wave(), 100, decode="mean", scale=1).mean)
        with self.assertRaisesRegex(ValueError, "num_samples="):
            forecast.quantile(0.5)
        with self.assertRaisesRegex(ValueError, "num_samples="):
            _ = forecast.std

    def test_batches_masks_and_ids(self) -> None:
        rows = np.stack([wave(96), wave(96) ** 3])  # not the same after scaling
        forecaster = TotoForecaster(engine())
        one = forecaster.forecast(inputs(rows), 5).mean
        np.testing.assert_array_equal(forecaster.forecast(inputs(np.stack([rows, rows])), 5).mean[1], one[0])
        apart = forecaster.forecast(inputs(rows, id_mask=np.array([[0], [1]])), 5).mean
        self.assertFalse(np.array_equal(apart, one))
        alone = forecaster.forecast(inputs(rows[:1]), 5).mean
        np.testing.assert_array_equal(apart[0, 0], alone[0, 0])
        mask = np.ones(rows.shape, bool)
        mask[:, :32] = False
        masked = forecaster.forecast(inputs(rows, padding_mask=mask), 5).mean
        self.assertFalse(np.array_equal(masked, one))
        for counts in (0.5, 256, -1, 512.0):  # whatever is not 0
            told = forecaster.forecast(inputs(rows, padding_mask=np.where(mask, counts, 0)), 5).mean
            np.testing.assert_array_equal(told, masked)

    def test_known_futures(self) -> None:
        rows = np.stack([wave(96), wave(96, level=3)])
        future = np.full((1, 40), 7.0, np.float32)
        told = inputs(rows, num_exogenous_variables=1)
        forecast = TotoForecaster(engine()).forecast(told, 40, num_samples=4, future_exogenous_variables=future)
        np.testing.assert_array_equal(forecast.mean[0, 1], future[0])
        with self.assertRaisesRegex(ValueError, r"\[1, 2, 40\], expected \[1, 1, prediction_length\]"):
            TotoForecaster(engine()).forecast(told, 40, future_exogenous_variables=np.zeros((2, 40)))

    def test_rejected_inputs(self) -> None:
        forecaster = TotoForecaster(engine())
        with self.assertRaisesRegex(TypeError, "expected totocpp.Toto"):
            TotoForecaster(object())  # type: ignore[arg-type]
        with self.assertRaisesRegex(ValueError, "padding_mask has the shape"):
            forecaster.forecast(inputs(wave()[np.newaxis], padding_mask=np.ones((1, 3), bool)), 5)
        with self.assertRaisesRegex(TypeError, "padding_mask has values of type <U1"):
            forecaster.forecast(inputs(wave()[np.newaxis], padding_mask=np.full((1, 512), "1")), 5)
        with self.assertRaisesRegex(ValueError, "id_mask holds fractions"):
            forecaster.forecast(inputs(wave()[np.newaxis], id_mask=np.full((1, 512), 0.5)), 5)
        with self.assertRaisesRegex(ValueError, r"shape \[512\]"):
            forecaster.forecast(inputs(wave()), 5)

    def test_warns_about_devices_and_slow_paths(self) -> None:
        toto = Toto(engine())
        with self.assertWarnsRegex(UserWarning, "runs on the CPU"):
            toto.to("cuda")
        with self.assertWarnsRegex(UserWarning, "slow"):
            TotoForecaster(toto).forecast(inputs(wave(64)[np.newaxis]), 3, use_kv_cache=False)
        self.assertEqual(toto.compile(mode="reduce-overhead").engine.mode, "reduce-overhead")


    def test_warns_about_ignored_arguments(self) -> None:
        toto = Toto(engine())
        for sentence, call in (
            ("to: bfloat16 is ignored, weights stay f32", lambda: toto.to(dtype="bfloat16")),
            ("to: non_blocking=True is ignored", lambda: toto.to("cpu", non_blocking=True)),
            ("compile: backend='eager' is ignored", lambda: toto.compile(backend="eager")),
            ("compile: fullgraph=True is ignored", lambda: toto.compile(fullgraph=True)),
            ("compile: dynamic=False is ignored", lambda: toto.compile(dynamic=False)),
            ("strict=False is ignored", lambda: Toto.from_pretrained("toto-mini", strict=False)),
        ):
            with self.subTest(sentence), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                call()
            self.assertEqual([warning.filename for warning in caught], [__file__])
            self.assertIn(sentence, str(caught[0].message))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            toto.to("cpu", "float32").compile(backend="inductor", mode="default", fullgraph=False).to(dtype=None)
        for call in (lambda: toto.to(dtyp="x"), lambda: toto.compile(mod="x"), lambda: Toto.from_pretrained(strikt=1)):
            with self.assertRaisesRegex(TypeError, "unexpected keyword argument"):
                call()


if __name__ == "__main__":
    unittest.main()
