"""Threads, forks, signals, pickles: an engine in a real Python process."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import unittest
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

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

    def test_two_engines_at_once(self) -> None:
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
        if child == 0:  # the lock of the parent's engine is held, by nobody here
            same = np.array_equal(_samples(), expected)
            os._exit(0 if same else 1)
        _, status = os.waitpid(child, 0)
        busy.join()
        self.assertEqual(status, 0)

    def test_a_session_says_that_it_stays_behind(self) -> None:
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
        copy = pickle.loads(pickle.dumps(forecast))
        np.testing.assert_array_equal(copy.samples, forecast.samples)
        self.assertEqual(copy.quantiles.keys(), forecast.quantiles.keys())


class Interrupts(unittest.TestCase):
    def test_ctrl_c_ends_a_long_call(self) -> None:
        timer = _send_interrupt(0.5)
        start = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            engine().forecast([wave()] * 20, 20_000, samples=50, keep_samples=False)
        timer.join()
        self.assertLess(time.monotonic() - start, 30)
        self.assertEqual(engine().forecast(wave(), 3).mean.shape, (3,))  # and the engine goes on

    def test_a_handler_of_ones_own_decides(self) -> None:
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

    def test_ctrl_c_while_waiting_for_ones_turn(self) -> None:
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
    def test_forecasts_and_their_arrays_go(self) -> None:
        """Also if arrays were taken: nanobind tells at the end what is left, and memory shows it."""
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
    def test_nothing_but_numpy_is_imported(self) -> None:
        code = (
            "import sys, totocpp; totocpp.Engine.from_pretrained().forecast([1.0, 2.0, 3.0], 2);"
            "print([m for m in ('torch', 'pandas', 'ray', 'gluonts', 'huggingface_hub') if m in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.strip(), "[]")


if __name__ == "__main__":
    unittest.main()
