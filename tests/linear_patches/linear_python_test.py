#!/usr/bin/env python3
"""The linear test architecture through the Python package, whose module has one more row in its table of architectures.

tools/check_python.sh runs it with that package and tests/python on the path.
"""

import unittest
import warnings
from pathlib import Path

import numpy as np
from support import read_safetensors

import totocpp

GOLDEN = Path(__file__).parent / "golden" / "linear"
LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)


class LinearPatches(unittest.TestCase):
    def setUp(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the weights are random
            self.engine = totocpp.Engine.from_pretrained(GOLDEN, cache=False)

    def test_describes_itself(self) -> None:
        self.assertEqual(self.engine.info["architecture"], "linear_patches")
        self.assertEqual(self.engine.info["block_patches"], 2)
        self.assertEqual(self.engine.patch_size, 4)

    def test_forecasts_as_the_golden(self) -> None:
        case, about = read_safetensors(GOLDEN / "case.safetensors")
        history = np.where(case["target_mask"] == 1, case["target"], np.nan).reshape(-1, case["target"].shape[-1])
        expected = case["f64.quantiles"].reshape(len(LEVELS), len(history), -1)
        answers = self.engine.forecast(history, int(about["horizon"]), quantiles=LEVELS, missing="mask")
        for i, answer in enumerate(answers):
            for j, level in enumerate(LEVELS):
                np.testing.assert_allclose(answer.quantile(level), expected[j, i], rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(answer.mean, answer.median)  # of a quantile model the mean is the median

    def test_session_answers_like_the_engine(self) -> None:
        values = np.sin(np.arange(60, dtype=np.float32))
        session = self.engine.session(values[:40])
        for end in range(41, 61):
            session.append(values[end - 1 : end])
            expected = self.engine.forecast(values[:end], 19)
            np.testing.assert_array_equal(session.forecast(19).mean, expected.mean)

    def test_verifies_its_golden_in_every_mode(self) -> None:
        modes = ["reference", "default", "reduce-overhead", "max-autotune"]
        report = self.engine.verify(golden=GOLDEN, golden_only=True, modes=modes)
        self.assertTrue(report["passed"], report)
        names = {check["name"] for check in report["checks"]}
        for mode in modes:
            self.assertIn(f"golden/linear/{mode}/raw", names)


if __name__ == "__main__":
    unittest.main()
