"""Accepted numbers, their rounding, and the messages about wrong ones."""

from __future__ import annotations

import unittest

import numpy as np
from support import engine, wave

import totocpp


class Rounding(unittest.TestCase):
    def test_whole_numbers_are_rounded_once(self) -> None:
        """Just above the middle of two float32; float64 has only the middle, which rounds the other way."""
        large = 2**60 + 2**36 + 1
        values = [large, 1, -large, 2, large, 3]
        expected = engine().forecast(np.array(values, dtype=np.int64), 4).mean
        for given in (
            values,
            tuple(values),
            [float(v) if abs(v) < 9 else v for v in values],
            np.array(values, dtype=object),
            [np.int64(v) for v in values],
        ):
            np.testing.assert_array_equal(engine().forecast(given, 4).mean, expected)
        filled = engine().forecast([None, *values], 4).mean  # a leading missing value is dropped
        np.testing.assert_array_equal(filled, expected)
        many = engine().forecast([values, [1.0, 2.0]], 4)
        np.testing.assert_array_equal(many[0].mean, expected)


class Sentences(unittest.TestCase):
    def test_messages_name_a_series_by_its_index(self) -> None:
        """Counted from 0, as Python does."""
        good, missing = np.arange(5.0), np.full(5, np.nan)
        for batch in ([good] * 500 + [missing] + [good] * 500, np.stack([good] * 500 + [missing])):
            with self.assertRaisesRegex(ValueError, "^series 500: variate 0 has no value, all 5 are missing$"):
                engine().forecast(batch, 2)
        with self.assertRaisesRegex(ValueError, "^the series: variate 0 has no value"):
            engine().forecast(missing, 2)
        with self.assertRaisesRegex(ValueError, '^series "b": variate 0 has no value'):
            engine().forecast({"a": good, "b": missing}, 2)

    def test_a_batch_is_refused_as_history(self) -> None:
        with self.assertRaisesRegex(ValueError, r"a batch of 1 series, expected one series, \[time\]"):
            engine().session(wave()[np.newaxis])

    def test_keep_samples_needs_samples(self) -> None:
        with self.assertRaisesRegex(ValueError, "keep_samples=True without samples .* samples=256"):
            engine().forecast(wave(), 3, keep_samples=True)
        self.assertIsNone(engine().forecast(wave(), 3, samples=5, keep_samples=False).samples)

    def test_text_and_times_among_objects(self) -> None:
        for wrong in ("1", b"1", np.datetime64("2020-01-01"), np.timedelta64(3, "s"), [1.0], object()):
            given = np.empty(2, object)
            given[:] = [1.0, wrong]
            with self.subTest(wrong), self.assertRaisesRegex(TypeError, "^the series holds .*, expected numbers$"):
                engine().forecast(given, 2)
        with self.assertRaisesRegex(TypeError, "datetime64"):
            engine().forecast(np.ma.array(np.array(["2020-01-01"], "M8[D]")), 2)


class Answers(unittest.TestCase):
    def test_several_quantiles_in_one_call(self) -> None:
        forecast = engine().forecast(wave(), 3, samples=9)
        for levels in ([0.1, 0.9], np.array([0.1, 0.9])):
            np.testing.assert_array_equal(
                forecast.quantile(levels), np.stack([forecast.quantiles["0.1"], forecast.quantiles["0.9"]])
            )
        for wrong in ("0.1", None):
            with self.assertRaisesRegex(TypeError, "the quantile is .*, expected a level"):
                forecast.quantile(wrong)  # type: ignore[arg-type]
        with self.assertRaisesRegex(ValueError, "quantile 1.5 is outside the interval"):
            forecast.quantile(1.5)

    def test_repr(self) -> None:
        session = engine().session(wave())
        self.assertIn("Session(512 points, Engine('toto-mini'", repr(session))
        self.assertTrue(totocpp.TotoForecaster.__doc__)


if __name__ == "__main__":
    unittest.main()
