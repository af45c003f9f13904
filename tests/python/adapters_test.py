"""pandas, pyarrow, Nixtla's frames, GluonTS, type checkers."""

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

    def test_missing_values_of_pandas(self) -> None:
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

    def test_types_that_are_not_numbers(self) -> None:
        import pandas as pd

        days = pd.Series(pd.date_range("2024", periods=9, tz="UTC"))
        for wrong in (
            days,
            days.dt.tz_localize(None),
            days - days[0],
            days.dt.tz_localize(None).dt.to_period("D"),
            pd.Series(["1", "2"]),
            pd.Series(["1", "2"], dtype="string"),
            pd.Series(pd.Categorical(["1", "2"])),
            [pd.Timestamp("2024"), pd.NaT],
            pd.Series([pd.Timestamp("2024"), 1.0], dtype=object),
        ):
            with self.subTest(getattr(wrong, "dtype", wrong)), self.assertRaises(TypeError):
                engine().forecast(wrong, 2)
        with self.assertRaisesRegex(TypeError, 'series "ds" holds .*, expected numbers'):
            engine().forecast(pd.DataFrame({"ds": days, "y": range(9)}), 2)

    def test_na_and_categories_of_numbers(self) -> None:
        import pandas as pd

        expected = engine().forecast([np.nan, 2.0, 3.0], 2).mean
        for given in ([pd.NA, 2.0, 3.0], pd.Series([pd.NA, 2.0, 3.0], dtype=object), pd.Series([None, 2, 3], dtype="Int64")):
            np.testing.assert_array_equal(engine().forecast(given, 2).mean, expected)
        categories = pd.Series(pd.Categorical([5, 7, 5, 7]))
        np.testing.assert_array_equal(engine().forecast(categories, 2).mean, engine().forecast([5, 7, 5, 7], 2).mean)
        large = [2**60 + 2**36 + 1, 1, 2]
        np.testing.assert_array_equal(
            engine().forecast(pd.Series(large, dtype="Int64"), 2).mean, engine().forecast(np.array(large), 2).mean
        )

    def test_columns_with_the_same_name(self) -> None:
        import pandas as pd

        twice = engine().forecast(pd.DataFrame(np.stack([wave(), wave(level=3)], axis=1), columns=["a", "a"]), 2)
        self.assertEqual([f.id for f in twice], ["a", "a"])
        np.testing.assert_array_equal(twice[1].mean, engine().forecast(wave(level=3), 2).mean)

    def test_known_futures_as_tables(self) -> None:
        import pandas as pd

        history = pd.DataFrame({"y": wave(60), "x1": wave(60, level=2), "x2": wave(60, level=3)})
        future = pd.DataFrame({"x2": [30.0, 40.0], "x1": [1.0, 2.0]})  # [time, columns], in any order
        expected = engine().forecast(
            history.to_numpy().T, 2, multivariate=True, known_future=np.array([[1.0, 2.0], [30.0, 40.0]])
        )
        np.testing.assert_array_equal(expected.mean[1:], [[1, 2], [30, 40]])
        for given in (future, {name: future[name].tolist() for name in future}):
            told = engine().forecast(history, 2, multivariate=True, known_future=given)
            np.testing.assert_array_equal(told.mean, expected.mean)
        both = engine().forecast([history, history], 2, multivariate=True, known_future=[future, future])
        np.testing.assert_array_equal(both[1].mean, expected.mean)
        for wrong in (future[["x1"]], future.rename(columns={"x1": "z"})):
            with self.assertRaisesRegex(ValueError, "known_future has the columns .*, expected the last ones"):
                engine().forecast(history, 2, multivariate=True, known_future=wrong)


@needs("pyarrow")
class Arrow(unittest.TestCase):
    def test_arrays_and_tables(self) -> None:
        import pyarrow as pa

        gap = [1.0, None, 3.0]
        expected = engine().forecast(gap, 2).mean
        for given in (pa.array(gap), pa.chunked_array([gap]), pa.array([1, None, 3])):
            np.testing.assert_array_equal(engine().forecast(given, 2).mean, expected)
        series = {"a": wave(60), "b": wave(60, level=3)}
        for table in (pa.table(series), pa.record_batch(series)):
            columns = engine().forecast(table, 2)
            self.assertEqual([(f.id, f.context_length) for f in columns], [("a", 60), ("b", 60)])
            np.testing.assert_array_equal(columns[1].mean, engine().forecast(wave(60, level=3), 2).mean)
            self.assertEqual(engine().forecast(table, 2, multivariate=True).mean.shape, (2, 2))
        for wrong in (pa.array(["1", "2"]), pa.array([1, 2], pa.timestamp("s"))):
            with self.assertRaises(TypeError):
                engine().forecast(wrong, 2)


