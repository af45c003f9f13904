"""The network without forecaster: scaled patches in, the next patch's distribution parameters out.

This part runs as one static graph in ONNX Runtime and OpenVINO. It ends with the last patch, so that no
contender computes the head for unused positions, as the reference itself does.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F

OUTPUTS = ("df", "loc", "scale", "logits")


class NetworkAlone(torch.nn.Module):
    """The reference's own modules, called in its order (toto/model/backbone.py: backbone)."""

    def __init__(self, backbone: torch.nn.Module) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, scaled: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """[batch, context] of scaled values to four times [batch, patch, component]."""
        model, batch = self.backbone, scaled.shape[0]
        patch = model.patch_embed.patch_size
        patches = scaled.reshape(batch, 1, -1, patch)  # one variate
        ids = torch.zeros(patches.shape[:3])
        hidden = model.transformer(model.patch_embed.projection(patches), ids)
        steps = model.unembed(hidden[:, 0, -1]).reshape(batch, patch, model.embed_dim)
        head = model.output_distribution
        smallest = torch.finfo(scaled.dtype).eps
        return (
            2.0 + F.softplus(head.df(steps)).clamp_min(smallest),
            head.loc_proj(steps),
            F.softplus(head.scale_proj(steps)).clamp_min(smallest),
            head.mixture_weights(steps),
        )


def export_onnx(network: NetworkAlone, batch: int, context: int, path: Path) -> None:
    """One file per batch size: both runtimes optimise static shapes best.

    Traced: the newer exporter gives the same graph after the runtimes' own constant folding, in
    minutes instead of seconds.
    """
    whole = path.with_suffix(".part")
    torch.onnx.export(
        network,
        (torch.zeros(batch, context),),
        whole,
        input_names=["scaled"],
        output_names=list(OUTPUTS),
        opset_version=17,
        dynamo=False,
    )
    whole.rename(path)
