"""Threads, forks, signals, pickles: an engine in a real Python process."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from support import engine, wave

import totocpp


def _samples(_: Any = None) -> np.ndarray:
    return engine().forecast(wave(), 100, samples=8).samples


def _send_interrupt(seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


class Threads(unittest.TestCase):
    def test_threads_share_an_engine(self) -> None:
        expected = _samples()
        with ThreadPoolExecutor(8) as pool:
            for answer in pool.map(_samples, range(12)):
                np.testing.assert_array_equal(answer, expected)

    def test_other_threads_run_while_it_computes(self) -> None:
        busy = threading.Thread(
            target=lambda: engine().forecast([wave()] * 8, 2000, samples=16, keep_samples=False), daemon=True
        )
        busy.start()
        ticks = 0
        while busy.is_alive():
            time.sleep(0.002)
            ticks += 1
        self.assertGreater(ticks, 5)

    def test_two_engines_at_the_same_time(self) -> None:
        other = totocpp.Engine.from_pretrained(threads=1)
        expected = _samples()
        with ThreadPoolExecutor(2) as pool:
            futures = [pool.submit(e.forecast, wave(), 100, samples=8) for e in (engine(), other) * 2]
        for future in futures:
            np.testing.assert_array_equal(future.result().samples, expected)


class Forks(unittest.TestCase):
    def test_a_forked_process_forecasts(self) -> None:
        expected = _samples()
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
            for answer in pool.map(_samples, range(4)):
                np.testing.assert_array_equal(answer, expected)

    def test_a_fork_while_another_thread_computes(self) -> None:
        expected = _samples()
        busy = threading.Thread(target=lambda: engine().forecast([wave()] * 8, 2000, samples=16, keep_samples=False))
        busy.start()
        time.sleep(0.05)
        child = os.fork()
        if child == 0:  # the lock of the parent's engine is held by a thread that does not exist here
            same = np.array_equal(_samples(), expected)
            os._exit(0 if same else 1)
        _, status = os.waitpid(child, 0)
        busy.join()
        self.assertEqual(status, 0)

    def test_a_forked_process_loads_once_while_its_threads_run(self) -> None:
        mine = totocpp.Engine.from_pretrained(cache=False)  # so that loading takes a while
        expected = mine.forecast(wave(), 100, samples=8).samples
        child = os.fork()
        if child == 0:
            with ThreadPoolExecutor(2) as pool:
                futures = [pool.submit(mine.forecast, wave(), 100, samples=8) for _ in range(2)]
                ticks = 0
                while not any(future.done() for future in futures):
                    time.sleep(0.0005)
                    ticks += 1
                same = all(np.array_equal(future.result().samples, expected) for future in futures)
            os._exit(0 if same and ticks > 3 else 1 if same else 2)
        _, status = os.waitpid(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)

    def test_a_load_that_fails_after_a_fork_can_be_tried_again(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "model"
            shutil.copytree(str(engine().info["path"]), model)
            mine = totocpp.Engine.from_pretrained(model, cache=False)
            expected = mine.forecast(wave(), 3).mean
            model.rename(Path(folder) / "away")
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    mine.forecast(wave(), 3)
                except FileNotFoundError:
                    (Path(folder) / "away").rename(model)
                    code = 0 if np.array_equal(mine.forecast(wave(), 3).mean, expected) else 2
                os._exit(code)
            _, status = os.waitpid(child, 0)
            self.assertEqual(os.waitstatus_to_exitcode(status), 0)

    def test_a_session_cannot_be_used_after_a_fork(self) -> None:
        session = engine().session(wave())
        child = os.fork()
        if child == 0:
            code = 1
            try:
                session.append(1.0)
            except RuntimeError as error:
                code = 0 if "forked from it" in str(error) and "engine.session" in str(error) else 2
            del session  # must not wait for threads that are not there
            gc.collect()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        self.assertEqual(status, 0)
        session.append(1.0)

    def test_spawned_processes_and_pickles(self) -> None:
        again = pickle.loads(pickle.dumps(engine()))
        np.testing.assert_array_equal(again.forecast(wave(), 100, samples=8).samples, _samples())
        self.assertEqual((again.mode, again.name), (engine().mode, engine().name))
        forecast = engine().forecast(wave(), 5, samples=3)
        received = pickle.loads(pickle.dumps(forecast))
        np.testing.assert_array_equal(received.samples, forecast.samples)
        self.assertEqual(received.quantiles.keys(), forecast.quantiles.keys())

    def test_forecasts_are_copied_whole(self) -> None:
        for forecast in (
            engine().forecast({"a": wave()}, 5, samples=3)[0],
            engine().forecast(np.stack([wave(), wave()]), 5, multivariate=True),
            engine().forecast(wave(), 3, quantiles=[]),
        ):
            for again in (pickle.loads(pickle.dumps(forecast)), copy.copy(forecast), copy.deepcopy(forecast)):
                self.assertIs(type(again), totocpp.SeriesForecast)
                self.assertEqual(repr(again), repr(forecast))
                self.assertEqual(again.levels, forecast.levels)
                for name in ("mean", "median", "point", "level_values", "samples"):
                    np.testing.assert_array_equal(getattr(again, name), getattr(forecast, name), name)
                    self.assertIs(getattr(again, name), getattr(again, name))


class Pickles(unittest.TestCase):
    """An unpickled engine has its original options; only the receiving process's variable rolls it back."""

    def sent(self, variables: dict[str, str], **arguments: Any) -> bytes:
        with mock.patch.dict(os.environ, variables), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about settings that a rollback ignores
            return pickle.dumps(totocpp.Engine.from_pretrained(**arguments))

    def received(self, pickled: bytes, **variables: str) -> tuple[str, str]:
        with mock.patch.dict(os.environ, variables), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            again = pickle.loads(pickled)
        return again.mode, again.dtype

    def test_a_rollback_is_not_pickled(self) -> None:
        for switch in ({"TOTO_DISABLE_COMPILE": "1"}, {"TOTO_COMPILE": "0"}):
            asked = {**switch, "TOTO_COMPILE_MODE": "reduce-overhead"}
            self.assertEqual(self.received(self.sent(switch)), ("default", "f32"))
            self.assertEqual(self.received(self.sent(asked)), ("reduce-overhead", "f32"))
            self.assertEqual(self.received(self.sent(asked), **switch), ("reference", "f32"))
            self.assertEqual(self.received(self.sent(switch, dtype="bf16")), ("default", "bf16"))
            self.assertEqual(self.received(self.sent({**switch, "TOTO_DTYPE": "int8"})), ("default", "int8"))
            wrong = {**switch, "TOTO_COMPILE_MODE": "fast", "TOTO_DTYPE": "f7", "TOTO_ISA": "mmx"}
            self.assertEqual(self.received(self.sent(wrong)), ("default", "f32"))

    def test_the_receivers_variable_applies_unless_an_argument_set_the_mode(self) -> None:
        pickled = self.sent({"TOTO_COMPILE_MODE": "reduce-overhead"}, dtype="bf16")
        self.assertEqual(self.received(pickled), ("reduce-overhead", "bf16"))
        self.assertEqual(self.received(pickled, TOTO_COMPILE_MODE="max-autotune"), ("reduce-overhead", "bf16"))
        self.assertEqual(self.received(pickled, TOTO_DISABLE_COMPILE="1"), ("reference", "f32"))
        named = self.sent({}, mode="reduce-overhead")
        self.assertEqual(self.received(named, TOTO_DISABLE_COMPILE="1"), ("reduce-overhead", "f32"))

    def test_an_unpickled_pipeline_reports_its_mode(self) -> None:
        with mock.patch.dict(os.environ, {"TOTO_DISABLE_COMPILE": "1"}):
            pickled = pickle.dumps(totocpp.TotoPipeline.from_pretrained(torch_compile=True))
        again = pickle.loads(pickled)
        again.predict(wave(), 1, 2)
        about = again.last_run_metadata
        self.assertEqual((about["torch_compile_requested"], about["torch_compile_mode"]), (True, "default"))

    def test_an_engine_keeps_its_name_and_seed(self) -> None:
        pickled = self.sent({"TOTO_SEED": "7"})
        again = pickle.loads(pickle.dumps(pickle.loads(pickled)))
        self.assertEqual(again.name, "toto-mini")
        np.testing.assert_array_equal(
            again.forecast(wave(), 5, samples=3).samples, engine().forecast(wave(), 5, samples=3, seed=7).samples
        )