@needs("pandas", "pyarrow")
class ArrowInPandas(unittest.TestCase):
    def test_kinds(self) -> None:
        import pandas as pd

        stamps = pd.Series(pd.date_range("2024", periods=4))
        for wrong in (stamps.astype("timestamp[ns][pyarrow]"), pd.Series(["1", "2"], dtype="string[pyarrow]")):
            with self.subTest(wrong.dtype), self.assertRaises(TypeError):
                engine().forecast(wrong, 2)
        gap = pd.Series([1.0, None, 3.0]).astype("double[pyarrow]")
        np.testing.assert_array_equal(engine().forecast(gap, 2).mean, engine().forecast([1.0, None, 3.0], 2).mean)


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

    def one(self, ds: object) -> object:
        import pandas as pd

        return pd.DataFrame({"unique_id": "a", "ds": ds, "y": wave(60)})

    def test_summer_time(self) -> None:
        import pandas as pd

        from totocpp.nixtla import TotoFrame

        berlin = "Europe/Berlin"
        answer = TotoFrame(engine()).forecast(self.one(pd.date_range(end="2024-03-30", periods=60, tz=berlin)), 3)
        wanted = pd.to_datetime(["2024-03-31", "2024-04-01", "2024-04-02"]).tz_localize(berlin)
        self.assertEqual(list(answer["ds"]), list(wanted))

    def test_steps_between_whole_numbers(self) -> None:
        import pandas as pd

        from totocpp.nixtla import TotoFrame

        toto = TotoFrame(engine())
        expected = toto.forecast(self.one(range(60)), 2)["Toto"]
        hours = pd.date_range("2024-01-01", periods=62, freq="h").astype("int64")
        for times, after in ((range(0, 300, 5), [300, 305]), (hours[:60], list(hours[60:]))):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                answer = toto.forecast(self.one(times), 2)
            self.assertEqual(list(answer["ds"]), after)
            np.testing.assert_array_equal(answer["Toto"], expected)
        with self.assertWarnsRegex(UserWarning, "1 absent steps"):
            toto.forecast(self.one(range(0, 300, 5)).drop(index=7), 2)
        odd = [*hours[:59], hours[59] + 1]
        for times, freq in ((odd, None), (hours[:60], 1), (pd.date_range("2024", periods=60), "s")):
            with self.assertRaisesRegex(ValueError, "60 rows over .* steps of .*expected at least one in 100: give freq"):
                toto.forecast(self.one(times), 2, freq=freq)
        for wrong in ("D", 0, -1):
            with self.assertRaisesRegex(ValueError, "^freq is .* are whole numbers, expected one above 0"):
                toto.forecast(self.one(range(60)), 2, freq=wrong)

    def test_times_as_text(self) -> None:
        import pandas as pd

        from totocpp.nixtla import TotoFrame

        times = pd.date_range("2024-01-01", periods=60)
        answers = []
        for given in (times, times.astype(str)):
            with self.assertWarnsRegex(UserWarning, "1 absent steps"):
                answers.append(TotoFrame(engine()).forecast(self.one(given).drop(index=30), 2, freq="D"))
        pd.testing.assert_frame_equal(answers[0], answers[1])

    def test_options_are_passed_on(self) -> None:
        from totocpp.nixtla import TotoFrame

        toto, frame = TotoFrame(engine()), self.one(range(60))
        median = engine().forecast(wave(60), 2).median
        np.testing.assert_array_equal(toto.forecast(frame, 2, point="median")["Toto"], median)
        levels = toto.forecast(frame, 2, level=np.array([80, 90]), quantiles=np.array([0.25]))
        self.assertEqual(list(levels.columns), list(toto.forecast(frame, 2, level=[80, 90], quantiles=[0.25]).columns))
        for wrong, sentence in ((80, "level is 80, expected a list"), (["80"], "level holds '80', expected numbers")):
            with self.assertRaisesRegex(TypeError, sentence):
                toto.forecast(frame, 2, level=wrong)
        with self.assertRaisesRegex(TypeError, "the frame is dict, expected a pandas DataFrame"):
            toto.forecast({"a": wave()}, 2)

    def test_rejected_inputs(self) -> None:
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
        with self.assertWarnsRegex(UserWarning, "num_workers=2 is ignored: there is no such argument"):
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

    def test_answers_do_not_depend_on_other_series(self) -> None:
        import pandas as pd

        from totocpp.gluonts import TotoPredictor

        start = pd.Period("2024-01-01", freq="D")
        one, two = {"start": start, "target": wave()}, {"start": start, "target": np.stack([wave(), wave(level=3)])}
        mixed = [one, two, one]
        for size in (1, 2, 256):
            forecasts = list(TotoPredictor(engine(), 4, batch_size=size).predict(mixed))
            self.assertEqual(
                [type(f).__name__ for f in forecasts], ["QuantileForecast", "SampleForecast", "QuantileForecast"]
            )
            np.testing.assert_array_equal(forecasts[2].mean, engine().forecast(wave(), 4).mean)

    def test_messages_name_the_item(self) -> None:
        import pandas as pd

        from totocpp.gluonts import TotoPredictor

        good = {"start": pd.Period("2024-01-01", freq="D"), "target": wave(), "item_id": "good"}
        bad = {**good, "target": np.full(9, np.nan)}
        nameless = {"start": bad["start"], "target": bad["target"]}
        for entry, name in (({**bad, "item_id": "zz"}, "zz"), (nameless, "3")):
            with self.assertRaisesRegex(ValueError, f'^series "{name}": variate 0 has no value'):
                list(TotoPredictor(engine(), 4, batch_size=2).predict([good, good, good, entry]))

    def test_serialized(self) -> None:
        from pathlib import Path
        from tempfile import TemporaryDirectory

        from gluonts.model.predictor import Predictor

        from totocpp import Engine
        from totocpp.gluonts import TotoPredictor

        predictor = TotoPredictor(
            Engine.from_pretrained(threads=1, dtype="int8"), 5, context_length=64, num_samples=6, quantiles=(0.1, 0.5), seed=3
        )
        with TemporaryDirectory() as folder:
            predictor.serialize(Path(folder))
            again = Predictor.deserialize(Path(folder), device=None)
        self.assertEqual((again.engine.dtype, again.engine.threads, again.quantiles), ("int8", 1, (0.1, 0.5)))
        for ours, theirs in zip(again.predict(self.dataset()), predictor.predict(self.dataset())):
            np.testing.assert_array_equal(ours.samples, theirs.samples)


