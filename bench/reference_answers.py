"""Computes the reference's answers by which the race is judged.

Writes into the work folder: the series (CSV), their scaled form, the reference's float32 answers, a
golden for `toto verify`, and the network alone as ONNX. A separate process, so that the one that
takes the times never loads PyTorch.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from jobs import JOBS, Job
from reference_request import request_of
from series_data import make_series, read_series, write_series

SOURCE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SOURCE / "tools"))

from golden_environment import environment, import_reference, stop  # noqa: E402
from golden_format import Inputs, relative_error, write_case  # noqa: E402

GOLDEN_HORIZON = 64
LARGEST_BATCH = max(job.batch for job in JOBS.values())
SAME_NETWORK = 1e-6  # the network alone against the reference's own first call, relative


def golden_inputs(series: np.ndarray) -> Inputs:
    values = series[:1, None]
    return Inputs(values, np.ones(values.shape, bool), np.zeros(values.shape, np.int64))


def link(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    target.symlink_to(source.resolve())


def make_golden(reference: Any, toto: Any, model: Path, work: Path, series: np.ndarray) -> Any:
    """Leaves the model in float64. Returns the float32 answer."""
    folder = work / "golden"
    folder.mkdir(exist_ok=True)
    for file in (model / "config.json", *model.glob("model*.safetensors*")):
        link(file, folder / file.name)
    inputs = golden_inputs(series)
    f32 = reference.ask(toto, inputs, GOLDEN_HORIZON)
    f64 = reference.ask(toto.double(), inputs, GOLDEN_HORIZON)
    write_case(folder / "case.safetensors", inputs, GOLDEN_HORIZON, False, f32, f64)
    return f32


def scaled_values(backbone: Any, request: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scaled series, and the location and scale at each one's end: the units of the next patch."""
    import torch

    scaled, loc, scale = backbone.scaler(
        request.series,
        weights=torch.ones_like(request.series),
        padding_mask=request.padding_mask,
        prefix_length=request.series.shape[-1],
    )
    return scaled[:, 0].numpy(), loc[:, 0, -1].numpy(), scale[:, 0, -1].numpy()


def answer_networks(backbone: Any, jobs: list[Job], work: Path) -> None:
    import torch
    from network_alone import OUTPUTS, NetworkAlone, export_onnx

    network = NetworkAlone(backbone).eval()
    scaled = torch.from_numpy(np.load(work / "scaled.npy"))
    with torch.no_grad():
        for job in jobs:
            outputs = network(scaled[: job.batch])
            answer = {name: v.numpy() for name, v in zip(OUTPUTS, outputs, strict=True)}
            np.savez(work / f"reference_{job.name}.npz", **answer)
            path = work / f"network_{job.batch}.onnx"
            if not path.exists():  # in a work folder that is kept
                export_onnx(network, job.batch, job.context, path)


def check_network(f32: Any, work: Path) -> None:
    """Checks that the network alone computes what the reference does; without that no race is valid."""
    from network_alone import OUTPUTS

    cut = np.load(work / "reference_network1.npz")
    for name, golden in zip(OUTPUTS, ("df", "component_loc", "component_scale", "logits"), strict=True):
        error = relative_error(cut[name][0], f32[golden][0, 0].astype(np.float64))
        if not error <= SAME_NETWORK:
            stop(f"the network alone differs from the reference in {name} by {error:.1e} of its size,"
                 f" expected at most {SAME_NETWORK}")


def answer_forecasts(backbone: Any, jobs: list[Job], work: Path) -> None:
    """The mean path of every job, also where samples are timed."""
    from toto.inference.forecaster import TotoForecaster

    forecaster = TotoForecaster(backbone)
    for job in jobs:
        request = request_of(read_series(work / job.series_file))
        horizon = max(job.horizon, GOLDEN_HORIZON)
        forecast = forecaster.forecast(request, prediction_length=horizon, num_samples=None)
        _, loc, scale = scaled_values(backbone, request)
        mean = forecast.mean[:, 0].numpy()
        np.savez(work / f"forecast_{job.name}.npz", mean=mean, loc=loc, scale=scale)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--jobs", required=True, help="comma-separated")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    work = arguments.work
    jobs = [JOBS[name] for name in arguments.jobs.split(",")]

    for job in jobs:
        series = make_series(LARGEST_BATCH, job.context, arguments.seed)
        write_series(work / job.series_file, series[: job.batch])

    reference = import_reference()
    reference.make_repeatable(arguments.threads)
    toto = reference.load_reference(arguments.model)
    (work / "environment.txt").write_text("; ".join(environment()) + "\n")
    first = JOBS["network1"]  # part of every check: samples and golden are judged by it
    short = make_series(LARGEST_BATCH, first.context, arguments.seed)
    np.save(work / "scaled.npy", scaled_values(toto.model, request_of(short))[0])
    networks = {first} | {job for job in jobs if job.network}
    answer_networks(toto.model, sorted(networks, key=lambda job: job.batch), work)
    answer_forecasts(toto.model, jobs, work)
    f32 = make_golden(reference, toto, arguments.model, work, short)
    check_network(f32, work)


if __name__ == "__main__":
    main()
