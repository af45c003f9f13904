"""pandas, Nixtla's frames, GluonTS."""

from __future__ import annotations

import unittest
import warnings

import numpy as np
from support import engine, needs, wave


@needs("pandas")
class Pandas(unittest.TestCase):
    def test_series_and_frames(self) -> None:
        import pandas as pd

        expected = engine().forecast(wave(), 5).mean
        named = engine().forecast(pd.Series(wave(), name="sales"), 5)
        self.assertEqual(named.id, "sales")
        np.testing.assert_array_equal(named.mean, expected)
        columns = engine().forecast(pd.DataFrame({"a": wave(), "b": wave(level=2)}), 5)
        self.assertEqual([f.id for f in columns], ["a", "b"])
        np.testing.assert_array_equal(columns[0].mean, expected)
        one = engine().forecast(pd.DataFrame({"a": wave(), "b": wave(level=2)}), 5, multivariate=True)
        self.assertEqual(one.mean.shape, (2, 5))

    def test_its_own_missing_values(self) -> None:
        import pandas as pd

        gap = wave(100).astype(np.float64)
        gap[40] = np.nan
        expected = engine().forecast(gap, 5).mean
        nullable = pd.Series([None if np.isnan(v) else v for v in gap], dtype="Float64")
        np.testing.assert_array_equal(engine().forecast(nullable, 5).mean, expected)
        whole = pd.array([1, 2, None, 4], dtype="Int64")
        np.testing.assert_array_equal(
            engine().forecast(pd.Series(whole), 3).mean, engine().forecast([1, 2, None, 4], 3).mean
        )


@needs("pandas")
class Nixtla(unittest.TestCase):
    def frame(self) -> object:
        import pandas as pd

        days = pd.date_range("2024-01-01", periods=200, freq="D")
        months = pd.date_range("2005-01-31", periods=100, freq="ME")
        return pd.concat(
            [
                pd.DataFrame({"unique_id": "b", "ds": days, "y": wave(200)}),
                pd.DataFrame({"unique_id": "a", "ds": months, "y": wave(100)}),
            ]
        )

    def test_forecast(self) -> None:
        import pandas as pd

        from totocpp.nixtla import TotoFrame, forecast

        answer = TotoFrame(engine()).forecast(self.frame(), h=3, level=[80, 90], quantiles=[0.25])
        self.assertEqual(
            list(answer.columns),
            ["unique_id", "ds", "Toto", "Toto-lo-80", "Toto-hi-80", "Toto-lo-90", "Toto-hi-90", "Toto-q-25"],
        )
        self.assertEqual(list(answer["unique_id"]), ["a"] * 3 + ["b"] * 3)
        self.assertEqual(
            list(answer["ds"]),
            [*pd.to_datetime(["2013-05-31", "2013-06-30", "2013-07-31", "2024-07-19", "2024-07-20", "2024-07-21"])],
        )
        alone = engine().forecast(wave(200), 3, quantiles=[0.1, 0.9])
        np.testing.assert_array_equal(answer["Toto"][3:], alone.mean)
        np.testing.assert_array_equal(answer["Toto-lo-80"][3:], alone.quantiles["0.1"])
        again = forecast(self.frame(), 3, model=engine())
        np.testing.assert_array_equal(again["Toto"], answer["Toto"])

    def test_absent_steps_are_missing(self) -> None:
        import pandas as pd

        from totocpp.nixtla import TotoFrame

        frame = pd.DataFrame({"unique_id": "a", "ds": range(100), "y": wave(100)}).drop(index=[20, 21])
        gap = wave(100)
        gap[20:22] = np.nan
        with self.assertWarnsRegex(UserWarning, "2 absent steps"):
            answer = TotoFrame(engine()).forecast(frame.sample(frac=1, random_state=0), h=2)
        np.testing.assert_array_equal(answer["Toto"], engine().forecast(gap, 2).mean)
        self.assertEqual(list(answer["ds"]), [100, 101])

    def test_refusals(self) -> None:
        import pandas as pd

        from totocpp.nixtla import TotoFrame

        toto = TotoFrame(engine())
        good = pd.DataFrame({"unique_id": "a", "ds": pd.date_range("2024", periods=9), "y": range(9)})
        for sentence, frame, arguments in (
            ("no column y", good.drop(columns="y"), {}),
            ("no row", good.iloc[:0], {}),
            ("twice", pd.concat([good, good.iloc[:1]]), {}),
            ("give freq", good.iloc[[0, 1, 5]], {}),
            ("do not lie", good.iloc[[0, 1, 5]], {"freq": "2D"}),
            ("level 100", good, {"level": [100]}),
            ("1 of 9 rows have no unique_id", good.assign(unique_id=[None, *"aaaaaaaa"]), {}),
            ("9 of 9 rows have no unique_id", good.assign(unique_id=np.nan), {}),
            ("1 of 9 rows have no ds", good.assign(ds=[pd.NaT, *good["ds"][1:]]), {}),
        ):
            with self.subTest(sentence), self.assertRaisesRegex(ValueError, sentence):
                toto.forecast(frame, h=2, **arguments)


@needs("gluonts", "pandas")
class GluonTs(unittest.TestCase):
    def dataset(self) -> object:
        import pandas as pd
        from gluonts.dataset.common import ListDataset

        start = pd.Period("2024-01-01", freq="D")
        entries = [{"start": start, "target": wave(200 + 10 * i, level=i), "item_id": str(i)} for i in range(5)]
        return ListDataset(entries, freq="D")

    def test_quantiles_and_samples(self) -> None:
        from totocpp.gluonts import TotoPredictor

        predictor = TotoPredictor(engine(), 7, batch_size=2)
        forecasts = list(predictor.predict(self.dataset()))
        self.assertEqual([f.item_id for f in forecasts], list("01234"))
        expected = engine().forecast(wave(200, level=0), 7)
        np.testing.assert_array_equal(forecasts[0].quantile(0.9), expected.quantiles["0.9"])
        np.testing.assert_array_equal(forecasts[0].mean, expected.mean)
        self.assertEqual(str(forecasts[0].start_date), "2024-07-19")
        sampled = next(iter(predictor.predict(self.dataset(), num_samples=20)))
        self.assertEqual(sampled.samples.shape, (20, 7))
        with self.assertWarnsRegex(UserWarning, "num_workers=2 has no meaning here: there is no such argument"):
            next(predictor.predict(self.dataset(), num_workers=2))

    def test_evaluation(self) -> None:
        from gluonts.evaluation import Evaluator, make_evaluation_predictions

        from totocpp.gluonts import TotoPredictor

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            forecasts, actual = make_evaluation_predictions(
                self.dataset(), predictor=TotoPredictor(engine(), 7), num_samples=50
            )
            metrics, items = Evaluator(num_workers=0)(actual, forecasts)
        self.assertEqual(len(items), 5)
        self.assertLess(metrics["mean_wQuantileLoss"], 0.2)

    def test_variates(self) -> None:
        import pandas as pd
        from gluonts.dataset.common import ListDataset

        from totocpp.gluonts import TotoPredictor

        entry = {"start": pd.Period("2024-01-01", freq="D"), "target": np.stack([wave(), wave(level=3)])}
        dataset = ListDataset([entry], freq="D", one_dim_target=False)
        (forecast,) = TotoPredictor(engine(), 4, num_samples=9).predict(dataset)
        self.assertEqual(forecast.samples.shape, (9, 4, 2))


if __name__ == "__main__":
    unittest.main()