@needs("mypy")
class Types(unittest.TestCase):
    def test_types_seen_by_a_checker(self) -> None:
        import subprocess
        import sys
        from pathlib import Path
        from tempfile import TemporaryDirectory

        lines = {
            "reveal_type(engine.forecast([1.0, None], 4))": 'Revealed type is "totocpp.forecasts.SeriesForecast"',
            "reveal_type(engine.forecast([[1.0], [2.0]], 4))": 'Revealed type is "list[totocpp.forecasts.SeriesForecast]"',
            "reveal_type(engine.forecast({'a': [1.0]}))": 'Revealed type is "list[totocpp.forecasts.SeriesForecast]"',
            "one: totocpp.Forecast = engine.session([1.0]).forecast(3)": "",
            "engine.backtest('x.csv', windoes=3)": 'Unexpected keyword argument "windoes"',
            "engine.forecast([1.0], samples='x')": "No overload variant",
        }
        with TemporaryDirectory() as folder:
            path = Path(folder) / "user.py"
            path.write_text("import totocpp\nengine = totocpp.Engine.from_pretrained()\n" + "\n".join(lines) + "\n")
            mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder + "/cache", "user.py"]
            said = subprocess.run(mypy, cwd=folder, capture_output=True, text=True).stdout
        for number, (line, wanted) in enumerate(lines.items(), 3):
            here = [answer for answer in said.splitlines() if answer.startswith(f"user.py:{number}: ")]
            with self.subTest(line):
                self.assertTrue(wanted in here[0] if wanted else not here, said)


if __name__ == "__main__":
    unittest.main()
