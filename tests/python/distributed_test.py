"""Many machines: a real Ray cluster of two nodes, one of them killed in the middle; and Fugue."""

from __future__ import annotations

import json
import os
import time
import unittest
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from support import DATA, engine, needs, wave


def universe(count: int) -> list[dict[str, Any]]:
    return [{"unique_id": f"s{i:03d}", "y": wave(100 + 7 * (i % 20), level=i)} for i in range(count)]


class Slowly:
    """A step before the forecasts that leaves time to lose a machine, and notes what it did."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        import ray

        time.sleep(0.5)
        node = ray.get_runtime_context().get_node_id()
        note = self.folder / f"{os.getpid()}-{time.monotonic_ns()}.json"
        note.write_text(json.dumps({"node": node, "ids": list(batch["unique_id"])}))
        return batch


@needs("ray", "pandas", "pyarrow")
class Ray(unittest.TestCase):
    cluster: Any
    second: Any

    @classmethod
    def setUpClass(cls) -> None:
        import ray
        from ray.cluster_utils import Cluster

        os.environ.setdefault("RAY_DATA_DISABLE_PROGRESS_BARS", "1")
        # The workers find the tests and the package the way this process does.
        os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        memory = 100 << 20
        cls.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": memory})
        cls.second = cls.cluster.add_node(num_cpus=2, object_store_memory=memory)
        ray.init(address=cls.cluster.address, log_to_driver=False, logging_level="ERROR")
        ray.data.DataContext.get_current().enable_progress_bars = False

    @classmethod
    def tearDownClass(cls) -> None:
        import ray

        ray.shutdown()
        cls.cluster.shutdown()

    def test_1_the_bits_of_one_machine(self) -> None:
        import ray

        from totocpp.distributed import forecast_dataset

        rows = universe(40)
        dataset = ray.data.from_items(rows, override_num_blocks=8)
        answers = forecast_dataset(dataset, 30, concurrency=2, batch_size=5, samples=16).take_all()
        self.same_as_here(rows, answers)

    def same_as_here(self, rows: list[dict[str, Any]], answers: list[dict[str, Any]]) -> None:
        found = {answer["unique_id"]: answer for answer in answers}
        self.assertEqual(sorted(a["unique_id"] for a in answers), [row["unique_id"] for row in rows])
        for row, forecast in zip(rows, engine().forecast([row["y"] for row in rows], 30, samples=16)):
            answer = found[row["unique_id"]]
            np.testing.assert_array_equal(answer["mean"], forecast.mean)
            np.testing.assert_array_equal(answer["0.9"], forecast.quantiles["0.9"])

    def test_2_backtests_of_a_universe(self) -> None:
        from totocpp.distributed import backtest_universe

        files = [DATA / "AAPL.csv", DATA / "BTCUSD.csv", DATA / "GOOGL.csv"]
        run = backtest_universe(files, concurrency=2, windows=4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            here = engine().backtest(files, windows=4)
        self.assertEqual(run.results["symbols"], here.results["symbols"])
        for name in ("forecasts", "trades", "returns"):
            self.assertEqual(run._texts[name], here._texts[name])

    def test_3_frames_are_taken(self) -> None:
        import pandas as pd

        from totocpp.distributed import forecast_dataset

        frame = pd.DataFrame({"unique_id": ["a"] * 60 + ["b"] * 60, "ds": [*range(60)] * 2, "y": np.tile(wave(60), 2)})
        answers = forecast_dataset(frame, 5).take_all()
        self.assertEqual(sorted(answer["unique_id"] for answer in answers), ["a", "b"])
        np.testing.assert_array_equal(answers[0]["mean"], engine().forecast(wave(60), 5).mean)

    def test_4_a_node_dies_in_the_middle(self) -> None:
        """Last: the cluster has one node afterwards."""
        import threading

        import ray

        from totocpp.distributed import forecast_dataset

        rows = universe(120)
        with TemporaryDirectory() as folder:
            slow = ray.data.from_items(rows, override_num_blocks=24).map_batches(
                Slowly, fn_constructor_args=(folder,), concurrency=2, num_cpus=1, batch_size=5,
                scheduling_strategy="SPREAD",
            )  # fmt: skip
            dataset = forecast_dataset(slow, 30, concurrency=2, num_cpus=1, batch_size=5, samples=16)

            def notes() -> list[dict[str, Any]]:
                return [json.loads(path.read_text()) for path in Path(folder).glob("*.json")]

            doomed = self.second.node_id
            killed_after = []

            def kill() -> None:
                while not any(note["node"] == doomed for note in notes()):
                    time.sleep(0.05)
                killed_after.append(len(notes()))
                self.cluster.remove_node(self.second, allow_graceful=False)

            killer = threading.Thread(target=kill, daemon=True)
            killer.start()
            answers = dataset.take_all()
            killer.join(10)
            done = notes()
        self.assertTrue(killed_after and killed_after[0] < 24, "the node outlived the job")
        self.assertTrue(any(note["node"] == doomed for note in done))
        self.assertTrue(any(note["node"] != doomed for note in done))
        self.same_as_here(rows, answers)


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
