"""Many machines: a real Ray cluster of two nodes, one of them killed in the middle; and Fugue."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import unittest
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from support import DATA, engine, needs, wave

from totocpp.distributed import ForecastActor, backtest_universe, forecast_dataset


class Noting(ForecastActor):
    """Slow enough to lose a machine in the middle of a job; records where it ran."""

    def __init__(self, *arguments: Any, notes: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.notes = Path(notes)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        import ray

        time.sleep(0.4)
        note = {"node": ray.get_runtime_context().get_node_id(), "threads": self.engine.threads}
        part = self.notes / f"{os.getpid()}-{time.monotonic_ns()}"
        part.write_text(json.dumps(note))
        part.rename(part.with_suffix(".json"))
        return super().__call__(batch)


@needs("ray", "pandas", "pyarrow")
class Ray(unittest.TestCase):
    cluster: Any
    second: Any

    @classmethod
    def setUpClass(cls) -> None:
        import ray
        from ray.cluster_utils import Cluster

        os.environ["RAY_worker_niceness"] = "0"  # else a busy machine starves them
        # The workers find the tests and the package the way this process does.
        os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        memory = 100 << 20
        cls.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": memory})
        cls.second = cls.cluster.add_node(num_cpus=2, object_store_memory=memory)
        ray.init(address=cls.cluster.address, log_to_driver=False, logging_level="ERROR")
        ray.data.DataContext.get_current().enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)

    @classmethod
    def tearDownClass(cls) -> None:
        import ray

        ray.shutdown()
        cls.cluster.shutdown()

    def test_0_a_class_defined_in_a_script(self) -> None:
        """As in a notebook: it cannot be imported, and each worker still creates it once."""
        import ray

        with TemporaryDirectory() as folder:

            class Summing(ForecastActor):
                def __init__(self, *arguments: Any, **options: Any) -> None:
                    super().__init__(*arguments, **options)
                    (Path(folder) / f"{os.getpid()}-{time.monotonic_ns()}").touch()

                def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
                    answer = super().__call__(batch)
                    answer["sum"] = answer["mean"].sum(axis=1)
                    return answer

            rows = [{"unique_id": f"s{i}", "y": wave(50 + i)} for i in range(12)]
            dataset = ray.data.from_items(rows, override_num_blocks=6)
            answers = forecast_dataset(dataset, 3, actor=Summing, batch_size=2, point="median").take_all()
            made = [name.name.partition("-")[0] for name in Path(folder).iterdir()]
        self.assertEqual(len(answers), 12)
        self.assertEqual(len(made), len(set(made)))
        for answer in answers:
            alone = engine().forecast(wave(50 + int(answer["unique_id"][1:])), 3)
            np.testing.assert_array_equal(answer["mean"], alone.mean)
            np.testing.assert_array_equal(answer["point"], alone.median)
            self.assertAlmostEqual(answer["sum"], alone.mean.sum(), places=3)

    def test_0_rejected_universes(self) -> None:
        for kind, sentence, data, settings in (
            (ValueError, "data is empty", [], {}),
            (ValueError, "report=True: the symbols of a universe run in separate tasks", DATA / "AAPL.csv", {"report": True}),
            (TypeError, "data is dict, expected a file", {"A": 1}, {}),
        ):
            with self.subTest(sentence), self.assertRaisesRegex(kind, sentence):
                backtest_universe(data, **settings)

    def test_0_the_actor_class(self) -> None:
        import ray

        rows = [{"unique_id": f"s{i}", "y": wave(50 + i)} for i in range(6)]
        answers = (
            ray.data.from_items(rows)
            .map_batches(
                ForecastActor,
                fn_constructor_args=(7,),
                batch_size=2,
                compute=ray.data.ActorPoolStrategy(size=1),
                num_cpus=1,
            )
            .take_all()
        )
        found = {answer["unique_id"]: answer["mean"] for answer in answers}
        for row in rows:
            np.testing.assert_array_equal(found[row["unique_id"]], engine().forecast(row["y"], 7).mean)

    def test_0_a_frame_and_its_columns(self) -> None:
        import pandas as pd
        import ray

        days = pd.date_range("2024", periods=80)
        frame = pd.DataFrame({"unique_id": "a", "time": days, "y": wave(80)}).drop(index=[30])
        with self.assertWarnsRegex(UserWarning, "1 absent steps"):
            (answer,) = forecast_dataset(frame, 5, time_col="time", freq="D").take_all()
        gap = wave(80)
        gap[30] = np.nan
        np.testing.assert_array_equal(answer["mean"], engine().forecast(gap, 5).mean)
        with self.assertRaisesRegex(ValueError, "time_col and freq are for long frames"):
            forecast_dataset(ray.data.from_items([{"unique_id": "a", "y": wave()}]), 5, time_col="ds")

    def test_1_backtests_of_a_universe(self) -> None:
        files = [DATA / "AAPL.csv", DATA / "BTCUSD.csv", DATA / "GOOGL.csv"]
        run = backtest_universe(files, concurrency=2, windows=4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            here = engine().backtest(files, windows=4)
        self.assertEqual(run.results["symbols"], here.results["symbols"])
        for name in ("forecasts", "trades", "returns"):
            self.assertEqual(run._texts[name], here._texts[name])

    def test_2_a_node_dies_in_the_middle(self) -> None:
        """Last: the cluster has one node afterwards."""
        import pandas as pd

        series = {f"s{i:03d}": wave(60 + 7 * (i % 20), level=i) for i in range(120)}
        frame = pd.concat(
            pd.DataFrame({"unique_id": name, "ds": range(len(values)), "y": values}) for name, values in series.items()
        )
        doomed = self.second.node_id
        killed_after: list[int] = []
        with TemporaryDirectory() as folder:

            def notes() -> list[dict[str, Any]]:
                return [json.loads(path.read_text()) for path in Path(folder).glob("*.json")]

            def kill() -> None:
                while not any(note["node"] == doomed for note in notes()):
                    time.sleep(0.05)
                killed_after.append(len(notes()))
                self.cluster.remove_node(self.second, allow_graceful=False)

            # Two CPUs per task and per node: one task at a time on each.
            dataset = forecast_dataset(
                frame, 30, concurrency=2, num_cpus=2, batch_size=5, actor=Noting, notes=folder, samples=16
            )
            killer = threading.Thread(target=kill, daemon=True)
            killer.start()
            answers = dataset.take_all()
            killer.join(10)
            done = notes()
        self.assertTrue(killed_after and killed_after[0] < 24, "the node outlived the job")
        self.assertEqual(len({note["node"] for note in done}), 2)
        self.assertEqual({note["threads"] for note in done}, {2})
        found = {answer["unique_id"]: answer for answer in answers}
        self.assertEqual(sorted(answer["unique_id"] for answer in answers), list(series))  # none lost, none twice
        for name, forecast in zip(series, engine().forecast(list(series.values()), 30, samples=16)):
            np.testing.assert_array_equal(found[name]["mean"], forecast.mean)
            np.testing.assert_array_equal(found[name]["0.9"], forecast.quantiles["0.9"])


@needs("pandas")
class Frames(unittest.TestCase):
    """Long frames become rows locally: no cluster is needed."""

    def test_rows_are_the_series_of_the_adapter(self) -> None:
        import pandas as pd

        from totocpp.distributed import _rows_of_frame
        from totocpp.nixtla import TotoFrame

        names = pd.Categorical(["a"] * 100 + ["b"] * 50, categories=["a", "b", "never seen"])
        frame = pd.DataFrame(
            {"name": names, "time": [*range(100), *range(50)], "value": [*wave(100), *wave(50, level=3)]}
        ).drop(index=[20, 21])
        columns = {"id_col": "name", "time_col": "time", "target_col": "value"}
        with self.assertWarnsRegex(UserWarning, "2 absent steps"):
            rows = _rows_of_frame(frame.sample(frac=1, random_state=0), freq=None, **columns)
            answer = TotoFrame(engine()).forecast(frame, 4, **columns)
        self.assertEqual([row["name"] for row in rows], ["a", "b"])
        forecasts = engine().forecast([row["value"] for row in rows], 4)
        np.testing.assert_array_equal(np.concatenate([f.mean for f in forecasts]), answer["Toto"])
        for sentence, wrong in (
            ("has the time 3 twice", pd.concat([frame, frame.iloc[3:4]])),
            ("1 of 148 rows have no name", frame.assign(name=[None, *frame["name"][1:]])),
            ("no column time", frame.drop(columns="time")),
        ):
            with self.subTest(sentence), self.assertRaisesRegex(ValueError, sentence):
                _rows_of_frame(wrong, freq=None, **columns)


@needs("fugue", "pandas")
class Fugue(unittest.TestCase):
    def test_partitions(self) -> None:
        import pandas as pd

        from totocpp.distributed import forecast_partitions
        from totocpp.nixtla import TotoFrame

        frame = pd.concat(
            pd.DataFrame({"unique_id": f"s{i}", "ds": pd.date_range("2024", periods=90 + i), "y": wave(90 + i)})
            for i in range(4)
        )
        answer = forecast_partitions(frame, 4, level=[80], engine="native")
        expected = TotoFrame(engine()).forecast(frame, 4, level=[80])
        answer = answer.sort_values(["unique_id", "ds"]).reset_index(drop=True)
        self.assertEqual(list(answer.columns), list(expected.columns))
        for column in expected.columns:
            np.testing.assert_array_equal(answer[column].to_numpy(), expected[column].to_numpy())


if __name__ == "__main__":
    unittest.main()
