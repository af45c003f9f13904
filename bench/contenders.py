"""Contenders: processes that answer a request for comparison and then repeat it while they are timed."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agreement import Agreement, mean_agreement, network_agreement, sample_agreement
from jobs import EAGER, RUNTIMES, Job

HERE = Path(__file__).resolve().parent
PATCH = 64  # steps of the base model's patch: compared even where only one step is timed
WRONG_USAGE = 2  # the exit code of `toto` for a choice it does not offer


class Unavailable(Exception):
    """Not available here, for a reason worth printing; its row is skipped."""


class Broken(Exception):
    """Should have worked: the whole benchmark fails."""


@dataclass(frozen=True)
class Burst:
    """Consecutive runs of one contender, in milliseconds."""

    best: float
    median: float
    count: int

    @staticmethod
    def of(ms: Sequence[float]) -> Burst:
        return Burst(min(ms), statistics.median(ms), len(ms))


@dataclass(frozen=True)
class Setting:
    """Settings that all contenders of a run share."""

    toto: Path
    kernels_bench: Path | None
    model: Path
    work: Path
    threads: int

    def environment(self) -> dict[str, str]:
        """For child processes: a cache separate from the user's, and the given number of threads."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TOTO_")}
        # Python's own cache of compiled modules is part of a fair start.
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        return kept | {
            "TOTO_CACHE_DIR": str(self.work / "cache"),
            "OMP_NUM_THREADS": str(self.threads),
        }

    def run(self, command: Sequence[str | Path]) -> str:
        """The standard output of a program that must exit with 0."""
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, env=self.environment()
            )
        except OSError as error:
            raise Broken(f"cannot run {command[0]}: {error.strerror}") from error
        if done.returncode == 0:
            return done.stdout
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["nothing"]
        complaints = [line for line in said if line.startswith("error: ")] or said[-1:]
        reason = complaints[0].removeprefix("error: ")
        if done.returncode == WRONG_USAGE:
            raise Unavailable(reason)
        name = Path(command[0]).name
        raise Broken(f"{name} {command[1]} ended with {done.returncode}: {reason}")


class Contender(ABC):
    def __init__(self, name: str) -> None:
        self.name = name
        self.facts: dict[str, Any] = {}  # further facts it reported, for the JSON
        self.factor = 1.0  # of the times, where only a part of the job is run

    def start(self) -> None:
        """Everything that is not timed. Raises Unavailable if it cannot run here."""

    @abstractmethod
    def agreement(self) -> Agreement | None:
        """None for the contender that the others are compared with, and where nothing is comparable."""

    @abstractmethod
    def run(self, count: int) -> Burst: ...

    def close(self) -> None:
        """Frees its memory."""


class Reference:
    """PyTorch's float32 answers, as reference_answers.py wrote them."""

    def __init__(self, job: Job, work: Path) -> None:
        self._fed_back = job.horizon > PATCH
        self._parameters = dict(np.load(work / f"reference_{job.judged_by}.npz"))
        self._forecast = dict(np.load(work / f"forecast_{job.name}.npz"))

    def judge(self, answer: dict[str, np.ndarray], dtype: str) -> Agreement:
        """`mean` is [series][step], `samples` [series][step][sample]; else the network's outputs."""
        mean, loc, scale = (self._forecast[name] for name in ("mean", "loc", "scale"))
        if "mean" in answer:
            return mean_agreement(answer["mean"], mean, scale, dtype, self._fed_back)
        if "samples" in answer:
            first = {name: values[0] for name, values in self._parameters.items()}
            return sample_agreement(answer["samples"][0], first, loc[0], scale[0])
        return network_agreement(answer, self._parameters, dtype)


class Worker(Contender):
    """PyTorch, ONNX Runtime or OpenVINO in a separate process (worker.py)."""

    def __init__(self, name: str, job: Job, setting: Setting, samples: int | None = None) -> None:
        super().__init__(name)
        self._job, self._setting, self._samples = job, setting, samples
        self._process: subprocess.Popen[str] | None = None
        if samples is not None and job.samples is not None:
            self.factor = job.samples / samples

    def start(self) -> None:
        setting = self._setting
        command = [sys.executable, HERE / "worker.py", RUNTIMES[self.name], self._job.name]
        command += ["--model", setting.model, "--work", setting.work, "--threads", setting.threads]
        if self._samples is not None:
            command += ["--samples", self._samples]
        log = (setting.work / "workers.log").open("a")
        self._process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=setting.environment(),
        )
        ready = self._read()
        if "refused" in ready:
            raise Unavailable(ready["refused"])
        self.facts |= ready

    def _read(self) -> dict[str, Any]:
        assert self._process and self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            log = (self._setting.work / "workers.log").read_text().strip().splitlines()
            raise Broken(f"{self.name} ended by itself: {log[-1] if log else 'no message'}")
        return json.loads(line)

    def _ask(self, question: str) -> dict[str, Any]:
        assert self._process and self._process.stdin
        self._process.stdin.write(question + "\n")
        self._process.stdin.flush()
        return self._read()

    def agreement(self) -> Agreement | None:
        job = self._job
        if self.name == EAGER and not job.network and (not job.samples or job.horizon > PATCH):
            return None  # the others are compared with it
        file = self._setting.work / "answer.npz"
        self.facts |= self._ask(f"answer {file}")
        dtype = RUNTIMES[self.name].partition(":")[2]
        reference = Reference(job, self._setting.work)
        return reference.judge(dict(np.load(file)), dtype if dtype in ("bf16", "int8") else "f32")

    def run(self, count: int) -> Burst:
        ms = [self.factor * each for each in self._ask(f"run {count}")["ms"]]
        return Burst.of(ms)

    def close(self) -> None:
        if self._process and self._process.stdin:
            self._process.stdin.close()
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
            self._process = None


