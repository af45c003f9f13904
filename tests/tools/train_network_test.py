"""The training's forward pass against the reference's modules.

`make train-test` runs it. It is not part of ctest: PyTorch is not needed to build or test the product.
"""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import scipy.stats
import torch
from toto.model.losses import CombinedLoss

import train_network as network

SMALL = network.CONFIG | {
    "patch_size": 8,
    "stride": 8,
    "embed_dim": 32,
    "num_layers": 4,
    "num_heads": 4,
    "mlp_hidden_dim": 48,
    "spacewise_every_n_layers": 2,
    "output_distribution_kwargs": {"k_components": 3},
}


def inputs(variates: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(variates)
    series = torch.randn(3, variates, 56, generator=generator, dtype=torch.float64).cumsum(-1) * 3
    mask = torch.ones_like(series, dtype=torch.bool)
    mask[0, :, :5] = False
    ids = torch.tensor([[0] * variates, list(range(variates)), [v // 2 for v in range(variates)]])
    return series * mask, mask, ids


class FastForward(unittest.TestCase):
    def test_loss_and_gradients_equal_the_references(self) -> None:
        for variates in (1, 4):
            with self.subTest(variates=variates):
                series, mask, ids = inputs(variates)
                model = network.build(SMALL, seed=3).double()
                ours = network.next_patch_loss(network.Forward(model), series, mask, ids)
                ours.total.backward()
                gradients = [p.grad.clone() for p in model.parameters()]
                model.zero_grad()

                past = slice(None, -8)
                spread = ids[..., None].expand_as(series)
                output = model(series[..., past], mask[..., past], spread[..., past])
                target = (series[..., 8:] - output.loc) / output.scale
                each = CombinedLoss()(output.distribution, target) * mask[..., 8:]
                reference = each.sum() / mask[..., 8:].sum()
                reference.backward()

                self.assertAlmostEqual(ours.total.item(), reference.item(), delta=1e-6)
                for (name, p), gradient in zip(model.named_parameters(), gradients, strict=True):
                    torch.testing.assert_close(
                        gradient, p.grad, rtol=1e-4, atol=1e-6, msg=lambda m, n=name: f"{n}: {m}"
                    )

    def test_cached_decoding_equals_the_references(self) -> None:
        series, mask, ids = inputs(4)
        model = network.build(SMALL, seed=5).double().eval()
        spread = ids[..., None].expand_as(series)
        cache = model.allocate_kv_cache(3, 4, 64, series.device, series.dtype)
        ours: network.Cache = [None] * SMALL["num_layers"]
        forward = network.Forward(model)
        with torch.no_grad():
            for end, past in ((48, 0), (56, 6)):
                now = slice(None, end)
                expected = model(series[..., now], mask[..., now], spread[..., now], cache, 48)
                found = forward(
                    series[..., now], mask[..., now], ids, prefix=48, cache=ours, past_tokens=past
                )
                mean = found.head.mixture().mean().flatten(2)
                torch.testing.assert_close(mean, expected.distribution.mean, rtol=1e-5, atol=1e-6)

    def test_samples_follow_the_mixture(self) -> None:
        one = network.Mixture(
            torch.tensor([4.0, 9.0]),
            torch.tensor([-2.0, 3.0]),
            torch.tensor([0.5, 1.0]),
            torch.tensor([0.25, 0.75]).log(),
        )
        many = network.Mixture(*(p[:, None].expand(2, 200_000) for p in vars(one).values()))
        samples = many.sample(torch.Generator().manual_seed(0))
        self.assertAlmostEqual(samples.mean().item(), 1.75, delta=0.02)
        parts = (
            weight * scipy.stats.t.cdf(0.0, df, loc, scale)
            for df, loc, scale, weight in ((4.0, -2.0, 0.5, 0.25), (9.0, 3.0, 1.0, 0.75))
        )
        self.assertAlmostEqual((samples < 0.0).float().mean().item(), sum(parts), delta=0.005)


if __name__ == "__main__":
    unittest.main()
