#!/usr/bin/env python3
"""Unmodified clients against `toto serve`: every answer equals the command line's to the bit.

    clients_test.py TOTO      run by tools/python_clients.sh, which installs the clients
"""
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import urllib.request
import warnings

import numpy as np
import pandas as pd
import tritonclient.http as triton
from nixtla import NixtlaClient

from service import Service

TOTO = sys.argv[1]
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KEY = "a-key-for-tests"
MODEL = "toto-mini"
logging.getLogger("nixtla").setLevel(logging.WARNING)
warnings.filterwarnings("ignore", category=FutureWarning)


def environment():
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("TOTO_", "TORCH"))}
    return {**clean, "TOTO_CACHE_DIR": FOLDER.name}


def command_line(csv, *options):
    """The series of `toto forecast CSV`, by id."""
    words = [TOTO, "forecast", str(csv), "--output", "-", *map(str, options)]
    out = subprocess.run(words, check=True, capture_output=True, env=environment()).stdout
    return {item["id"]: item for item in json.loads(out)["series"]}


def bits(values):
    return np.asarray(values, dtype=np.float32).tobytes()


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Service(TOTO, "--api-key", KEY)
        cls.address = cls.server.address
        times = pd.date_range("2022-01-01", periods=400, freq="D")
        rng = np.random.default_rng(1)
        walks = 100 + np.cumsum(rng.normal(size=(400, 2)), axis=0)
        cls.wide = pd.DataFrame({"ds": times, "a": walks[:, 0].astype(np.float32), "b": walks[:, 1].astype(np.float32)})
        cls.csv = pathlib.Path(FOLDER.name) / "two.csv"
        cls.wide.to_csv(cls.csv, index=False)
        cls.long = cls.wide.melt("ds", var_name="unique_id", value_name="y")

    @classmethod
    def tearDownClass(cls):
        code = cls.server.close()
        assert code == 0, code

    def triton(self):
        client = triton.InferenceServerClient(self.address.removeprefix("http://"))
        return client, {"Authorization": f"Bearer {KEY}"}  # a copy for infer, which adds headers

    def nixtla(self):
        return NixtlaClient(api_key=KEY, base_url=self.address, max_retries=1)

    def test_triton_health_and_metadata(self):
        client, key = self.triton()
        self.assertTrue(client.is_server_live())
        self.assertTrue(client.is_server_ready())
        self.assertTrue(client.is_model_ready(MODEL, headers=key))
        self.assertTrue(client.is_model_ready(MODEL, "1", headers=key))
        self.assertIn("binary_tensor_data", client.get_server_metadata(headers=key)["extensions"])
        metadata = client.get_model_metadata(MODEL, headers=key)
        self.assertEqual([item["name"] for item in metadata["inputs"]], ["target", "target_mask", "series_ids"])

    def test_triton_infer(self):
        client, key = self.triton()
        target = np.stack([self.wide["a"], self.wide["b"]]).astype(np.float32)[:, None, :]
        right = command_line(self.csv, "--horizon", 30, "--quantiles", "0.1,0.5,0.9")
        for binary, compression in ((True, None), (False, None), (True, "gzip"), (True, "deflate")):
            item = triton.InferInput("target", target.shape, "FP32")
            item.set_data_from_numpy(target, binary_data=binary)
            outputs = [triton.InferRequestedOutput(name, binary_data=binary) for name in ("mean", "quantiles")]
            answer = client.infer(MODEL, [item], outputs=outputs, headers=dict(key), request_id="7",
                                  request_compression_algorithm=compression,
                                  parameters={"horizon": 30, "quantiles": "0.1,0.5,0.9"})
            mean, quantiles = answer.as_numpy("mean"), answer.as_numpy("quantiles")
            self.assertEqual(mean.shape, (2, 1, 30))
            self.assertEqual(quantiles.shape, (3, 2, 1, 30))
            for i, name in enumerate("ab"):
                self.assertEqual(bits(mean[i, 0]), bits(right[name]["mean"]))
                for q, level in enumerate(("0.1", "0.5", "0.9")):
                    self.assertEqual(bits(quantiles[q, i, 0]), bits(right[name]["quantiles"][level]))
            self.assertEqual(answer.get_response()["id"], "7")

    def test_triton_samples_and_missing(self):
        client, key = self.triton()
        values = self.wide["a"].to_numpy(np.float32).copy()
        values[200] = np.nan
        csv = pathlib.Path(FOLDER.name) / "missing.csv"
        pd.DataFrame({"ds": self.wide["ds"], "a": values}).to_csv(csv, index=False)
        right = command_line(csv, "--horizon", 5, "--samples", 16, "--seed", 3, "--emit", "samples")["a"]
        item = triton.InferInput("target", (1, 1, 400), "FP32")
        item.set_data_from_numpy(values.reshape(1, 1, 400))
        answer = client.infer(MODEL, [item], headers=dict(key), outputs=[triton.InferRequestedOutput("samples")],
                              parameters={"horizon": 5, "samples": 16, "seed": 3})
        samples = answer.as_numpy("samples")
        self.assertEqual(samples.shape, (1, 1, 5, 16))
        self.assertEqual(bits(samples[0, 0].T), bits(right["samples"]))

    def test_triton_errors_are_sentences(self):
        client, key = self.triton()
        item = triton.InferInput("target", (1, 1, 2), "FP32")
        item.set_data_from_numpy(np.ones((1, 1, 2), np.float32))
        with self.assertRaisesRegex(Exception, "horizon is 0"):
            client.infer(MODEL, [item], headers=dict(key), parameters={"horizon": 0})
        with self.assertRaisesRegex(Exception, "no API key"):
            client.infer(MODEL, [item])

    def test_nixtla_key(self):
        self.assertTrue(self.nixtla().validate_api_key())
        wrong = NixtlaClient(api_key="wrong", base_url=self.address, max_retries=1)
        self.assertFalse(wrong.validate_api_key())

    def test_nixtla_forecast(self):
        answer = self.nixtla().forecast(self.long, h=14, freq="D", level=[80, 90])
        right = command_line(self.csv, "--horizon", 14, "--quantiles", "0.05,0.1,0.9,0.95")
        for name in "ab":
            part = answer[answer["unique_id"] == name]
            self.assertEqual(bits(part["TimeGPT"]), bits(right[name]["mean"]))
            self.assertEqual(bits(part["TimeGPT-lo-80"]), bits(right[name]["quantiles"]["0.1"]))
            self.assertEqual(bits(part["TimeGPT-hi-90"]), bits(right[name]["quantiles"]["0.95"]))
            self.assertEqual(list(part["ds"].dt.strftime("%Y-%m-%d")), right[name]["timestamps"])

    def test_nixtla_quantiles_history_and_partitions(self):
        client = self.nixtla()
        answer = client.forecast(self.long, h=7, freq="D", quantiles=[0.1, 0.5, 0.9])
        right = command_line(self.csv, "--horizon", 7, "--quantiles", "0.1,0.5,0.9")
        part = answer[answer["unique_id"] == "a"]
        self.assertEqual(bits(part["TimeGPT-q-10"]), bits(right["a"]["quantiles"]["0.1"]))
        history = client.forecast(self.long, h=7, freq="D", add_history=True)
        self.assertGreater(len(history), 2 * (400 - 64))
        partitioned = client.forecast(self.long, h=7, freq="D", num_partitions=2)
        self.assertEqual(bits(partitioned["TimeGPT"]), bits(answer["TimeGPT"]))

    def test_nixtla_large_bodies_are_sent_as_zstd(self):
        times = pd.date_range("2000-01-01", periods=4000, freq="h")
        rng = np.random.default_rng(2)
        frame = pd.concat([pd.DataFrame({"unique_id": f"s{i:03}", "ds": times, "y": rng.normal(size=4000).astype(np.float32)})
                           for i in range(40)])
        answer = self.nixtla().forecast(frame, h=2, freq="h")
        one = frame[frame["unique_id"] == "s007"]
        csv = pathlib.Path(FOLDER.name) / "hourly.csv"
        one[["ds", "y"]].to_csv(csv, index=False)
        right = command_line(csv, "--horizon", 2)["y"]
        self.assertEqual(bits(answer[answer["unique_id"] == "s007"]["TimeGPT"]), bits(right["mean"]))

    def test_nixtla_exogenous(self):
        frame = self.wide.rename(columns={"a": "y", "b": "x"}).assign(unique_id="a")
        future = pd.DataFrame({"unique_id": "a", "ds": pd.date_range("2023-02-05", periods=5, freq="D"),
                               "x": np.arange(5, dtype=np.float32)})
        answer = self.nixtla().forecast(frame, X_df=future, h=5, freq="D")
        known = pathlib.Path(FOLDER.name) / "known.csv"
        future[["ds", "x"]].rename(columns={"x": "b"}).to_csv(known, index=False)
        right = command_line(self.csv, "--horizon", 5, "--known-future", known)["a"]
        self.assertEqual(bits(answer["TimeGPT"]), bits(right["mean"]))

    def test_nixtla_cross_validation(self):
        answer = self.nixtla().cross_validation(self.long, h=10, n_windows=3, step_size=10, freq="D", level=[80])
        csv = pathlib.Path(FOLDER.name) / "cut.csv"
        self.wide[:370].to_csv(csv, index=False)
        right = command_line(csv, "--horizon", 10, "--quantiles", "0.1,0.9")
        first = answer[(answer["unique_id"] == "b") & (answer["cutoff"] == self.wide["ds"][369])]
        self.assertEqual(len(answer), 60)
        self.assertEqual(bits(first["TimeGPT"]), bits(right["b"]["mean"]))
        self.assertEqual(bits(first["TimeGPT-lo-80"]), bits(right["b"]["quantiles"]["0.1"]))
        self.assertEqual(bits(first["y"]), bits(self.wide["b"][370:380]))
        for end in (380, 390):  # and the later windows, of both series
            self.wide[:end].to_csv(csv, index=False)
            right = command_line(csv, "--horizon", 10, "--quantiles", "0.1,0.9")
            for name in "ab":
                window = answer[(answer["unique_id"] == name) & (answer["cutoff"] == self.wide["ds"][end - 1])]
                self.assertEqual(bits(window["TimeGPT"]), bits(right[name]["mean"]))
                self.assertEqual(bits(window["TimeGPT-lo-80"]), bits(right[name]["quantiles"]["0.1"]))
                self.assertEqual(bits(window["TimeGPT-hi-80"]), bits(right[name]["quantiles"]["0.9"]))

    def test_nixtla_anomalies(self):
        frame = self.long.copy()
        spike = frame[(frame["unique_id"] == "a") & (frame["ds"] == "2022-12-01")].index
        frame.loc[spike, "y"] += 1000
        answer = self.nixtla().detect_anomalies(frame, freq="D", level=99)
        found = answer[(answer["unique_id"] == "a") & (answer["ds"] == "2022-12-01")]
        self.assertTrue(bool(found["anomaly"].iloc[0]))
        self.assertLess(answer["anomaly"].mean(), 0.2)
        # Consecutive windows of one exact block, each from all values before it.
        request = urllib.request.Request(
            f"{self.address}/model_params", headers={"Authorization": f"Bearer {KEY}"})
        with urllib.request.urlopen(request) as reply:
            step = json.load(reply)["detail"]["horizon"]
        wide = frame.pivot(index="ds", columns="unique_id", values="y").reset_index()
        self.assertEqual(len(answer), 2 * (400 - step))
        csv = pathlib.Path(FOLDER.name) / "before.csv"
        for end in range(step, 400, step):
            wide[:end].to_csv(csv, index=False)
            right = command_line(csv, "--horizon", step, "--quantiles", "0.005,0.995")
            length = min(step, 400 - end)
            for name in "ab":
                times = wide["ds"][end : end + length]
                window = answer[(answer["unique_id"] == name) & answer["ds"].isin(times)]
                low, high = (right[name]["quantiles"][level][:length] for level in ("0.005", "0.995"))
                self.assertEqual(bits(window["TimeGPT"]), bits(right[name]["mean"][:length]))
                self.assertEqual(bits(window["TimeGPT-lo-99"]), bits(low))
                self.assertEqual(bits(window["TimeGPT-hi-99"]), bits(high))
                actual = wide[name][end : end + length].to_numpy(np.float32)
                outside = (actual < np.float32(low)) | (actual > np.float32(high))
                self.assertEqual(list(window["anomaly"].astype(bool)), list(outside))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        FOLDER = type("Folder", (), {"name": name})
        unittest.main(argv=sys.argv[:1])
