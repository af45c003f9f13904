"""One contender in a separate process: PyTorch, ONNX Runtime or OpenVINO, set up for one job.

Driven line by line over standard input and output by contenders.py. Each has its own process,
because the thread pools of several runtimes in one process compete for the cores.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from jobs import JOBS, Job
from series_data import read_series

SOURCE = Path(__file__).resolve().parent.parent
CHECKED_STEPS = 64  # of a forecast: the whole first patch, also where one step is timed

Answer = dict[str, np.ndarray]


class Refused(Exception):
    """This runtime cannot do the job here; the message says why."""


class Runner:
    """`answer` is compared, `run` is timed."""

    answer: Callable[[], Answer]
    run: Callable[[], object]
    about: str


class PyTorch(Runner):
    def __init__(self, mode: str, job: Job, model: Path, work: Path, threads: int) -> None:
        import torch

        sys.path.insert(0, str(SOURCE / "tools"))
        from golden_reference import load_reference

        torch.set_num_threads(threads)
        self.about = f"torch {version('torch')}"
        backbone = load_reference(model).model
        if job.network:
            self._network(torch, mode, job, backbone, work)
        else:
            self._forecaster(torch, mode, job, backbone, work)

    def _network(self, torch: Any, mode: str, job: Job, backbone: Any, work: Path) -> None:
        from network_alone import OUTPUTS, NetworkAlone

        network = NetworkAlone(backbone).eval()
        if mode != "eager":
            network.compile(mode=mode)
        scaled = torch.from_numpy(np.load(work / "scaled.npy")[: job.batch])

        def run() -> Any:
            with torch.no_grad():
                return network(scaled)

        self.run = run
        self.answer = lambda: {n: v.numpy() for n, v in zip(OUTPUTS, run(), strict=True)}

    def _forecaster(self, torch: Any, mode: str, job: Job, backbone: Any, work: Path) -> None:
        from reference_request import request_of
        from toto.inference.forecaster import TotoForecaster

        if mode != "eager":
            backbone.compile(mode=mode)
        forecaster = TotoForecaster(backbone)
        request = request_of(read_series(work / job.series_file))

        def forecast(horizon: int) -> Any:
            return forecaster.forecast(
                request,
                prediction_length=horizon,
                num_samples=job.samples,
                samples_per_batch=job.samples_per_batch,
                use_kv_cache=True,
            )

        def answer() -> Answer:
            torch.manual_seed(0)
            found = forecast(max(job.horizon, CHECKED_STEPS))
            if job.samples is None:
                return {"mean": found.mean[:, 0].numpy()}
            return {"samples": found.samples[:, 0].numpy()}  # [series][step][sample]

        self.run = lambda: forecast(job.horizon)
        self.answer = answer


class OnnxRuntime(Runner):
    def __init__(self, dtype: str, job: Job, _model: Path, work: Path, threads: int) -> None:
        import onnxruntime

        self.about = f"onnxruntime {onnxruntime.__version__}"
        path = work / f"network_{job.batch}.onnx"
        if dtype == "int8":
            path = self._quantised(path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        inputs = {"scaled": np.load(work / "scaled.npy")[: job.batch]}
        self.run = lambda: session.run(names, inputs)
        self.answer = lambda: dict(zip(names, self.run(), strict=True))

    @staticmethod
    def _quantised(path: Path) -> Path:
        """Weights int8 per output channel, activations quantised dynamically."""
        from onnxruntime.quantization import QuantType, quantize_dynamic

        quantised = path.with_suffix(".int8.onnx")
        if not quantised.exists():
            quantize_dynamic(path, quantised, per_channel=True, weight_type=QuantType.QInt8)
        return quantised


class OpenVino(Runner):
    def __init__(self, dtype: str, job: Job, _model: Path, work: Path, threads: int) -> None:
        import openvino

        self.about = f"openvino {version('openvino')}"
        settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": dtype,
        }
        core = openvino.Core()
        compiled = core.compile_model(str(work / f"network_{job.batch}.onnx"), "CPU", settings)
        used = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
        if used != dtype:
            raise Refused(f"asked for {dtype} on this CPU, it computes in {used}")
        request = compiled.create_infer_request()
        inputs = {0: np.load(work / "scaled.npy")[: job.batch]}
        names = [output.any_name for output in compiled.outputs]
        self.run = lambda: request.infer(inputs)
        self.answer = lambda: {
            name: np.array(values) for name, values in zip(names, self.run().values(), strict=True)
        }


KINDS: dict[str, Callable[..., Runner]] = {
    "pytorch": PyTorch,
    "onnxruntime": OnnxRuntime,
    "openvino": OpenVino,
}


def timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return 1e3 * (time.perf_counter() - start)


def serve(runner: Runner, replies: Any) -> None:
    """Reads lines `answer FILE` or `run COUNT` until the parent closes the pipe."""

    def say(**reply: object) -> None:
        print(json.dumps(reply), file=replies, flush=True)

    for line in sys.stdin:
        command, argument = line.split(maxsplit=1)
        if command == "answer":
            np.savez(argument.strip(), **runner.answer())
            say(peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6)
        else:
            say(ms=[timed(runner.run) for _ in range(int(argument))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runtime", help="such as pytorch:eager or openvino:bf16")
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="what reference_answers.py made")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--samples", type=int, help="instead of the job's own number")
    arguments = parser.parse_args()
    job = JOBS[arguments.job]
    if arguments.samples is not None:
        job = replace(job, samples=arguments.samples)
    # Only replies go to the real standard output; output of libraries goes to stderr.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    kind, variant = arguments.runtime.split(":")
    start = time.perf_counter()
    try:
        runner = KINDS[kind](variant, job, arguments.model, arguments.work, arguments.threads)
        first_ms = timed(runner.run)
    except (Refused, ImportError) as error:
        print(json.dumps({"refused": str(error)}), file=replies, flush=True)
        return
    setup_s = time.perf_counter() - start - first_ms / 1e3
    ready = {"about": runner.about, "setup_s": setup_s, "first_ms": first_ms}
    print(json.dumps(ready), file=replies, flush=True)
    serve(runner, replies)


if __name__ == "__main__":
    main()
