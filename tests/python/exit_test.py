"""Calls that are running when a signal handler uses the engine, or when the interpreter exits."""

from __future__ import annotations

import subprocess
import sys
import unittest

LONG = "engine.forecast(np.sin(np.arange(2000) / 7), 3000, samples=256, keep_samples=False)"


def run(code: str) -> subprocess.CompletedProcess[str]:
    start = "import signal, sys, threading, time, numpy as np, totocpp\n"
    start += "engine = totocpp.Engine.from_pretrained(mode='reference')\n"
    return subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True, timeout=500)


class Exit(unittest.TestCase):
    def ends_well(self, code: str, printed: str) -> None:
        done = run(code)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.split(), printed.split())

    def test_a_daemon_thread_that_computes(self) -> None:
        for work in (LONG, "engine.verify()", "[engine.forecast([1.0, 2.0], 64, samples=8) for _ in range(10**6)]"):
            with self.subTest(work):
                self.ends_well(
                    f"threading.Thread(target=lambda: {work}, daemon=True).start()\ntime.sleep(0.5)\nprint('end')\n", "end"
                )

    def test_threads_that_wait_and_that_call_again(self) -> None:
        self.ends_well(
            "def ask():\n"
            "    while True:\n"
            "        try:\n"
            f"            {LONG}\n"
            "        except BaseException as error:\n"
            "            assert isinstance(error, SystemExit), error\n"
            "for _ in range(3):\n"
            "    threading.Thread(target=ask, daemon=True).start()\n"
            "time.sleep(0.5)\nprint('end')\n",
            "end",
        )

    def test_the_main_thread_can_forecast_at_exit(self) -> None:
        self.ends_well(
            "import atexit\n"
            "from totocpp import _native\n"
            "atexit.unregister(_native.end_calls)\n"
            "atexit.register(lambda: print(len(engine.forecast([1.0, 2.0], 3).mean)))\n"
            "atexit.register(_native.end_calls)\n",  # the last one registered runs first
            "3",
        )

    def test_a_child_does_not_wait_for_its_parents_calls(self) -> None:
        self.ends_well(
            f"import os\nthreading.Thread(target=lambda: {LONG}, daemon=True).start()\ntime.sleep(0.5)\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    sys.exit()\n"
            "print(os.waitpid(child, 0)[1])\n",
            "0",
        )


class Handlers(unittest.TestCase):
    def test_counters_are_readable_and_calls_rejected(self) -> None:
        """Both hung: the thread waited for itself."""
        done = run(
            "def handler(*_):\n"
            "    print(engine.timings['load'] > 0, engine.plans, engine.replans, engine.kv_cache_name, engine.mode)\n"
            "    try:\n"
            "        engine.forecast([1.0, 2.0], 3)\n"
            "    except RuntimeError as error:\n"
            "        print(error)\n"
            "        raise InterruptedError('enough')\n"
            "signal.signal(signal.SIGALRM, handler)\n"
            "signal.alarm(1)\n"
            "try:\n"
            f"    {LONG}\n"
            "except InterruptedError as error:\n"
            "    print(error, len(engine.forecast([1.0, 2.0], 3).mean))\n"
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        counters, sentence, end = done.stdout.splitlines()
        self.assertEqual(counters, "True 0 0 ReferenceKVCache reference")
        self.assertIn("called from a handler of a running call", sentence)
        self.assertEqual(end, "enough 3")


class Subinterpreters(unittest.TestCase):
    def test_importing_it_there_does_not_break_this_one(self) -> None:
        done = run(
            "import _xxsubinterpreters as interpreters\n"
            "other = interpreters.create()\n"
            "try:\n"
            "    interpreters.run_string(other, f'import sys; sys.path[:] = {sys.path!r}; import totocpp')\n"
            "except Exception as error:\n"
            "    pass  # NumPy's refusal\n"
            "interpreters.destroy(other)\n"
            "print(len(engine.forecast([1.0, 2.0], 3).mean))\n"
        )
        if "No module named '_xxsubinterpreters'" in done.stderr:
            self.skipTest("needs _xxsubinterpreters")
        self.assertEqual((done.returncode, done.stdout), (0, "3\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
