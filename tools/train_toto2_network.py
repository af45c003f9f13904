"""Toto 2.0 for training: toto-2's modules hold the weights, a plain forward pass computes with them.

The reference multiplies every weight by its unit-scaling factor in a separate pass and keeps
separate factors for gradients. Here the factor is multiplied into the weight once per step and
gradients are the plain ones: the optimizers below do not depend on their size. The network itself is
the reference's (tests/tools/train_toto2_test.py compares outputs), and so is the exported file.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from toto2.configuration import Toto2ModelConfig
from toto2.model import Toto2Model

Config = dict[str, Any]

PATCH = 32
LEVELS = tuple(level / 10.0 for level in range(1, 10))
SILU_GAIN = math.exp(0.8 * math.log(math.sqrt(2.0 / (1.0 - 1.0 / math.pi))) + 0.2 * math.log(2.0))

# 3,872,512 parameters: 7.8 MB in half precision. Deeper and narrower than Datadog's 4m.
CONFIG: Config = {
    "patch_size": PATCH,
    "d_model": 192,
    "num_heads": 3,
    "num_layers": 7,
    "layer_group_size": 7,
    "num_variate_layers_per_group": 1,
    "variate_layer_first": False,
    "dropout_p": 0.0,
    "norm_eps": 1e-4,
    "attn_bias": True,
    "mlp_bias": False,
    "num_output_patches": 1,
    "pre_norm": True,
    "d_ff": 544,
    "qk_dim": 64,
    "v_dim": 64,
    "num_groups": 3,
    "heads_per_group": 1,
    "residual_mult": 0.75,
    "residual_attn_ratio": 5.136215466577748,
    "qk_norm": False,
    "norm_include_weight": False,
    "qk_norm_include_weight": False,
    "per_dim_scale": True,
    "use_xpos": True,
}
LARGEST = 4_000_000  # parameters


def build(config: Config, seed: int) -> Toto2Model:
    """The reference's network with its own initial weights, drawn with this seed.

    But for one bias: a patch of a constant series is all zeros, and with biases of zero so is all
    that follows; every norm then multiplies its gradient by 1 / sqrt(norm_eps) = 100.
    """
    torch.manual_seed(seed)
    model = Toto2Model(Toto2ModelConfig(**config))
    torch.nn.init.normal_(model.patch_proj.skip_proj.bias, std=4.0)
    for name in ("qk_norm", "norm_include_weight", "mlp_bias"):
        if config[name]:
            raise ValueError(f"{name} is true, but only networks without it can be trained")
    if config["num_groups"] != config["num_heads"] or config["num_output_patches"] != 1:
        raise ValueError("expected num_groups = num_heads and num_output_patches = 1")
    count = sum(p.numel() for p in model.parameters())
    if count > LARGEST:
        raise ValueError(f"the network has {count} parameters, at most {LARGEST} are allowed")
    return model


def full_config(model: Toto2Model) -> Config:
    return dataclasses.asdict(model.config)


def _wide(x: Tensor) -> Tensor:
    """Half precision is for products and for what is kept; all else is computed in float32."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _norm_forward(x: Tensor, eps: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    inverse = (x.square().mean(-1, keepdim=True) + eps).rsqrt()
    return (x * inverse).to(dtype), inverse


def _norm_backward(gradient: Tensor, y: Tensor, inverse: Tensor) -> Tensor:
    g, y = _wide(gradient), _wide(y)
    return (g - y * (g * y).mean(-1, keepdim=True)) * inverse


def _gate_forward(both: Tensor) -> Tensor:
    a, b = _wide(both).chunk(2, -1)
    return (a * F.silu(b)).to(both.dtype)


def _gate_backward(gradient: Tensor, both: Tensor) -> Tensor:
    a, b = _wide(both).chunk(2, -1)
    g, share = _wide(gradient), torch.sigmoid(b)
    by_b = g * a * share * (1.0 + b * (1.0 - share))
    return torch.cat([g * b * share, by_b], -1).to(both.dtype)


def _swapped(x: Tensor) -> Tensor:
    """The first two quarters of the last axis change places: the members of the turned pairs."""
    quarter = x.shape[-1] // 4
    return torch.cat([x[..., quarter : 2 * quarter], x[..., :quarter], x[..., 2 * quarter :]], -1)


