"""Engine: inputs, outputs, and equality with the command."""

from __future__ import annotations

import csv
import json
import os
import pickle
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from support import DATA, GOLDEN, command, engine, error_of, read_safetensors, run_command, wave

import totocpp
from totocpp._arrays import Input, as_float32


class Shapes(unittest.TestCase):
    def test_one_series_gives_one_forecast(self) -> None:
        forecast = engine().forecast(wave(), 10)
        self.assertIsInstance(forecast, totocpp.SeriesForecast)
        self.assertIsInstance(forecast, totocpp.Forecast)
        for array in (forecast.mean, forecast.median, forecast.point, *forecast.quantiles.values()):
            self.assertEqual((array.shape, array.dtype), ((10,), np.float32))
        self.assertEqual(list(forecast.quantiles), [f"0.{i}" for i in range(1, 10)])
        self.assertIsNone(forecast.samples)
        self.assertEqual((forecast.horizon, forecast.context_length, forecast.num_samples), (10, 512, 0))
        np.testing.assert_array_equal(forecast.quantile(0.5), forecast.median)

    def test_rows_are_independent_series(self) -> None:
        rows = np.stack([wave(), wave(level=-3)])
        forecasts = engine().forecast(rows, 5, samples=7)
        self.assertEqual([f.samples.shape for f in forecasts], [(7, 5), (7, 5)])
        for row, forecast in zip(rows, forecasts):
            np.testing.assert_array_equal(engine().forecast(row, 5, samples=7).samples, forecast.samples)

    def test_variates_see_each_other(self) -> None:
        rows = np.stack([wave(), wave(level=-3), wave(level=40)])
        forecast = engine().forecast(rows, 5, samples=7, multivariate=True)
        self.assertEqual((forecast.mean.shape, forecast.samples.shape), ((3, 5), (3, 7, 5)))
        self.assertEqual(forecast.std.shape, (3, 5))
        several = engine().forecast(np.stack([rows, rows]), 5, samples=7, multivariate=True)
        np.testing.assert_array_equal(several[1].samples, forecast.samples)
        np.testing.assert_array_equal(
            engine().forecast([list(row) for row in rows], 5, samples=7, multivariate=True).samples, forecast.samples
        )

    def test_lists_of_different_lengths_and_mappings(self) -> None:
        forecasts = engine().forecast([wave(100), wave(7), [1.0, None, 3.0]], 3)
        self.assertEqual([f.context_length for f in forecasts], [100, 7, 3])
        forecasts = engine().forecast({"a": wave(100), "b": wave(7)}, 3)
        self.assertEqual([f.id for f in forecasts], ["a", "b"])

    def test_known_future_goes_last(self) -> None:
        rows = np.stack([wave(), wave(level=2)])
        future = np.full((1, 6), 2.5, np.float32)
        forecast = engine().forecast(rows, 6, multivariate=True, known_future=future)
        np.testing.assert_array_equal(forecast.mean[1], future[0])

    def test_quantiles_that_were_not_requested(self) -> None:
        with self.assertRaisesRegex(ValueError, r"quantile 0.25 was not requested.*0\.1"):
            engine().forecast(wave(), 3).quantile(0.25)
        sampled = engine().forecast(wave(), 3, samples=100)
        np.testing.assert_allclose(sampled.quantile(0.25), np.quantile(sampled.samples, 0.25, axis=0), rtol=1e-6)

    def test_point_context_decode_and_missing_are_passed_on(self) -> None:
        gap = wave()
        gap[100:300] = np.nan
        answers = {rule: engine().forecast(gap, 3, missing=rule).mean.tobytes() for rule in ("ffill", "linear", "mask")}
        self.assertEqual(len(set(answers.values())), 3)
        self.assertEqual(engine().forecast(wave(), 3, context=64).context_length, 64)
        trimmed = engine().forecast(wave(), 3, point="quantile_0.9")
        np.testing.assert_array_equal(trimmed.point, trimmed.quantiles["0.9"])
        self.assertEqual(engine().forecast(wave(), 100, decode="mean").num_samples, 0)

    def test_paths_beyond_the_first_patch(self) -> None:
        usual = engine().forecast(wave(), 100)
        self.assertEqual((usual.num_paths, usual.exact_steps), (256, engine().patch_size))
        self.assertIsNone(usual.samples)
        np.testing.assert_array_equal(engine().forecast(wave(), 100, paths=256).mean, usual.mean)
        more = engine().forecast(wave(), 100, paths=700)
        self.assertEqual(more.num_paths, 700)
        first = slice(0, engine().patch_size)
        np.testing.assert_array_equal(more.mean[first], usual.mean[first])
        self.assertFalse(np.array_equal(more.mean, usual.mean))
        self.assertEqual(pickle.loads(pickle.dumps(more)).num_paths, 700)
        self.assertIn("700 paths, not kept", repr(more))
        sampled = engine().forecast(wave(), 100, samples=20)
        self.assertEqual((sampled.num_paths, sampled.num_samples, sampled.exact_steps), (0, 20, 0))
        with self.assertRaisesRegex(ValueError, "paths is 3 and samples is 4, expected one of them"):
            engine().forecast(wave(), 100, samples=4, paths=3)
        with self.assertRaisesRegex(ValueError, "paths is 3 but decode mean"):
            engine().forecast(wave(), 100, decode="mean", paths=3)
        with self.assertRaisesRegex(ValueError, "paths is 0, expected"):
            engine().forecast(wave(), 100, paths=0)

    def test_small_series_are_scaled_by_a_power_of_two(self) -> None:
        small = (wave() - wave().mean()) * np.float32(2.0**-12)
        factor = 2.0 ** max(0, np.ceil(np.log2(12 * engine().info["minimum_scale"] / small.std(dtype=np.float64))))
        automatic = engine().forecast(small, 100)
        self.assertEqual(automatic.scale, factor)
        large = engine().forecast(small * np.float32(factor), 100, scale=1)
        self.assertEqual(large.scale, 1)
        np.testing.assert_array_equal(automatic.mean, large.mean / np.float32(factor))
        np.testing.assert_array_equal(automatic.level_values, large.level_values / np.float32(factor))
        np.testing.assert_array_equal(engine().forecast(small, 100, scale=factor).mean, automatic.mean)
        both = engine().forecast(np.stack([small, small * 8]), 3, multivariate=True)
        self.assertEqual(both.scale, (factor, max(1.0, factor / 8)))
        self.assertEqual(pickle.loads(pickle.dumps(both)).scale, both.scale)
        self.assertEqual(pickle.loads(pickle.dumps(automatic)).scale, factor)
        session = engine().session(small)
        np.testing.assert_array_equal(session.forecast(100).mean, automatic.mean)
        np.testing.assert_array_equal(session.forecast(100, scale=1).mean, engine().forecast(small, 100, scale=1).mean)

    def test_the_drop_ins_do_not_scale(self) -> None:
        small = (wave() - wave().mean()) * np.float32(2.0**-12)
        plain = engine().forecast(small, 4, samples=8, scale=1, quantiles=())
        pipeline = totocpp.TotoPipeline(engine())
        np.testing.assert_array_equal(pipeline.predict(small, 4, num_samples=8)[0].samples, plain.samples)