class Toto(Contender):
    """The `toto` command: answers by `toto forecast`, times by `toto bench`."""

    def __init__(self, name: str, job: Job, setting: Setting, dtype: str, mode: str) -> None:
        super().__init__(name)
        self._job, self._setting, self._dtype = job, setting, dtype
        self._engine = ["--model", setting.model, "--dtype", dtype, "--mode", mode]
        self._engine += ["--threads", setting.threads]

    def start(self) -> None:
        self.run(1)  # fails if there is no such mode, and fills the cache

    def agreement(self) -> Agreement:
        job, work = self._job, self._setting.work
        reference = Reference(job, work)
        mean = reference.judge({"mean": self._forecast("--decode", "mean", "mean")}, self._dtype)
        if not mean.holds or job.samples is None or job.horizon > PATCH:
            return mean
        samples = self._forecast("--samples", job.samples, "samples")
        return reference.judge({"samples": samples.transpose(0, 2, 1)}, self._dtype)

    def _forecast(self, flag: str, value: object, key: str) -> np.ndarray:
        job = self._job
        horizon = max(job.horizon, PATCH)
        command = [self._setting.toto, "forecast", self._setting.work / job.series_file]
        command += ["--context", job.context, "--horizon", horizon, flag, value, *self._engine]
        command += ["--json", "-", *(["--emit", "samples"] if key == "samples" else [])]
        answer = json.loads(self._setting.run(list(map(str, command))))
        return np.array([series[key] for series in answer["series"]], np.float32)

    def run(self, count: int) -> Burst:
        job = self._job
        warmup = 3 if job.horizon <= PATCH else 1
        what = ["--mean"] if job.samples is None else ["--samples", job.samples]
        command = [self._setting.toto, "bench", "--context", job.context, "--horizon", job.horizon]
        command += ["--batch", job.batch, *what, *self._engine, "--warmup", warmup, "--repeat", count]
        report = json.loads(self._setting.run(list(map(str, [*command, "--json", "-"]))))
        names = ("load_ms", "peak_rss_mb", "weights_mb", "replans_after_warmup")
        self.facts |= {name: report[name] for name in (*names, "allocations_after_warmup")}
        self.facts["p99_over_p50"] = report["ms"]["p99"] / report["ms"]["p50"]
        return Burst(report["ms"]["min"], report["ms"]["p50"], count)


class Kernel(Contender):
    """One benchmark of kernels_bench, which compares the libraries' products itself."""

    def __init__(self, name: str, setting: Setting, benchmark: str) -> None:
        super().__init__(name)
        self._setting, self._benchmark = setting, benchmark

    def start(self) -> None:
        if self._setting.kernels_bench is None:
            raise Unavailable("kernels_bench was not built; configure with -DTOTO_BUILD_BENCH=ON")
        self.run(1)

    def agreement(self) -> None:
        return None

    def run(self, count: int) -> Burst:
        assert self._setting.kernels_bench
        flags = [f"--benchmark_filter=^{self._benchmark}/", "--benchmark_format=json"]
        flags += [f"--benchmark_min_time={0.3 if count > 1 else 0.01}"]
        found = json.loads(self._setting.run([self._setting.kernels_bench, *flags]) or "{}")
        results = found.get("benchmarks", [])
        if len(results) != 1:
            raise Unavailable(f"kernels_bench has no {self._benchmark}")
        if results[0].get("error_occurred"):
            raise Broken(f"{self._benchmark}: {results[0]['error_message']}")
        self.facts |= {k: v for k, v in found["context"].items() if k in ("openblas", "onednn")}
        return Burst(results[0]["best_ms"], results[0]["median_ms"], results[0]["iterations"])


class Process(Contender):
    """A whole process, from its start to its end, that draws samples and prints them as JSON."""

    def __init__(self, name: str, job: Job, setting: Setting, command: Sequence[str | Path]) -> None:
        super().__init__(name)
        self._job, self._setting, self._command = job, setting, list(map(str, command))
        self._printed = ""

    def start(self) -> None:
        self.run(1)  # fills the caches on disk

    def agreement(self) -> Agreement:
        series = json.loads(self._printed)["series"]
        samples = np.array([each["samples"] for each in series], np.float32)
        reference = Reference(self._job, self._setting.work)
        return reference.judge({"samples": samples.transpose(0, 2, 1)}, "f32")

    def run(self, count: int) -> Burst:
        ms = []
        for _ in range(count):
            start = time.perf_counter()
            self._printed = self._setting.run(self._command)
            ms.append(1e3 * (time.perf_counter() - start))
        return Burst.of(ms)