def _turn_forward(qkv: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    both = _wide(qkv[:, :, :2])
    both = (both * cos + _swapped(both) * sin).to(qkv.dtype)
    return both.permute(2, 0, 3, 1, 4).contiguous(), qkv[:, :, 2].transpose(1, 2).contiguous()


def _turn_backward(by_both: Tensor, by_v: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    both = _wide(by_both.permute(1, 3, 0, 2, 4))
    both = (both * cos + _swapped(both * sin)).to(by_v.dtype)
    return torch.cat([both, by_v.transpose(1, 2).unsqueeze(2)], 2)


class Kernels:
    """The parts between the products. `compile()` makes each of them one pass over memory."""

    norm_forward = staticmethod(_norm_forward)
    norm_backward = staticmethod(_norm_backward)
    gate_forward = staticmethod(_gate_forward)
    gate_backward = staticmethod(_gate_backward)
    turn_forward = staticmethod(_turn_forward)
    turn_backward = staticmethod(_turn_backward)

    @classmethod
    def compile(cls) -> None:
        """Needs a C++ compiler and about a minute; a step then takes about two thirds of its time."""
        torch._dynamo.config.cache_size_limit = 64
        for name in [name for name in vars(cls) if name.endswith(("_forward", "_backward"))]:
            setattr(cls, name, staticmethod(torch.compile(getattr(cls, name), dynamic=True)))


class _Norm(torch.autograd.Function):
    """x / sqrt(mean(x^2) + eps) over the last axis, given in `dtype`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, eps: float, dtype: torch.dtype) -> Tensor:
        y, inverse = Kernels.norm_forward(x, eps, dtype)
        ctx.save_for_backward(y, inverse)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return Kernels.norm_backward(gradient, *ctx.saved_tensors), None, None


class _Gate(torch.autograd.Function):
    """a * silu(b) of the halves a, b of the last axis."""

    @staticmethod
    def forward(ctx: Any, both: Tensor) -> Tensor:
        ctx.save_for_backward(both)
        return Kernels.gate_forward(both)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return Kernels.gate_backward(gradient, *ctx.saved_tensors)


class _Turn(torch.autograd.Function):
    """[row, token, (q, k, v), head, dim] to q and k [2, row, head, token, dim], turned, and v.

    cos and sin are [token, 2, 1, dim]. The first and the second quarter of a head form the pairs, the
    second half stays as it is.
    """

    @staticmethod
    def forward(ctx: Any, qkv: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(cos, sin)
        return Kernels.turn_forward(qkv, cos, sin)

    @staticmethod
    def backward(ctx: Any, by_both: Tensor, by_v: Tensor) -> tuple[Tensor, None, None]:
        return Kernels.turn_backward(by_both, by_v.contiguous(), *ctx.saved_tensors), None, None


def _tables(tokens: int, dim: int, xpos: bool) -> tuple[Tensor, Tensor]:
    """What `_Turn` multiplies by, [token, 2, 1, dim], with xPos' growth, for q and for k."""
    width = dim // 2
    index = torch.arange(width // 2, dtype=torch.float64)
    position = torch.arange(tokens, dtype=torch.float64)
    angle = torch.outer(position, 10000.0 ** (-2.0 * index / width))
    base = (2.0 * index + 0.4 * width) / (1.4 * width)
    growth = base ** ((position - tokens // 2) / 256.0)[:, None]
    growth = growth if xpos else torch.ones_like(growth)
    both = torch.stack([growth, 1.0 / growth], 1)
    cos, sin = angle.cos()[:, None] * both, angle.sin()[:, None] * both
    rest = torch.ones(tokens, 2, dim - width, dtype=torch.float64)
    cos, sin = torch.cat([cos, cos, rest], -1), torch.cat([-sin, sin, 0.0 * rest], -1)
    return cos[:, :, None], sin[:, :, None]


class Forward(torch.nn.Module):
    """The network's outputs for prepared patches.

    The parameters are those of `network`; `dtype` is the precision of products and attention, the
    stream between the layers is float32 (float64 for a float64 network).
    """

    def __init__(self, network: Toto2Model, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.network, self.dtype = network, dtype
        config = network.config
        self.heads, self.head_dim, self.eps = config.num_heads, config.qk_dim, config.norm_eps
        self.taus = [(float(x.attn_tau), float(x.mlp_tau)) for x in network.transformer.layers]
        self.is_variate = [
            network.transformer._if_variate_layer(i) for i in range(config.num_layers)
        ]
        # Pairs of neighbours become two halves, which are turned without shuffling every activation.
        order = torch.arange(self.head_dim)
        turned = order[: self.head_dim // 2].unflatten(0, (-1, 2)).T.flatten()
        self.order = torch.cat([turned, order[self.head_dim // 2 :]])
        self._kept: dict[int, tuple[Tensor, Tensor]] = {}

    def tables(self, tokens: int) -> tuple[Tensor, Tensor]:
        if tokens not in self._kept:
            cos, sin = _tables(tokens, self.head_dim, self.network.config.use_xpos)
            wide = torch.promote_types(self.dtype, torch.float32)
            self._kept[tokens] = cos.to(wide), sin.to(wide)
        return self._kept[tokens]

    def _linear(self, layer: torch.nn.Linear, x: Tensor, factor: float, power: float = 0.5) -> Tensor:
        factor = factor * layer.in_features**-power
        weight = (layer.weight * factor).to(self.dtype)
        bias = None if layer.bias is None else (layer.bias * factor).to(self.dtype)
        return F.linear(x, weight, bias)

    def _mlp(self, part: Any, x: Tensor, power: float) -> Tensor:
        """A residual MLP, embedding or head; `power`: 1 for a readout, else one half."""
        hidden = F.silu(self._linear(part.linear1, x, 1.0)) * SILU_GAIN
        main = self._linear(part.linear2, hidden, math.sqrt(0.5), power)
        return main + self._linear(part.skip_proj, x, math.sqrt(0.5), power)

    def _norm(self, x: Tensor, factor: float) -> Tensor:
        """`factor`: what the stream has grown by, because the residual sum is not divided."""
        return _Norm.apply(x, self.eps * factor * factor, self.dtype)

    def _qkv(self, attention: Any, x: Tensor, turned: bool) -> Tensor:
        """[row, token, (q, k, v), head, dim]; gains and the scores' factor are in the weights of q."""
        layer = attention.in_proj
        shape = (3, self.heads, self.head_dim)
        gain = x.new_ones(3, self.head_dim, dtype=layer.weight.dtype) * layer.in_features**-0.5
        if self.network.config.per_dim_scale:
            own = F.softplus(attention._pds.per_dim_scale) / math.log(2.0)
            gain = torch.stack([gain[0] * own, gain[1], gain[2]])
        gain = torch.cat([gain[:1] / self.head_dim, gain[1:]])  # of the scores
        weight = layer.weight.unflatten(0, shape) * gain[:, None, :, None]
        bias = layer.bias.unflatten(0, shape) * gain[:, None]
        if turned:
            weight = torch.cat([weight[:2, :, self.order], weight[2:]])
            bias = torch.cat([bias[:2, :, self.order], bias[2:]])
        qkv = F.linear(x, weight.flatten(0, 2).to(self.dtype), bias.flatten().to(self.dtype))
        return qkv.unflatten(-1, shape)

    def _attend(self, attention: Any, x: Tensor, time: bool, mask: Tensor) -> Tensor:
        """x: [row, token, d]; mask: 0 where a query may look at a key, else -inf, [row or 1, 1, q, k]."""
        qkv = self._qkv(attention, x, time)
        if time:
            both, v = _Turn.apply(qkv, *self.tables(x.shape[1]))
            q, k = both.unbind(0)
        else:
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-1, -2) + mask
        return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)

    def forward(self, patches: Tensor, groups: Tensor | None = None) -> Tensor:
        """
        patches: [batch, variate, token, 2 * patch], values then flags, as the reference embeds them.
        groups: [batch, variate, token], tokens see only their own number; None: all see all.
        Returns what the head says of the next patch: [batch, variate, token, patch, level].
        """
        network = self.network
        batch, variates, tokens, _ = patches.shape
        x = self._mlp(network.patch_proj, patches.to(self.dtype), 0.5)
        x = x.to(patches.dtype).flatten(0, 1)
        time_mask = torch.ones(1, tokens, tokens, dtype=torch.bool).tril()
        variate_mask = torch.ones(1, variates, variates, dtype=torch.bool)
        if groups is not None:
            flat = groups.flatten(0, 1)
            time_mask = (flat[:, :, None] == flat[:, None, :]) & time_mask
            across = groups.transpose(1, 2).flatten(0, 1)
            variate_mask = across[:, :, None] == across[:, None, :]
        zero, never = torch.zeros((), dtype=self.dtype), torch.tensor(-math.inf, dtype=self.dtype)
        time_mask, variate_mask = (
            torch.where(mask, zero, never)[:, None] for mask in (time_mask, variate_mask)
        )
        grown = 1.0
        for layer, variate, (attention_tau, mlp_tau) in zip(
            network.transformer.layers, self.is_variate, self.taus, strict=True
        ):
            h = self._norm(x, grown)
            if not variate:
                y = self._attend(layer.attn, h, True, time_mask)
            elif variates == 1:  # attention to itself alone passes the value on
                low = 2 * self.heads * self.head_dim
                factor = layer.attn.in_proj.in_features**-0.5
                weight = (layer.attn.in_proj.weight[low:] * factor).to(self.dtype)
                y = F.linear(h, weight, (layer.attn.in_proj.bias[low:] * factor).to(self.dtype))
            else:
                h = h.unflatten(0, (batch, variates)).transpose(1, 2).flatten(0, 1)
                y = self._attend(layer.attn, h, False, variate_mask)
                y = y.unflatten(0, (batch, tokens)).transpose(1, 2).flatten(0, 1)
            x = x + self._linear(layer.attn.out_proj, y, grown * attention_tau)
            grown *= math.sqrt(1.0 + attention_tau**2)
            hidden = _Gate.apply(self._linear(layer.ffn.fc1, self._norm(x, grown), 1.0))
            x = x + self._linear(layer.ffn.fc2, hidden, grown * mlp_tau)
            grown *= math.sqrt(1.0 + mlp_tau**2)
        head = network.output_head.param_projection.proj
        raw = self._mlp(head, self._norm(x, grown), 1.0).to(patches.dtype)
        shape = (network.config.patch_size, len(LEVELS))
        return raw.unflatten(-1, shape).unflatten(0, (batch, variates))


def pinball(raw: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Quantile loss over the nine levels, twice the mean, in the network's own units.

    raw: [..., step, level]; target, weight: [..., step]; weights sum to one.
    """
    levels = torch.tensor(LEVELS, dtype=raw.dtype)
    error = target.unsqueeze(-1) - raw
    loss = torch.maximum(levels * error, (levels - 1.0) * error).mean(-1)
    return 2.0 * (loss * weight).sum()
