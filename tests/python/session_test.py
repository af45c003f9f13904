"""Sessions: append and forecast again, the same bits as from the beginning."""

from __future__ import annotations

import unittest

import numpy as np
from support import engine, wave


class Sessions(unittest.TestCase):
    def test_a_growing_series_gives_the_numbers_of_the_whole(self) -> None:
        patch = engine().patch_size
        values = wave(40 * patch)
        session = engine().session(values[: 20 * patch])
        for end in range(21 * patch, 40 * patch, 6 * patch):
            session.append(values[len(session) : end])
            np.testing.assert_array_equal(
                session.forecast(100, samples=8).samples, engine().forecast(values[:end], 100, samples=8).samples
            )
        self.assertGreater(session.stats["patches_reused"], session.stats["patches_computed"])

    def test_single_numbers_and_lists(self) -> None:
        session = engine().session(wave(100))
        session.append(3.5)
        session.append([4.5, np.nan])
        session.append(np.array([1], np.int64))
        self.assertEqual(len(session), 104)
        expected = engine().forecast([*wave(100), 3.5, 4.5, np.nan, 1.0], 5)
        np.testing.assert_array_equal(session.forecast(5).mean, expected.mean)

    def test_variates(self) -> None:
        rows = np.stack([wave(100), wave(100, level=3)])
        session = engine().session(rows[:, :90], multivariate=True)
        session.append(rows[:, 90:99])
        session.append(rows[:, 99])  # one point of each
        np.testing.assert_array_equal(session.forecast(5).mean, engine().forecast(rows, 5, multivariate=True).mean)

    def test_rejected_inputs(self) -> None:
        session = engine().session(np.stack([wave(100), wave(100)]), multivariate=True)
        for kind, values in (
            (ValueError, 3.5),
            (ValueError, np.zeros((3, 4))),
            (ValueError, np.zeros((2, 2, 2))),
            (TypeError, "x"),
        ):
            with self.subTest(str(values)), self.assertRaises(kind):
                session.append(values)
        with self.assertRaisesRegex(ValueError, "infinite"):
            session.append([np.inf, 1.0])
        self.assertEqual(len(session), 100)
        with self.assertRaisesRegex(ValueError, "2 series, expected one"):
            engine().session(np.zeros((2, 8)))
        with self.assertRaisesRegex(ValueError, "max_length is 0"):
            engine().session(wave(), max_length=0)

    def test_timings_are_those_of_the_latest_forecast(self) -> None:
        session = engine().session(wave())
        engine().forecast(wave(), 3)
        before = engine().timings["call"]
        session.forecast(2000, samples=64)
        self.assertNotEqual(engine().timings["call"], before)
        self.assertGreaterEqual(engine().timings["call"], engine().timings["total"])

    def test_old_points_are_dropped(self) -> None:
        session = engine().session(wave(100), max_length=80)
        self.assertEqual((len(session), session.stats["points_dropped"]), (60, 40))


if __name__ == "__main__":
    unittest.main()
