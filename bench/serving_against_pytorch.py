#!/usr/bin/env python3
"""Requests per second: `toto serve` and FastAPI + PyTorch with the same model, requests and cores.

    bench/serving_against_pytorch.py --toto build/toto [--seconds 20] [--connections 8]

Needs an environment with torch, toto-ts 0.2.0, fastapi and uvicorn. The two services take turns, several
times; neither runs while the other is measured. The shape of every answer is checked, and the
bits of toto's.
"""
import argparse
import http.client
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).resolve().parent.parent
MODEL = SOURCE / "models/toto-mini"
CONTEXT, HORIZON, SAMPLES = 512, 24, 128


def app():
    """A typical service: one forecaster, one request at a time, quantiles of the samples."""
    import torch
    from fastapi import FastAPI, Request

    sys.path[:0] = [str(SOURCE / "tools"), str(SOURCE / "bench")]
    from golden_reference import load_reference
    from reference_request import request_of
    from toto.inference.forecaster import TotoForecaster

    torch.set_num_threads(int(os.environ["SERVING_THREADS"]))
    forecaster = TotoForecaster(load_reference(MODEL).model)
    lock = threading.Lock()
    service = FastAPI()

    def answer(body):
        values = np.asarray([body["series"][0]["values"]], dtype=np.float32)
        with lock, torch.no_grad():
            found = forecaster.forecast(request_of(values), prediction_length=body["horizon"],
                                        num_samples=body["samples"], samples_per_batch=body["samples"])
        samples = found.samples[0, 0]
        return {"series": [{"mean": samples.mean(-1).tolist(),
                            "quantiles": {str(q): samples.quantile(q, -1).tolist() for q in (0.1, 0.5, 0.9)}}]}

    @service.post("/v1/forecast")
    async def forecast(request: Request):
        from starlette.concurrency import run_in_threadpool
        return await run_in_threadpool(answer, json.loads(await request.body()))

    return service


class Toto:
    name = "toto serve"

    def __init__(self, options):
        words = [options.toto, "serve", "--port", "0", "--model", str(MODEL), "--threads", str(options.threads)]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if found := re.search(r"listening on http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
            if line.startswith("ready"):
                break


class PyTorch:
    name = "FastAPI + PyTorch"

    def __init__(self, options):
        self.port = 18000 + os.getpid() % 1000
        words = [sys.executable, "-m", "uvicorn", "--factory", "serving_against_pytorch:app", "--port",
                 str(self.port), "--log-level", "warning"]
        variables = {**os.environ, "SERVING_THREADS": str(options.threads)}
        self.process = subprocess.Popen(words, cwd=SOURCE / "bench", env=variables)


def ask(connection, body):
    connection.request("POST", "/v1/forecast", body, {"Content-Type": "application/json"})
    reply = connection.getresponse()
    text = reply.read()
    assert reply.status == 200, text
    series = json.loads(text)["series"][0]
    assert len(series["mean"]) == HORIZON
    return series["mean"]


def wait_until_up(port, body):
    until = time.monotonic() + 180
    while True:
        try:
            return ask(http.client.HTTPConnection("127.0.0.1", port), body)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def measure(port, bodies, right, options):
    """Requests per second and their times in ms, closed loop."""
    times, lock, end = [], threading.Lock(), time.monotonic() + options.seconds

    def work(first):
        connection, mine = http.client.HTTPConnection("127.0.0.1", port), []
        number = first
        while time.monotonic() < end:
            start = time.perf_counter()
            mean = ask(connection, bodies[number % len(bodies)])
            mine.append(1e3 * (time.perf_counter() - start))
            assert right is None or mean == right[number % len(bodies)], "a wrong or crossed answer"
            number += 1
        with lock:
            times.extend(mine)

    start = time.monotonic()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(options.connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(times) / (time.monotonic() - start), sorted(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toto", required=True)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    walks = 100 + np.cumsum(rng.normal(size=(32, CONTEXT)), axis=1)
    bodies = [json.dumps({"series": [{"values": [float(np.float32(v)) for v in walk]}], "horizon": HORIZON,
                          "samples": SAMPLES, "quantiles": [0.1, 0.5, 0.9]}) for walk in walks]
    # PyTorch's service takes the same body and ignores what it does not know.
    services = [Toto(options), PyTorch(options)]
    rates = {service.name: [] for service in services}
    try:
        for service in services:
            wait_until_up(service.port, bodies[0])
        connection = http.client.HTTPConnection("127.0.0.1", services[0].port)
        right = [ask(connection, body) for body in bodies]
        print(f"context {CONTEXT}, horizon {HORIZON}, {SAMPLES} samples, {options.connections} connections, "
              f"{options.threads} threads, {options.rounds} rounds of {options.seconds:g} s each")
        for number in range(options.rounds):
            for service in services:
                rate, times = measure(service.port, bodies, right if service is services[0] else None, options)
                rates[service.name].append(rate)
                at = lambda level: times[int(level * (len(times) - 1))]
                print(f"round {number + 1}: {service.name}: {rate:.1f} requests/s, p50 {at(0.5):.2f} ms, "
                      f"p99 {at(0.99):.2f} ms, {len(times)} answers", flush=True)
    finally:
        for service in services:
            service.process.send_signal(signal.SIGTERM)
            service.process.wait(20)
    ours, theirs = (statistics.median(rates[service.name]) for service in services)
    print(f"median: {ours:.1f} against {theirs:.1f} requests/s: {ours / theirs:.1f} times as many")
    return 0


if __name__ == "__main__":
    sys.exit(main())
