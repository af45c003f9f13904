"""Backtests: the command's own figures, as frames or, without pandas, as dicts."""

from __future__ import annotations

import json
import os
import pickle
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

from support import DATA, command, engine, needs, run_command

import totocpp
from totocpp.backtest import merged

FILES = [DATA / "AAPL.csv", DATA / "BTCUSD.csv"]


def quietly(*arguments: Any, **settings: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # holidays of the data
        return engine().backtest(*arguments, **settings)


class Backtests(unittest.TestCase):
    def test_same_files_as_the_command(self) -> None:
        command()
        with tempfile.TemporaryDirectory() as folder:
            process = run_command(
                "backtest", *FILES, "--windows", 12, "--no-lag-test", "--no-cache", "--output-dir", folder + "/cli"
            )
            self.assertEqual(process.returncode, 0, process.stderr)
            run = quietly(FILES, windows=12, report=True)
            run.save(folder + "/python")
            for name in ("forecasts.csv", "trades.csv", "returns.csv"):
                ours, theirs = ((Path(folder) / who / name).read_bytes() for who in ("python", "cli"))
                self.assertEqual(ours, theirs, name)
            theirs = json.loads((Path(folder) / "cli" / "results.json").read_text())
            again = run_command(
                "backtest", "--from-results", folder + "/python/results.json", "--no-lag-test", "--no-cache",
                "--output-dir", folder + "/again",
            )  # fmt: skip
            self.assertEqual(again.returncode, 0, again.stderr)
            for name in ("forecasts.csv", "trades.csv", "returns.csv"):
                ours, repeated = ((Path(folder) / who / name).read_bytes() for who in ("python", "again"))
                self.assertEqual(ours, repeated, name)
            self.assertIn("<html", (Path(folder) / "python" / "report.html").read_text()[:200])
        self.assertEqual(run.results["symbols"], theirs["symbols"])
        settings = run.results["settings"]
        self.assertEqual(list(settings), list(theirs["settings"]))  # one table of them
        for name in set(settings) - {"lag_test", "isa", "threads"}:  # left out, and resolved by the engine
            self.assertEqual(settings[name], theirs["settings"][name], name)
        self.assertIn("the same bits", run.lookahead)

    def test_signal_is_that_of_the_command(self) -> None:
        command()
        process = run_command("signal", *FILES, "--windows", 12, "--no-cache", "--json", "-")
        self.assertEqual(process.returncode, 0, process.stderr)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            signal = engine().signal(FILES, windows=12)
        theirs = json.loads(process.stdout)
        self.assertEqual(signal.results["symbols"], theirs["symbols"])
        self.assertEqual(signal.results["warnings"], theirs["warnings"])
        self.assertEqual(signal.warnings, theirs["warnings"])
        self.assertRegex(repr(signal), r"^Signal\(AAPL 2026-08-06: buy-hold long, ")
        with mock.patch.dict(sys.modules, {"pandas": None}):
            orders, forecasts = signal.orders, signal.forecasts
        self.assertEqual({row["strategy"] for row in orders}, set(theirs["symbols"]["AAPL"]["strategies"]))
        self.assertEqual([row["symbol"] for row in forecasts], ["AAPL", "BTCUSD"])
        self.assertEqual(forecasts[0]["close_0.9"], theirs["symbols"]["AAPL"]["forecast"]["close"]["0.9"])
        for name in ("end", "lag_test", "report", "prove_no_lookahead"):
            with self.assertRaisesRegex(TypeError, f"signal has no setting {name}"):
                engine().signal(FILES, **{name: None})

    def test_report(self) -> None:
        run = quietly(FILES[0], windows=5, strategies=["simple"])
        self.assertEqual(run._texts["report"], "")
        page = run.report()
        self.assertIn("<html", page[:200])
        self.assertEqual(page, quietly(FILES[0], windows=5, strategies=["simple"], report=True).report())
        self.assertEqual(pickle.loads(pickle.dumps(run)).report(), page)
        with self.assertRaisesRegex(RuntimeError, "this run has no report"):
            merged([run]).report()

    def test_without_pandas_rows_are_dicts(self) -> None:
        run = quietly(FILES[0], windows=3, strategies=["simple"])
        with mock.patch.dict(sys.modules, {"pandas": None}):
            self.assertEqual([row["strategy"] for row in run.metrics], ["buy-hold", "simple"])
            self.assertEqual({row["target"] for row in run.accuracy}, {"close", "low", "high", "open"})
            self.assertEqual(len(run.forecasts), 12)
            self.assertIsInstance(run.forecasts[0]["0.1"], float)
            self.assertEqual(len(run.returns), 3)

    def test_merged_parts_equal_one_run(self) -> None:
        whole = quietly(FILES, windows=4)
        parts = merged([quietly(file, windows=4) for file in FILES])
        self.assertEqual(parts.results["symbols"], whole.results["symbols"])
        self.assertEqual(parts.results["data"], whole.results["data"])
        self.assertEqual(parts.results["settings"], whole.results["settings"])
        for name in ("forecasts", "trades", "returns"):
            self.assertEqual(parts._texts[name], whole._texts[name], name)
        with self.assertRaisesRegex(ValueError, "AAPL is in two files"):
            merged([quietly(FILES[0], windows=4)] * 2)

    def test_rejected_arguments(self) -> None:
        for kind, sentence, data, settings in (
            (FileNotFoundError, "nope.csv", "nope.csv", {}),
            (ValueError, 'no strategy "x"', FILES[0], {"strategies": ["x"]}),
            (TypeError, "expected a list of names", FILES[0], {"strategies": "simple"}),
            (TypeError, "no setting windws; did you mean windows", FILES[0], {"windws": 3}),
            (ValueError, "windows and start are both given", FILES[0], {"windows": 3, "start": "2020"}),
            (ValueError, "fee_bps is -1", FILES[0], {"fee_bps": -1}),
            (ValueError, 'asset is "bond", expected auto, stock, crypto or fx', FILES[0], {"asset": "bond"}),
            (ValueError, "decision_lag is 65", FILES[0], {"decision_lag": 65}),
            (ValueError, "data is empty", {}, {}),
            (ValueError, "data is empty", [], {}),
            (ValueError, "data is empty", iter(()), {}),
            (TypeError, "^transform is None, expected text$", FILES[0], {"transform": None}),
            (TypeError, "^point is 3, expected text$", FILES[0], {"point": 3}),
            (TypeError, "^a strategy is 3, expected text$", FILES[0], {"strategies": [3]}),
            (TypeError, "^strategies is 3, expected a list of names$", FILES[0], {"strategies": 3}),
            (ValueError, "^fee_bps is 10{400}, expected", FILES[0], {"fee_bps": 10**400}),
            (TypeError, "data is None, expected a file", None, {}),
        ):
            with self.subTest(sentence), self.assertRaisesRegex(kind, sentence):
                quietly(data, **settings)

    def test_repr(self) -> None:
        run = quietly(FILES, windows=2)
        self.assertRegex(repr(run), r"^Backtest\(AAPL, BTCUSD; \d+ warnings; .*the same bits")
        self.assertLess(len(repr(run)), 500)

    def test_warns_about_odd_data(self) -> None:
        with self.assertWarnsRegex(UserWarning, "AAPL.csv: line"):
            run = engine().backtest(FILES[0], windows=2)
        self.assertTrue(run.warnings)


class _Text:
    """Values that read the same and are not equal."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


@needs("pandas")
class Frames(unittest.TestCase):
    def test_frames_are_named_by_their_symbol(self) -> None:
        import pandas as pd

        frame = pd.read_csv(FILES[0])
        with self.assertWarnsRegex(UserWarning, "^BTC/USD: line [0-9]+"):
            run = engine().backtest({"BTC/USD": frame}, windows=3, report=True)
        self.assertEqual(run.results["settings"]["data"], ["BTC/USD"])
        self.assertEqual([file["file"] for file in run.results["data"]], ["BTC/USD"])
        self.assertEqual(run.results["settings"]["model"], "toto-mini")
        said = [json.dumps(run.results), run.lookahead, *run.warnings, *run._texts.values()]
        for text in said:
            for folder in (tempfile.gettempdir(), str(Path(totocpp.__file__).parent)):
                self.assertNotIn(folder + os.sep, text)
        frame.loc[5, frame.columns[1]] = float("nan")
        with self.assertRaisesRegex(ValueError, "^BTC/USD:"):
            quietly({"BTC/USD": frame}, windows=3)

    def test_frames_in_and_out(self) -> None:
        import pandas as pd

        frame = pd.read_csv(FILES[0])
        frame = frame.set_index(pd.to_datetime(frame.pop(frame.columns[0])))
        run = quietly({"AAPL": frame}, windows=6)
        self.assertEqual(run.results["symbols"], quietly(FILES[0], windows=6).results["symbols"])
        self.assertEqual(run.metrics.set_index("strategy").loc["buy-hold", "trades"], 1)
        self.assertEqual(len(run.forecasts), 24)
        self.assertTrue(pd.api.types.is_datetime64_any_dtype(run.forecasts["target_time"]))
        self.assertIn("AAPL:simple", run.returns.columns)
        self.assertTrue((run.trades["side"].isin(["long", "short"])).all())
        self.assertIn("persistence_mae", run.accuracy.columns)
        with self.assertRaisesRegex(ValueError, "the symbol AAPL is given twice"):
            quietly({"AAPL": frame, _Text("AAPL"): frame})
        with self.assertRaisesRegex(ValueError, "AAPL: no column high"):
            quietly({"AAPL": frame.drop(columns=[c for c in frame.columns if c.lower() == "high"])})
        with self.assertRaisesRegex(TypeError, 'data is a DataFrame, expected symbols with their frames: {"AAPL": frame}'):
            quietly(frame)
        with self.assertRaisesRegex(TypeError, "^AAPL: ndarray, expected a DataFrame"):
            quietly({"AAPL": frame.to_numpy()})

    def test_zones_with_summer_time(self) -> None:
        import pandas as pd

        frame = pd.read_csv(FILES[0])
        frame = frame.set_index(pd.to_datetime(frame.pop(frame.columns[0])))
        naive = quietly({"AAPL": frame}, windows=6)
        for zone in ("America/New_York", "Asia/Tokyo"):  # a day is that of the exchange
            run = quietly({"AAPL": frame.tz_localize(zone)}, windows=6)
            self.assertEqual(run.results["symbols"], naive.results["symbols"])
        closing = (frame.index + pd.Timedelta(hours=16)).tz_localize("America/New_York")
        run = quietly({"AAPL": frame.set_index(closing)}, windows=6)
        self.assertEqual(run.forecasts["target_time"].iloc[-1], closing[-1])
        self.assertEqual(list(run.forecasts["0.5"]), list(naive.forecasts["0.5"]))


if __name__ == "__main__":
    unittest.main()
