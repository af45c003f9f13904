"""The jobs that are measured, their contenders' names, and the ratios that are claimed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Contenders' names, as the tables show them.
EAGER = "PyTorch eager"
COMPILED = "torch.compile default"
REDUCED = "torch.compile reduce-overhead"
ONNX = "ONNX Runtime f32"
ONNX_INT8 = "ONNX Runtime int8"
OPENVINO = "OpenVINO f32"
OPENVINO_BF16 = "OpenVINO bf16"
OURS = "toto.cpp f32"
OURS_BF16 = "toto.cpp bf16"
OURS_INT8 = "toto.cpp int8"
READ = "reading the weights"
QUANTILES = "exact quantiles, 64 steps"
OURS_GEMM, OPENBLAS, ONEDNN = "toto.cpp GEMM", "OpenBLAS GEMM", "oneDNN GEMM"
COLD_PYTHON = "PyTorch eager, new process"
COLD_OURS = "toto.cpp f32, new process"
COLD_UNPACKED = "toto.cpp f32, new process, no cache"

# Shown if its answer agrees, and not an error if not: nothing is claimed against it.
FOR_ORIENTATION = (ONNX_INT8,)

# The argument of a worker process that chooses its runtime.
RUNTIMES = {
    EAGER: "pytorch:eager",
    COMPILED: "pytorch:default",
    REDUCED: "pytorch:reduce-overhead",
    ONNX: "onnxruntime:f32",
    ONNX_INT8: "onnxruntime:int8",
    OPENVINO: "openvino:f32",
    OPENVINO_BF16: "openvino:bf16",
}


@dataclass(frozen=True)
class Job:
    """One shape of work, given to every contender alike."""

    name: str
    title: str
    context: int = 512
    horizon: int = 1
    samples: int | None = None  # None: the mean
    samples_per_batch: int = 0  # of the reference, which repeats the context once per sample
    batch: int = 1
    network: bool = False  # scaled patches in, parameters of one patch out
    theirs: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ("f32", "bf16", "int8")
    all_modes: bool = False  # of ours, in f32

    @property
    def judged_by(self) -> str:
        """The network job whose parameters its samples must follow, or which it is."""
        return self.name if self.network else "network1"

    @property
    def series_file(self) -> str:
        return f"series_{self.context}_{self.batch}.csv"


_FORECASTS = (EAGER, COMPILED, REDUCED)
_NETWORKS = (EAGER, COMPILED, ONNX, ONNX_INT8, OPENVINO, OPENVINO_BF16)

JOBS = {
    job.name: job
    for job in (
        Job(
            "samples",
            "Context 512, 1 step, 128 samples",
            samples=128,
            samples_per_batch=128,
            theirs=_FORECASTS,
            all_modes=True,
        ),
        Job("mean", "Context 512, 1 step, mean", theirs=_FORECASTS, all_modes=True),
        Job("network1", "Network alone, 1 series", horizon=64, network=True, theirs=_NETWORKS),
        Job(
            "network64",
            "Network alone, 64 series",
            horizon=64,
            batch=64,
            network=True,
            theirs=_NETWORKS,
        ),
        Job(
            "long",
            "Context 4096, 336 steps, 256 samples",
            context=4096,
            horizon=336,
            samples=256,
            samples_per_batch=32,
            theirs=(EAGER,),
        ),
    )
}
# Measured by hand-written code rather than by a race of the above.
OTHER_ROWS = ("start", "memory", "spread", "gemm")
ROWS = (*JOBS, *OTHER_ROWS)


@dataclass(frozen=True)
class Claim:
    """One line of the table. The fastest of `theirs` counts; `instead` is used if none of them runs
    on this CPU."""

    row: str
    work: str
    against: str
    at_least: float
    aim: float
    ours: str = ""
    theirs: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    unit: str = "x"  # "x": how many times faster; "%": a share, more is better; "<": less is better


_STATIC = (ONNX, OPENVINO)
_ANY = (EAGER, COMPILED, ONNX, OPENVINO)
_BF16 = (OPENVINO_BF16,)


def _network(batch: int, dtype: str, *rest: Any) -> Claim:
    return Claim(f"network{batch}", f"network alone, {batch} series, {dtype}", *rest)


_STATIC_NAME = "best of ONNX Runtime and OpenVINO f32"
_ANY_NAME = "best of PyTorch, ONNX Runtime, OpenVINO f32"

CLAIMS = (  # row, work, against, at_least, aim, ours, theirs, instead
    Claim("samples", "context 512, 1 step, 128 samples, f32", EAGER, 110, 150, OURS, (EAGER,)),
    Claim("samples", "same, bf16", EAGER, 170, 260, OURS_BF16, (EAGER,)),
    Claim("mean", "context 512, 1 step, mean, f32", EAGER, 5.5, 7, OURS, (EAGER,)),
    _network(1, "f32", _STATIC_NAME, 1.25, 1.45, OURS, _STATIC),
    _network(1, "bf16", OPENVINO_BF16, 1.2, 1.6, OURS_BF16, _BF16, _STATIC),
    _network(1, "int8", OPENVINO_BF16, 2, 3, OURS_INT8, _BF16, _STATIC),
    _network(64, "f32", _ANY_NAME, 1.05, 1.2, OURS, _ANY),
    _network(64, "bf16", OPENVINO_BF16, 1.0, 1.3, OURS_BF16, _BF16, _ANY),
    _network(64, "int8", OPENVINO_BF16, 1.8, 2.4, OURS_INT8, _BF16, _ANY),
    Claim("long", "context 4096, 336 steps, 256 samples, f32", EAGER, 25, 60, OURS, (EAGER,)),
    Claim(
        "network1", "read bandwidth used, 1 series, f32", "measured on the spot", 0.85, 0.95, OURS,
        (READ,), unit="%",
    ),
    Claim(
        "gemm", "f32 GEMM at 512 rows", "best of OpenBLAS, oneDNN", 1.0, 1.1, OURS_GEMM,
        (OPENBLAS, ONEDNN),
    ),
    Claim(
        "start",
        "process start to first forecast",
        "PyTorch import + load + first forecast",
        40,
        100,
        COLD_OURS,
        (COLD_PYTHON,),
    ),
    Claim("memory", "peak memory, f32", "bytes of the packed weights", 1.15, 1.05, unit="<"),
    Claim("spread", "latency over 200 forecasts, p99 / p50", "itself", 1.25, 1.1, unit="<"),
    Claim(
        "network1", "exact quantiles of 64 steps", "the network's own time, f32", 0.2, 0.2, QUANTILES,
        (OURS,), unit="<",
    ),
)
