"""The optimizer of Toto 2.0's training: NorMuon for the hidden matrices, Adam for everything else.

As its report names them (NorMuon: arXiv 2510.05491), on unit-scaled weights: every weight is of
order one, so a step of size `lr` changes a matrix by about that part of itself, whatever its shape.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

# Polar Express (arXiv 2505.16932): polynomials that take the singular values to one.
POLAR = (
    (8.28721201814563, -23.595886519098837, 17.300387312530933),
    (4.107059111542203, -2.9478499167379106, 0.5448431082926601),
    (3.9486908534822946, -2.908902115962949, 0.5518191394370137),
    (3.3184196573706015, -2.488488024314874, 0.51004894012372),
    (2.300652019954817, -1.6689039845747493, 0.4188073119525673),
)


def orthogonalized(matrices: Tensor, dtype: torch.dtype) -> Tensor:
    """[count, m, n]: each one's singular values become about one."""
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = (matrices.mT if tall else matrices).to(dtype)
    x = x / (x.norm(dim=(-2, -1), keepdim=True) * 1.01 + 1e-7)
    for a, b, c in POLAR:
        square = x @ x.mT
        x = a * x + (b * square + c * (square @ square)) @ x
    return (x.mT if tall else x).float()


class NorMuon(torch.optim.Optimizer):
    """Momentum, made orthogonal, every row brought to the same size; weight decay where it helps.

    A group holds matrices of one shape, which are handled together.
    """

    def __init__(self, groups: list[dict[str, Any]], lr: float, dtype: torch.dtype) -> None:
        super().__init__(groups, {"lr": lr, "momentum": 0.95, "beta2": 0.95, "weight_decay": 0.0})
        self.dtype = dtype

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            parameters = group["params"]
            gradient = torch.stack([p.grad for p in parameters])
            state = self.state[parameters[0]]
            if not state:
                state["momentum"] = torch.zeros_like(gradient)
                state["rows"] = torch.zeros_like(gradient[..., :1])
            momentum, rows = state["momentum"], state["rows"]
            momentum.lerp_(gradient, 1.0 - group["momentum"])
            update = orthogonalized(gradient.lerp_(momentum, group["momentum"]), self.dtype)
            rows.lerp_(update.square().mean(-1, keepdim=True), 1.0 - group["beta2"])
            update.mul_(rows.add(1e-12).rsqrt())
            size = update.square().mean((-2, -1), keepdim=True).sqrt().clamp_min(1e-12)
            update.mul_(group["lr"] / size)
            decay = group["lr"] * group["weight_decay"]
            for parameter, change in zip(parameters, update, strict=True):
                if decay:  # only where the step goes towards zero already
                    parameter.sub_(parameter * (parameter * change > 0.0), alpha=decay)
                parameter.sub_(change)


def split(network: torch.nn.Module) -> tuple[list[list[Tensor]], dict[str, list[Tensor]]]:
    """Hidden matrices, grouped by shape; the others by kind: input, output, vector."""
    hidden: dict[torch.Size, list[Tensor]] = {}
    others: dict[str, list[Tensor]] = {"input": [], "output": [], "vector": []}
    for name, parameter in network.named_parameters():
        if parameter.ndim < 2:
            others["vector"].append(parameter)
        elif name in ("patch_proj.linear1.weight", "patch_proj.skip_proj.weight"):
            others["input"].append(parameter)
        elif "output_head" in name and "linear1" not in name:
            others["output"].append(parameter)
        else:
            hidden.setdefault(parameter.shape, []).append(parameter)
    return list(hidden.values()), others


class Optimizer:
    """Both optimizers; `rate` is the part of a hidden matrix that a step changes.

    Adam's rates follow from u-muP: readouts are divided by their fan-in, not by its root, so they
    must move faster by that root; biases are divided by the root, too.
    """

    def __init__(self, network: torch.nn.Module, weight_decay: float, dtype: torch.dtype) -> None:
        hidden, others = split(network)
        groups = [{"params": params, "weight_decay": weight_decay} for params in hidden]
        self.muon = NorMuon(groups, 0.0, dtype)
        self.factors = {"input": 1.0, "output": 12.0, "vector": 4.0}
        self.adam = torch.optim.AdamW(
            [{"params": others[kind], "kind": kind} for kind in self.factors],
            lr=0.0,
            betas=(0.9, 0.95),
            eps=1e-10,
            weight_decay=0.0,
            fused=True,
        )

    def step(self, rate: float) -> None:
        for group in self.muon.param_groups:
            group["lr"] = rate
        for group in self.adam.param_groups:
            group["lr"] = rate * self.factors[group["kind"]]
        self.muon.step()
        self.adam.step()

    def zero_grad(self) -> None:
        self.muon.zero_grad(set_to_none=True)
        self.adam.zero_grad(set_to_none=True)

    def state_dict(self) -> dict[str, Any]:
        return {"muon": self.muon.state_dict(), "adam": self.adam.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.muon.load_state_dict(state["muon"])
        self.adam.load_state_dict(state["adam"])