class SameBits(unittest.TestCase):
    """The same numbers for every type of input."""

    def test_types_of_input(self) -> None:
        values = np.round(wave(200) * 8)  # whole numbers, exact in every type
        expected = engine().forecast(values, 12, samples=20).samples
        strided = np.repeat(values, 3)[::3]
        frozen = values.copy()
        frozen.flags.writeable = False
        fortran = np.asfortranarray(np.stack([values, values], axis=1))[:, 1]
        for given in (
            values.astype(np.float64),
            values.astype(np.float16),
            values.astype(np.int32),
            values.astype(np.int64),
            values.astype(">f4"),
            values.view(np.dtype("f4", metadata={"unit": "m"})),
            values.astype(np.dtype("f8", metadata={"unit": "m"})),
            values.astype(object),
            list(values),
            tuple(values.tolist()),
            strided,
            values[::-1].copy()[::-1],
            frozen,
            fortran,
            memoryview(values),
            _Tensor(values),
        ):
            with self.subTest(type(given).__name__, dtype=getattr(given, "dtype", None)):
                np.testing.assert_array_equal(engine().forecast(given, 12, samples=20).samples, expected)

    def test_masked_values_are_missing(self) -> None:
        masked = np.ma.masked_greater(wave(), 10.5)
        expected = engine().forecast(np.where(wave() > 10.5, np.nan, wave()), 5).mean
        np.testing.assert_array_equal(engine().forecast(masked, 5).mean, expected)

    def test_plain_and_converted_inputs_give_the_same(self) -> None:
        """Plain inputs are read in C++, others in Python; ids force the latter."""
        values = np.round(wave(60) * 64) / 64
        table = np.stack([values, values + 1, values - 3])
        raw = np.frombuffer(b"x" + values.tobytes(), np.uint8)[1:]
        self.assertTrue(as_float32(raw.view(np.float32)).flags.aligned)
        numbers: list[object] = values.tolist()
        numbers[3], numbers[7], numbers[9] = None, 11, float("nan")
        for given in (
            values,
            values.astype(np.float64),
            values[::-1],
            values.astype(np.float64)[::2],
            raw.view(np.float32),  # not aligned
            numbers,
            table,
            table.T[::20],
            table.astype(np.float64)[::-1, ::-2],
            np.broadcast_to(np.float32(2.5), (3, 40)),
            np.broadcast_to(values, (3, 60)),
            [values, values.astype(np.float64), numbers, [1.0, 2.0]],
            [[1.0, None], [5, 6.5, 7]],
        ):
            short = engine().forecast(given, 3, samples=4)
            many = isinstance(short, list)
            long = engine().forecast(given, 3, samples=4, ids=[""] * (len(short) if many else 1))
            self.assertIs(type(short), type(long))
            for a, b in zip(short if many else [short], long if many else [long]):
                np.testing.assert_array_equal(a.samples, b.samples)
                self.assertEqual((a.id, a.context_length), (b.id, b.context_length))

    def test_cached_options_are_compared_by_value(self) -> None:
        levels = [0.1, 0.9]
        first = engine().forecast(wave(), 3, quantiles=levels)
        self.assertEqual(list(engine().forecast(wave(), 3, quantiles=levels).quantiles), ["0.1", "0.9"])
        levels[1] = 0.7  # the same list, but not the same levels
        again = engine().forecast(wave(), 3, quantiles=levels)
        self.assertEqual(list(again.quantiles), ["0.1", "0.7"])
        np.testing.assert_array_equal(again.quantiles["0.1"], first.quantiles["0.1"])
        array = np.array([0.2, 0.3])
        self.assertEqual(list(engine().forecast(wave(), 3, quantiles=array).quantiles), ["0.2", "0.3"])
        array[0] = 0.25
        self.assertEqual(list(engine().forecast(wave(), 3, quantiles=array).quantiles), ["0.25", "0.3"])
        engine().forecast(wave(), 1)
        for wrong in (True, 1.0):  # both equal 1
            with self.assertRaises(TypeError):
                engine().forecast(wave(), wrong)

    def test_answers_have_all_arrays_and_separate_memory(self) -> None:
        forecast = engine().forecast(wave(), 5, samples=6)
        mean = forecast.mean.copy()
        self.assertIs(forecast.mean, forecast.mean)
        forecast.mean += 1
        np.testing.assert_array_equal(forecast.mean, mean + 1)
        samples = forecast.samples
        kept = samples.copy()
        del forecast
        for _ in range(20):
            engine().forecast(wave(), 5, samples=6, seed=9)
        np.testing.assert_array_equal(samples, kept)
        with self.assertRaisesRegex(AttributeError, "no attribute 'avarage'"):
            _ = engine().forecast(wave(), 5).avarage

    def test_calls_of_different_sizes_in_turn(self) -> None:
        """Calls reuse memory and nothing else."""
        long, short, none = wave(300), wave(7, level=3), np.full(4, np.nan)
        kept = []
        for given in ([long, short], long, [short] * 5, short, [long, none], none, [short, long, long], [[1.0, 2.0]], long):
            try:
                answers = engine().forecast(given, 3, samples=4)
            except ValueError as error:
                self.assertIn("no value, all 4 are missing", str(error))
                continue
            many = isinstance(answers, list)
            self.assertEqual(len(answers) if many else 1, len(given) if isinstance(given, list) else 1)
            kept += zip(given if many else [given], answers if many else [answers])
        for series, answer in kept:
            (named,) = engine().forecast([series], 3, samples=4, ids=["a"])
            np.testing.assert_array_equal(answer.samples, named.samples)
            np.testing.assert_array_equal(answer.level_values, named.level_values)

    def test_input_is_unchanged_and_answers_belong_to_the_caller(self) -> None:
        values = wave()
        kept = values.copy()
        first = engine().forecast(values, 5)
        first.mean[:] = 0
        np.testing.assert_array_equal(values, kept)
        self.assertNotEqual(engine().forecast(values, 5).mean[0], 0)

    def test_threads_modes_and_instruction_sets(self) -> None:
        expected = engine().forecast(wave(), 200, samples=16).samples
        for arguments in (
            {"threads": 1},
            {"mode": "reduce-overhead"},
            {"mode": "max-autotune", "cache": False},
            {"isa": "reference"},
        ):
            with self.subTest(**arguments):
                other = totocpp.Engine.from_pretrained(**arguments)
                np.testing.assert_array_equal(other.forecast(wave(), 200, samples=16).samples, expected)

    def test_same_numbers_as_the_command(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "out.json"
            process = run_command(
                "forecast", DATA / "AirPassengers.csv", "--horizon", 24, "--samples", 9, "--emit", "samples",
                "--seed", 3, "--output", path, "--missing", "ffill",
            )  # fmt: skip
            self.assertEqual(process.returncode, 0, process.stderr)
            (told,) = json.loads(path.read_text())["series"]
        with (DATA / "AirPassengers.csv").open(newline="") as file:
            rows = list(csv.reader(file))
        values = [float(row[-1]) for row in rows[1:]]
        forecast = engine().forecast(values, 24, samples=9, seed=3)
        np.testing.assert_array_equal(forecast.mean, np.array(told["mean"], np.float32))
        np.testing.assert_array_equal(forecast.samples, np.array(told["samples"], np.float32))
        for name, quantile in forecast.quantiles.items():
            np.testing.assert_array_equal(quantile, np.array(told["quantiles"][name], np.float32))


class Streams(unittest.TestCase):
    def correlation(self, **options: Any) -> float:
        first, second = engine().forecast([wave(96), wave(96) * 2], 3, samples=400, **options)
        return float(np.corrcoef(first.samples[:, 0], second.samples[:, 0])[0, 1])

    def test_series_share_random_streams_by_default(self) -> None:
        self.assertGreater(self.correlation(), 0.99)
        self.assertLess(abs(self.correlation(independent_streams=True)), 0.2)
        self.assertLess(abs(self.correlation(independent_streams=True, ids=["a", "b"])), 0.2)

    def test_independent_streams_in_the_drop_ins(self) -> None:
        table = np.stack([wave(96), wave(96) * 2])
        paths = [item.samples[:, 0] for item in totocpp.TotoPipeline(engine()).predict(table, 3, 400, independent_streams=True)]
        self.assertLess(abs(np.corrcoef(*paths)[0, 1]), 0.2)
        inputs = totocpp.MaskedTimeseries(
            series=table[:, None],
            padding_mask=np.ones((2, 1, 96), bool),
            id_mask=np.zeros((2, 1, 96), np.int64),
            timestamp_seconds=np.zeros((2, 1, 96), np.int64),
            time_interval_seconds=np.full((2, 1), 60, np.int64),
        )
        forecaster = totocpp.TotoForecaster(engine())
        samples = forecaster.forecast(inputs, 3, num_samples=400, independent_streams=True).samples
        self.assertLess(abs(np.corrcoef(samples[0, 0, 0], samples[1, 0, 0])[0, 1]), 0.2)


class _Tensor:
    """Exports values only by DLPack, like tensors of other libraries."""

    def __init__(self, values: np.ndarray) -> None:
        self._values = values

    def __dlpack__(self, **arguments: object) -> object:
        return self._values.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._values.__dlpack_device__()


class Refusals(unittest.TestCase):
    def refused(self, kind: type[Exception], sentence: str, *arguments: object, **options: object) -> None:
        with self.assertRaisesRegex(kind, sentence):
            engine().forecast(*arguments, **options)

    def test_wrong_types_are_type_errors(self) -> None:
        self.refused(TypeError, "the series is str", "1,2,3", 3)
        self.refused(TypeError, "expected a list or an array", 3.5, 3)
        self.refused(TypeError, r"holds text \('x'\), expected numbers", np.array([1, "x"], object), 3)
        self.refused(TypeError, "complex128", wave().astype(complex), 3)
        self.refused(TypeError, "datetime64", np.array(["2020-01-01"], "M8[D]"), 3)
        self.refused(TypeError, "horizon is 1.5", wave(), 1.5)
        self.refused(TypeError, "horizon is True", wave(), True)
        self.refused(TypeError, "quantiles is 0.5", wave(), 3, quantiles=0.5)
        self.refused(TypeError, "the series holds text, expected numbers", [1.0, "x"], 3)
        self.refused(TypeError, "series 1 holds {}, expected numbers", [wave(), [1.0, {}]], 3)
        self.refused(TypeError, "^the series is None, expected a list or an array of numbers$", None, 3)
        self.refused(TypeError, "^series 1 is 1.0, expected a list or an array", [wave(), 1.0], 3)
        self.refused(TypeError, "^series 1 is None, expected a list or an array", [[1.0], None], 3)
        self.refused(TypeError, '^series "a" is 2, expected a list or an array', {"a": 2}, 3)
        for name in ("decode", "missing", "point"):
            for wrong in (3, None):
                self.refused(TypeError, f"^{name} is {wrong}, expected text$", wave(), 3, **{name: wrong})
        self.refused(TypeError, r"^ids\[0\] is 1, expected text$", [wave(), wave()], 3, ids=[1, 2])
        self.refused(TypeError, "^ids is 'ab', expected a list of names", [wave(), wave()], 3, ids="ab")
        self.refused(TypeError, "^ids is 3, expected a list of names", wave(), 3, ids=3)
        self.refused(TypeError, "expected a list of levels", wave(), 3, quantiles="5")
        for name in ("mode", "dtype", "isa"):
            with self.assertRaisesRegex(TypeError, f"^{name} is 3, expected text$"):
                totocpp.Engine.from_pretrained(**{name: 3})
        with self.assertRaisesRegex(TypeError, "^cache is 3, expected a folder"):
            totocpp.Engine.from_pretrained(cache=3)
        with self.assertRaisesRegex(TypeError, "^the model is 3, expected a folder or a name$"):
            totocpp.Engine(3)
        with self.assertRaisesRegex(TypeError, "^modes is 'all', expected a list"):
            engine().verify(modes="all")

    def test_wrong_types_found_by_the_library(self) -> None:
        for wrong in (Input(1, wave()[np.newaxis]), Input("", wave())):
            with self.assertRaisesRegex(TypeError, "^an argument has the wrong type"):
                engine().forecast_inputs([wrong], 3)

    def test_wrong_values_are_value_errors(self) -> None:
        self.refused(ValueError, "horizon is 0, expected 1 to 100000", wave(), 0)
        self.refused(ValueError, "horizon is 10{12}", wave(), 10**12)
        self.refused(ValueError, "samples is 0", wave(), 3, samples=0)
        self.refused(ValueError, "seed is -1", wave(), 3, seed=-1)
        self.refused(ValueError, "is empty", [], 3)
        self.refused(ValueError, "is empty", np.zeros((2, 0)), 3)
        self.refused(ValueError, "no value, all 4 are missing", [np.nan] * 4, 3)
        self.refused(ValueError, "infinite value at step 1", [1.0, np.inf], 3)
        self.refused(ValueError, r"1e\+300 at step 1.*float32", np.array([1.0, 1e300]), 3)
        self.refused(ValueError, r"1e\+300 at step 1.*float32", [1.0, 1e300], 3)
        self.refused(ValueError, "series 1 holds 1e.300 at step 0", [[1.0], np.array([1e300])], 3)
        self.refused(ValueError, "infinite value at step 2", [wave(), np.array([1.0, 2.0, -np.inf])], 3)
        self.refused(ValueError, "is empty", [wave(), []], 3)
        self.refused(ValueError, r"shape \[2, 8\], expected \[time\]", np.zeros((2, 2, 8)).tolist(), 3)
        self.refused(ValueError, r"shape \[2, 2, 8\]", np.zeros((2, 2, 8)), 3)
        self.refused(ValueError, "one length for all", [wave(5), wave(6)], 3, multivariate=True)
        self.refused(ValueError, "needs multivariate=True", wave(), 3, known_future=wave(3))
        for ids in ([], ["a"], ["a", "b", "c"]):
            self.refused(ValueError, f"^ids has {len(ids)} names, expected one for each of the 2", [wave()] * 2, 3, ids=ids)
        self.refused(ValueError, "^ids has 2 names", wave(), 3, ids=["a", "b"])
        for huge in (10**400, -(10**400)):
            self.refused(ValueError, r"holds a whole number beyond float64.*float32 \(3.4e38\)", [1, huge], 3)
            self.refused(ValueError, "^series 1 holds a whole number beyond", [[1.0], [2.0, huge]], 3)
        for level in (0, 1, 1.5, -0.1, float("nan"), 10**400):
            self.refused(ValueError, "outside the open interval", wave(), 3, quantiles=[level])

    def test_too_large_requests_are_rejected_before_allocation(self) -> None:
        self.refused(MemoryError, "MB are free", wave(), 100_000, samples=1_000_000)
        for huge in (np.broadcast_to(np.float32(1), (2**45,)), np.broadcast_to(1.0, (2**20, 2**20))):
            self.refused(MemoryError, r"the series needs \d+ MB and \d+ MB are free", huge, 3)

    def test_a_too_large_batch_is_rejected(self) -> None:
        """Many small series. Memory is limited: a failure must not exhaust the machine's."""
        code = (
            "import resource, numpy as np, totocpp\n"
            "engine = totocpp.Engine.from_pretrained(cache=False)\n"
            "taken = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
            "resource.setrlimit(resource.RLIMIT_AS, (taken + (2 << 30),) * 2)\n"
            "view = np.broadcast_to(np.float32(1), (1 << 20,))\n"
            "for given in ([view] * 200_000, dict.fromkeys(range(200_000), view), [np.ma.array(view)] * 200_000):\n"
            "    try:\n"
            "        engine.forecast(given, 3)\n"
            "    except MemoryError as error:\n"
            "        print(error)\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for sentence in done.stdout.splitlines():
            self.assertRegex(sentence, r"^the series needs \d+ MB and \d+ MB are free")
        self.assertEqual(len(done.stdout.splitlines()), 3)

    def test_same_messages_as_the_command(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bad"
            path.mkdir()
            (path / "config.json").write_text("{")
            (path / "model.safetensors").write_bytes(b"123")
            with self.assertRaises(ValueError) as caught:
                totocpp.Engine.from_pretrained(path)
            self.assertEqual(str(caught.exception), error_of("forecast", DATA / "AirPassengers.csv", "--model", path))
        with self.assertRaises(ValueError) as caught:
            totocpp.Engine.from_pretrained(dtype="f64")
        self.assertEqual(str(caught.exception), error_of("forecast", DATA / "AirPassengers.csv", "--dtype", "f64"))
        with self.assertRaises(ValueError) as caught:
            engine().forecast(wave(), 3, point="men")
        self.assertIn(str(caught.exception), error_of("forecast", DATA / "AirPassengers.csv", "--point", "men"))


class Settings(unittest.TestCase):
    def test_reads_the_commands_variables(self) -> None:
        variables = {"TOTO_COMPILE_MODE": "reduce-overhead", "TOTO_THREADS": "1", "TOTO_DTYPE": "int8"}
        with mock.patch.dict(os.environ, variables):
            chosen = totocpp.Engine.from_pretrained()
            self.assertEqual((chosen.mode, chosen.threads, chosen.dtype), ("reduce-overhead", 1, "int8"))
            self.assertEqual(totocpp.Engine.from_pretrained(mode="default", dtype="f32").mode, "default")
        with mock.patch.dict(os.environ, {"TOTO_DISABLE_COMPILE": "1", "TOTO_COMPILE_MODE": "max-autotune"}):
            self.assertEqual(totocpp.Engine.from_pretrained().mode, "reference")
        with mock.patch.dict(os.environ, {"TOTO_SEED": "5"}):
            seeded = totocpp.Engine.from_pretrained().forecast(wave(), 3, samples=4).samples
        np.testing.assert_array_equal(engine().forecast(wave(), 3, samples=4, seed=5).samples, seeded)
        for name, value in (("TOTO_THREADS", "x"), ("TOTO_DISABLE_COMPILE", "maybe"), ("TOTO_SEED", "-1")):
            with mock.patch.dict(os.environ, {name: value}), self.assertRaisesRegex(ValueError, name):
                totocpp.Engine.from_pretrained().forecast(wave(), 1)

    def test_warns_if_an_argument_overrides_the_rollback(self) -> None:
        with mock.patch.dict(os.environ, {"TOTO_DISABLE_COMPILE": "1"}):
            with self.assertWarnsRegex(UserWarning, "TOTO_DISABLE_COMPILE asks for reference mode"):
                self.assertEqual(totocpp.Engine.from_pretrained(mode="default").mode, "default")

    def test_names_of_levels(self) -> None:
        answer = engine().forecast(wave(96), 2, quantiles=np.arange(0.1, 1, 0.1))
        self.assertEqual(list(answer.quantiles), [f"0.{i}" for i in range(1, 10)])

    def test_a_rollback_ignores_settings_that_would_stop_it(self) -> None:
        wrong = {
            "TOTO_THREADS": "x",
            "TOTO_ISA": "sse9",
            "TOTO_LOGS": "everything",
            "TOTO_COMPILE_BACKEND": "cuda",
            "TORCHDYNAMO_CACHE_SIZE_LIMIT": "0",
            "TOTO_COMPILE_MODE": "fast",
        }
        for switch in ({"TOTO_DISABLE_COMPILE": "1"}, {"TOTO_COMPILE": "0"}):
            with mock.patch.dict(os.environ, {**switch, **wrong, "TOTO_DTYPE": "int8"}):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    rolled_back = totocpp.Engine.from_pretrained()
                self.assertEqual((rolled_back.mode, rolled_back.dtype), ("reference", "f32"))
                ((sentence, where),) = [(str(warning.message), warning.filename) for warning in caught]
                self.assertEqual(where, __file__)
                self.assertIn(f"{next(iter(switch))} forces reference mode; ", sentence)
                for said in (*(f'{n} ("{v}")' for n, v in wrong.items() if n != "TOTO_COMPILE_MODE"), 'TOTO_DTYPE ("int8")'):
                    self.assertIn(said, sentence)
        with mock.patch.dict(os.environ, {"TOTO_DISABLE_COMPILE": "1"}):
            with self.assertWarnsRegex(UserWarning, '; dtype \\("bf16"\\) is ignored'):  # there is such a type
                self.assertEqual(totocpp.Engine.from_pretrained(dtype="bf16").dtype, "f32")
            with self.assertRaisesRegex(ValueError, 'dtype: unknown dtype "int9"'):  # unknown: an error
                totocpp.Engine.from_pretrained(dtype="int9")
            self.assertEqual(totocpp.Engine.from_pretrained(dtype="f64").dtype, "f64")
            self.assertEqual(totocpp.Engine.from_pretrained(mode="default", dtype="int8").dtype, "int8")
        for name, value in wrong.items():
            with mock.patch.dict(os.environ, {name: value}), self.assertRaisesRegex(ValueError, name):
                totocpp.Engine.from_pretrained()

    def test_facts(self) -> None:
        self.assertEqual(engine().name, "toto-mini")
        self.assertTrue(engine().trained)
        self.assertEqual(engine().info["patch_size"], engine().patch_size)
        engine().forecast(wave(), 3)
        self.assertGreater(engine().timings["total"], 0)
        planned = totocpp.Engine.from_pretrained(mode="reduce-overhead")
        planned.forecast(wave(), 3)
        planned.finish_warm_up()
        planned.forecast(wave(), 3)
        self.assertEqual((planned.plans, planned.replans), (1, 0))
        self.assertEqual(repr(engine()).split(",")[0], "Engine('toto-mini'")

    def test_warns_about_an_untrained_model(self) -> None:
        command()
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(run_command("make-model", folder + "/m", "--config", "mini").returncode, 0)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                totocpp.Engine.from_pretrained(folder + "/m")
        self.assertIn("untrained", str(caught[-1].message))


class Verify(unittest.TestCase):
    def test_goldens_pass_and_an_empty_verification_fails(self) -> None:
        case = sorted(path.parent for path in GOLDEN.glob("*/case.safetensors"))[0]
        report = engine().verify(golden=case, golden_only=True)
        self.assertTrue(report["passed"])
        self.assertTrue(any(check["name"].startswith("golden/") for check in report["checks"]))
        with self.assertRaisesRegex(ValueError, "nothing to check"):
            engine().verify(golden_only=True)
        with self.assertRaises(FileNotFoundError):
            engine().verify(golden=GOLDEN / "none", golden_only=True)

    def test_the_network_agrees_with_pytorch(self) -> None:
        """Through the drop-in, within the bound of docs/correctness.md."""
        checked = 0
        for path in sorted(GOLDEN.glob("*/case.safetensors")):
            case, about = read_safetensors(path)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                forecaster = totocpp.TotoForecaster(totocpp.Toto.from_pretrained(path.parent).model)
                inputs = totocpp.MaskedTimeseries(
                    case["series"], case["padding_mask"].astype(bool), case["id_mask"],
                    num_exogenous_variables=int(about.get("num_exogenous", 0)),
                )  # fmt: skip
                future = case.get("future_exogenous")
                for name, cached in (("mean", True), ("mean_no_cache", False)):
                    answer = forecaster.forecast(
                        inputs, int(about["horizon"]), use_kv_cache=cached, future_exogenous_variables=future
                    )
                    exact = case[f"f64.{name}"]
                    bound = 1.25 * np.abs(case[f"f32.{name}"] - exact).mean() + 1e-7 * np.abs(exact).mean()
                    self.assertLessEqual(np.abs(answer.mean - exact).mean(), bound, (path.parent.name, name))
                    checked += 1
        self.assertGreaterEqual(checked, 10)


if __name__ == "__main__":
    unittest.main()