class Interrupts(unittest.TestCase):
    def test_ctrl_c_ends_a_long_call(self) -> None:
        timer = _send_interrupt(0.5)
        start = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            engine().forecast([wave()] * 20, 20_000, samples=50, keep_samples=False)
        timer.join()
        self.assertLess(time.monotonic() - start, 60)
        self.assertEqual(engine().forecast(wave(), 3).mean.shape, (3,))  # and the engine still works

    def test_a_custom_signal_handler_decides(self) -> None:
        class Stop(Exception):
            pass

        def stop(*_: object) -> None:
            raise Stop("enough")

        before = signal.signal(signal.SIGINT, stop)
        timer = _send_interrupt(0.3)
        try:
            with self.assertRaisesRegex(Stop, "enough"):
                engine().forecast([wave()] * 20, 20_000, samples=50, keep_samples=False)
        finally:
            timer.join()
            signal.signal(signal.SIGINT, before)

    def test_ctrl_c_while_waiting_for_another_call(self) -> None:
        stop = threading.Event()

        def occupy() -> None:
            while not stop.is_set():
                engine().forecast([wave()] * 8, 1000, samples=32, keep_samples=False)

        busy = threading.Thread(target=occupy)
        busy.start()
        timer = _send_interrupt(0.3)
        with self.assertRaises(KeyboardInterrupt):
            while True:
                engine().forecast(wave(), 3)
        stop.set()
        timer.join()
        busy.join()


class Memory(unittest.TestCase):
    def test_forecasts_and_their_arrays_are_freed(self) -> None:
        """Also if arrays were used: nanobind reports leaks at exit, and memory shows them."""
        code = (
            "import resource, numpy as np, totocpp\n"
            "engine = totocpp.Engine.from_pretrained()\n"
            "session = engine.session(np.arange(50.0))\n"
            "def peak(calls):\n"
            "    for _ in range(calls):\n"
            "        for f in (engine.forecast(np.arange(50.0), 20, samples=5000), session.forecast(20, samples=5000)):\n"
            "            f.mean, f.samples, f.quantiles, f.std\n"
            "    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "before = peak(10)\n"
            "print(peak(100) - before)\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        self.assertLess(int(done.stdout), 20_000)  # kB; all of it would be 80,000


class Import(unittest.TestCase):
    def test_imports_only_numpy(self) -> None:
        code = (
            "import sys, totocpp; totocpp.Engine.from_pretrained().forecast([1.0, 2.0, 3.0], 2);"
            "print([m for m in ('torch', 'pandas', 'ray', 'gluonts', 'huggingface_hub') if m in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.strip(), "[]")


if __name__ == "__main__":
    unittest.main()
