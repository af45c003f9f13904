"""The table of results: scores agree with their definitions, and no bound holds by default.

`make scripts` runs it. Needs NumPy only: nothing is fitted here.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import numpy as np

import make_results
import statistical_baselines
from held_out import HeldOut


def task(name: str = "set", windows: int = 2) -> HeldOut:
    values = np.array([1.0, 5.0, 2.0, 6.0, 4.0, 8.0, 10.0, 16.0])
    return HeldOut(name, name.capitalize(), "", "", 2, 2, windows, 2, {"s": values})


def report(wql: float, mae: float = 1.0, coverage: float = 0.8) -> dict[str, Any]:
    ratios = {"mase": wql, "wql": wql, "crps": wql, "mae": mae}
    figures = {"wql": 0.1, "mase": 1.0, "mae": 1.0, "coverage_80": coverage}
    names = ("model", "seasonal_naive", "seasonal_naive_bands", "persistence")
    return {
        "windows": 2,
        "metrics": {name: figures for name in names},
        "ratios": {name: ratios for name in names[1:]},
        "series_geometric_mean": {name: ratios for name in names[1:]},
    }


def rows(**wqls: float) -> list[make_results.Row]:
    return [make_results.Row(task(name), 2, report(wql), {}) for name, wql in wqls.items()]


class Scores(unittest.TestCase):
    def test_windows_end_where_the_series_ends(self) -> None:
        pairs = list(task().pairs())
        self.assertEqual([start for _, start, _, _ in pairs], [6, 4])
        self.assertEqual(list(pairs[0][3]), [10.0, 16.0])
        self.assertEqual(len(list(task(windows=9).pairs())), 2, "more than a season before each")

    def test_seasonal_naive_by_hand(self) -> None:
        # (4, 8) for (10, 16) and (2, 6) for (4, 8); changes before them: 1, 1, 2, 2 and 1, 1.
        score = make_results.score(task(), make_results.naive_quantiles(task()))
        self.assertAlmostEqual(score.mae, (6 + 8 + 2 + 2) / 4)
        self.assertAlmostEqual(score.wql, 18 / 38)
        self.assertAlmostEqual(score.mase, (7 / 1.5 + 2 / 1) / 2)
        self.assertEqual(score.coverage_80, 0.0)

    def test_a_difference_from_the_command_stops_it(self) -> None:
        score = make_results.score(task(), make_results.naive_quantiles(task()))
        dataset = {"metrics": {"seasonal_naive": vars(score)}}
        make_results.check_agreement(task(), dataset)
        dataset["metrics"]["seasonal_naive"]["mase"] += 0.01
        with self.assertRaisesRegex(SystemExit, "mase of seasonal naive"):
            make_results.check_agreement(task(), dataset)


    def test_one_absurd_window_is_named_and_excluded(self) -> None:
        values = np.tile([1.0, 3.0], 60)
        many = HeldOut("m4", "M4 Daily, some", "", "", 1, 2, 50, 2, {"s": values})
        quantiles = make_results.naive_quantiles(many)
        quantiles[7] -= 1000.0
        score = make_results.score(many, quantiles)
        self.assertGreater(score.worst_share, 0.9)
        self.assertEqual(score.without_worst, 1.0, "what is left is seasonal naive itself")
        row = make_results.Row(many, 50, report(0.5), {"AutoETS": score})
        note = make_results.single_windows([row], ["AutoETS"])
        self.assertIn("single window of s", note)
        self.assertIn("left out: AutoETS 1.000", note)
        self.assertEqual(make_results.single_windows([], []), "")


class Checks(unittest.TestCase):
    def passed(self, found: list[dict[str, Any]]) -> list[bool]:
        return [check["passed"] for check in found]

    def test_all_hold(self) -> None:
        found = make_results.checks(rows(prices=0.6, other=0.5), complete=True)
        self.assertEqual(self.passed(found), [True] * 5)

    def test_bounds_fail_on_part_of_the_sets(self) -> None:
        found = make_results.checks(rows(prices=0.6), complete=False)
        self.assertEqual(self.passed(found), [False] * 5)

    def test_without_prices_their_bounds_fail(self) -> None:
        found = make_results.checks(rows(other=0.6), complete=True)
        self.assertEqual(self.passed(found), [True, True, True, False, False])

    def test_one_bad_set_fails(self) -> None:
        found = make_results.checks(rows(prices=0.3, other=1.2), complete=True)
        self.assertEqual(self.passed(found), [True, True, False, True, True])
        self.assertIn("other", found[2]["name"])


    def test_reports_a_missed_aim_and_pooled_prices(self) -> None:
        text = make_results.checks_table(make_results.checks(rows(prices=0.6), complete=True))
        self.assertIn("| 0.600 | 0.70 | pass | 0.58 | **missed** |", text)
        self.assertIn("| 0.600 | 0.95 | pass | 0.80 | reached |", text)
        held = rows(prices=0.6)
        held[0].model["ratios"]["persistence"] = {"mae": 1.044}
        self.assertIn("| 1.044 | 1.02 | **over**, not judged |", make_results.pooled_prices(held))
        self.assertEqual(make_results.pooled_prices(rows(other=0.6)), "")


class Card(unittest.TestCase):
    def test_the_table_replaces_the_one_before(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            card = Path(folder, "README.md")
            card.write_text("# model\n\nText.\n")
            with unittest.mock.patch.object(make_results, "CARD", card):
                make_results.write_card("first\n")
                make_results.write_card("second\n")
            text = card.read_text()
        self.assertIn("# model\n\nText.\n\n## Accuracy\n", text)
        self.assertIn("second", text)
        self.assertNotIn("first", text)
        self.assertEqual(text.count(make_results.BEGIN), 1)


    def test_card_and_description_name_the_shipped_weights(self) -> None:
        model = make_results.CARD.parent
        shipped = hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest()
        self.assertIn(shipped, make_results.CARD.read_text())
        told = json.loads((model / "training.json").read_text())
        self.assertEqual(told["model_safetensors_sha256"], shipped)


class Kept(unittest.TestCase):
    def test_a_stopped_run_continues_where_it_was(self) -> None:
        calls: list[int] = []

        class Fake:
            def forecast(self, y: Any, h: int, level: list[int]) -> dict[str, Any]:
                if len(calls) == 1:
                    calls.append(-1)
                    raise KeyboardInterrupt
                calls.append(len(y))
                names = [f"{side}-{band}" for side in ("lo", "hi") for band in level]
                return {name: np.full(h, y[-1]) for name in ["mean", *names]}

        with (
            tempfile.TemporaryDirectory() as folder,
            unittest.mock.patch.object(statistical_baselines, "_model", lambda *_: Fake()),
            unittest.mock.patch.object(statistical_baselines, "PART", 1),
            unittest.mock.patch("importlib.metadata.version", lambda _: "1"),
        ):
            with self.assertRaises(KeyboardInterrupt):
                statistical_baselines.forecast(task(), "AutoETS", 100, Path(folder))
            quantiles = statistical_baselines.forecast(task(), "AutoETS", 100, Path(folder))
            statistical_baselines.forecast(task(), "AutoETS", 100, Path(folder))
        self.assertEqual(calls, [6, -1, 4])
        self.assertEqual(quantiles.shape, (2, 19, 2))


if __name__ == "__main__":
    unittest.main()
