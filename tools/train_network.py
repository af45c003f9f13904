"""The network that training updates, its fast forward pass and its loss.

The modules are the reference's own (`toto.model.backbone: TotoBackbone`), so a checkpoint is one of
theirs. Only the order of the arithmetic differs, for speed on a CPU:

- the reference unembeds every token into patch x embed values and then applies four small heads to
  each step. Both are linear, so their product is formed once per batch and applied to the token;
- rows of the query and key weights are permuted once per batch in place of every activation, in a
  way that also turns rotary's interleaved pairs into two halves;
- a space-wise layer over a single variate attends to itself alone: no scores are needed.

tests/tools/train_network_test.py proves it equal to the reference, output and gradient.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # xFormers is absent, and not wanted here
    from toto.model.attention import AttentionAxis, BaseMultiheadAttention
    from toto.model.backbone import TotoBackbone
    from toto.model.transformer import TransformerLayer

Config = dict[str, Any]

# 24 points a patch: a day of hours, two years of months. The seasons of hourly and monthly series
# then fall on the same places of every patch, and up to 24 steps ahead come out of one patch.
CONFIG: Config = {
    "patch_size": 24,
    "stride": 24,
    "embed_dim": 192,
    "num_layers": 6,
    "num_heads": 6,
    "mlp_hidden_dim": 384,
    "dropout": 0.0,
    "spacewise_every_n_layers": 6,
    "spacewise_first": False,
    "scaler_cls": "<class 'model.scaler.CausalPatchStdMeanScaler'>",
    "output_distribution_classes": ["<class 'model.distribution.MixtureOfStudentTsOutput'>"],
    "output_distribution_kwargs": {"k_components": 8},
    "stabilize_with_global": True,
    "scale_factor_exponent": 10.0,
    "use_memory_efficient_attention": False,
}

# toto.model.losses: CombinedLoss, its defaults.
LAMBDA_NLL = 0.575
ROBUST_DELTA = 0.1


def build(config: Config, seed: int) -> TotoBackbone:
    """A fresh network. Branches start small, so that depth does not slow the first steps."""
    torch.manual_seed(seed)
    network = TotoBackbone(**(config | {"use_memory_efficient_attention": False}))
    branch = 1.0 / math.sqrt(2 * config["num_layers"])
    with torch.no_grad():
        for layer in network.transformer.layers:
            layer.attention.wO.weight.mul_(branch)
            layer.mlp[2].weight.mul_(branch)
        head = network.output_distribution
        # Components start apart from each other: equal ones would get equal gradients.
        head.loc_proj.bias.copy_(torch.linspace(-1.0, 1.0, head.k_components))
    return network


@dataclass
class Mixture:
    """Parameters of the Student-T mixtures, each [..., component, step of the patch]."""

    df: Tensor
    loc: Tensor
    scale: Tensor
    log_weight: Tensor

    def mean(self) -> Tensor:
        return (self.log_weight.exp() * self.loc).sum(-2)

    def sample(self, generator: torch.Generator) -> Tensor:
        """One draw for every step; components by the inverse of their cumulative weights."""
        shape = self.loc.shape[:-2] + (1, self.loc.shape[-1])
        uniform = torch.rand(shape, generator=generator)
        chosen = (self.log_weight.exp().cumsum(-2) < uniform).sum(-2, keepdim=True)
        chosen = chosen.clamp_max(self.loc.shape[-2] - 1)
        df, loc, scale = (p.gather(-2, chosen).squeeze(-2) for p in (self.df, self.loc, self.scale))
        normal = torch.randn(df.shape, generator=generator)
        chi2 = 2.0 * torch._standard_gamma(0.5 * df, generator=generator)
        return loc + scale * normal * torch.rsqrt(chi2 / df)


@dataclass
class Head:
    """What the four heads say before any constraint, each [..., component, step of the patch]."""

    df: Tensor
    loc: Tensor
    scale: Tensor
    logit: Tensor

    def mixture(self) -> Mixture:
        eps = torch.finfo(self.df.dtype).eps
        return Mixture(
            2.0 + F.softplus(self.df).clamp_min(eps),
            self.loc,
            F.softplus(self.scale).clamp_min(eps),
            F.log_softmax(self.logit, dim=-2),
        )


@dataclass
class Output:
    head: Head
    loc: Tensor  # [batch, variate, token]: mean and scale known at the end of each patch
    scale: Tensor


class Rotary:
    """Rotary angles with the xPos scale folded in, for heads whose even dimensions come first."""

    def __init__(self, head_dim: int, scale_base: float = 512.0, theta: float = 10000.0) -> None:
        half = torch.arange(0, head_dim, 2, dtype=torch.float64)
        self.frequency = theta ** (-half / head_dim)
        self.scale_base = scale_base
        scale = (half + 0.4 * head_dim) / (1.4 * head_dim)
        # The reference lays the scale out as [s, s] over interleaved pairs; order as the heads are.
        self.order = torch.cat([torch.arange(0, head_dim, 2), torch.arange(1, head_dim, 2)])
        self.scale = torch.cat([scale, scale])[self.order]

    def tables(self, first: int, count: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Cosine and sine [position, query or key, 1, head_dim] at the positions of one call."""
        t = torch.arange(first, first + count, dtype=torch.float64)
        angle = torch.outer(t, self.frequency)
        power = ((t - (first + count - 1) // 2) / self.scale_base)[:, None]
        scale = torch.stack([self.scale**power, self.scale**-power], dim=1)[:, :, None]
        both = (torch.cat([f(angle)] * 2, dim=-1)[:, None, None] for f in (torch.cos, torch.sin))
        cos, sin = ((part * scale).to(dtype) for part in both)
        return cos, sin


class _Rotate(torch.autograd.Function):
    """x * cos + (-second half, first half) * sin, in three passes over memory each way."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        half = x.shape[-1] // 2
        y = x * cos
        y[..., :half].addcmul_(x[..., half:], sin[..., :half], value=-1.0)
        y[..., half:].addcmul_(x[..., :half], sin[..., half:])
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (g,), (cos, sin) = gradients, ctx.saved_tensors
        half = g.shape[-1] // 2
        x = g * cos
        x[..., half:].addcmul_(g[..., :half], sin[..., :half], value=-1.0)
        x[..., :half].addcmul_(g[..., half:], sin[..., half:])
        return x, None, None


def _norm(x: Tensor, scale: Tensor) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],), scale, eps=1e-8)


Cache = list[tuple[Tensor, Tensor] | None]  # keys and values of each time-wise layer


class Forward:
    """Runs a TotoBackbone. Holds no weights, only tables."""

    def __init__(self, network: TotoBackbone) -> None:
        self.network = network
        self.patch = network.patch_embed.patch_size
        attention = network.transformer.layers[0].attention
        self.heads, self.head_dim = attention.num_heads, attention.head_dim
        self.rotary = Rotary(self.head_dim)

    def _rows(self, rows: Tensor, paired: bool) -> Tensor:
        """Rows (head_dim, head) of a checkpoint as (head, head_dim); paired: even ones first."""
        if not paired:
            return rows.unflatten(0, (self.head_dim, self.heads)).transpose(0, 1).flatten(0, 1)
        pairs = rows.unflatten(0, (self.head_dim // 2, 2, self.heads))
        return pairs.movedim(2, 0).transpose(1, 2).flatten(0, 2)

    def _qkv(self, attention: BaseMultiheadAttention, x: Tensor, paired: bool) -> Tensor:
        """[sequence, position, query or key or value, head, head_dim] of x [sequence, position]."""
        linear, orders = attention.wQKV, (paired, paired, False)
        weight, bias = (
            torch.cat(
                [self._rows(part, order) for part, order in zip(p.chunk(3), orders, strict=True)]
            )
            for p in (linear.weight, linear.bias)
        )
        return F.linear(x, weight, bias).unflatten(-1, (3, self.heads, self.head_dim))

    def _time(
        self, attention: BaseMultiheadAttention, x: Tensor, tables: tuple[Tensor, Tensor], past: Any
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        qkv = self._qkv(attention, x.flatten(0, 1), paired=True)
        q, k = _Rotate.apply(qkv[:, :, :2], *tables).permute(2, 0, 3, 1, 4).unbind(0)
        v = qkv[:, :, 2].transpose(1, 2)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        y = y.transpose(1, 2).flatten(2).unflatten(0, x.shape[:2])
        return F.linear(y, attention.wO.weight, attention.wO.bias), (k, v)

    def _space(self, attention: BaseMultiheadAttention, x: Tensor, ids: Tensor | None) -> Tensor:
        batch, variates, tokens, _ = x.shape
        if variates == 1:
            linear = attention.wQKV
            weight, bias = (self._rows(p.chunk(3)[2], False) for p in (linear.weight, linear.bias))
            y = F.linear(x, weight, bias)
        else:
            qkv = self._qkv(attention, x.transpose(1, 2).flatten(0, 1), paired=False)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            mask = None
            if ids is not None:
                mask = ids[:, None, None, :, None] == ids[:, None, None, None, :]
                mask = mask.expand(-1, tokens, -1, -1, -1).flatten(0, 1)
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            y = y.transpose(1, 2).flatten(2).unflatten(0, (batch, tokens)).transpose(1, 2)
        return F.linear(y, attention.wO.weight, attention.wO.bias)

    def _layer(
        self, layer: TransformerLayer, x: Tensor, ids: Tensor | None, tables: Any, past: Any
    ) -> tuple[Tensor, tuple[Tensor, Tensor] | None]:
        h, present = _norm(x, layer.norm1.scale), None
        if layer.attention_axis == AttentionAxis.TIME:
            y, present = self._time(layer.attention, h, tables, past)
        else:
            y = self._space(layer.attention, h, ids)
        x = x + y
        gate, value = F.linear(
            _norm(x, layer.norm2.scale), layer.mlp[0].weight, layer.mlp[0].bias
        ).chunk(2, dim=-1)
        return x + F.linear(F.silu(gate) * value, layer.mlp[2].weight, layer.mlp[2].bias), present

    def _head(self, x: Tensor) -> Head:
        unembed, head = self.network.unembed, self.network.output_distribution
        weight = unembed.weight.unflatten(0, (self.patch, -1))
        bias = unembed.bias.unflatten(0, (self.patch, -1))

        def apply(part: torch.nn.Linear) -> Tensor:
            folded = torch.matmul(part.weight, weight).transpose(0, 1)  # [component, patch, embed]
            folded_bias = part.weight @ bias.T + part.bias[:, None]
            return F.linear(x, folded.flatten(0, 1), folded_bias.flatten()).unflatten(
                -1, (-1, self.patch)
            )

        return Head(*map(apply, (head.df, head.loc_proj, head.scale_proj, head.mixture_weights)))

    def __call__(
        self,
        series: Tensor,
        mask: Tensor,
        ids: Tensor | None = None,
        *,
        prefix: int | None = None,
        cache: Cache | None = None,
        past_tokens: int = 0,
    ) -> Output:
        """
        series, mask: [batch, variate, time]; ids: [batch, variate], equal numbers attend to each
        other, None means all do. With a cache, the tokens before `past_tokens` are taken from it
        and the new ones are appended, as the reference's cached decoding does.
        """
        network, patch = self.network, self.patch
        scaled, loc, scale = network.scaler(
            series, padding_mask=mask, weights=torch.ones_like(series), prefix_length=prefix
        )
        x = scaled[..., past_tokens * patch :].unflatten(-1, (-1, patch))
        x = F.linear(x, network.patch_embed.projection.weight, network.patch_embed.projection.bias)
        tables = self.rotary.tables(past_tokens, x.shape[2], x.dtype)
        for index, layer in enumerate(network.transformer.layers):
            past = cache[index] if cache and past_tokens else None
            x, present = self._layer(layer, x, ids, tables, past)
            if cache is not None:
                cache[index] = present
        at_end = slice(past_tokens * patch + patch - 1, None, patch)
        return Output(self._head(x), loc[..., at_end], scale[..., at_end])


class _CombinedLoss(torch.autograd.Function):
    """The loss of every step and its gradient, which cost as much as a layer if left to autograd.

    Arguments: the four tensors of a Head, targets and weights [..., step]. Gives the weighted sums
    of the negative log-likelihood and of the robust loss; the gradient is of their combination.
    """

    @staticmethod
    def forward(ctx: Any, *arguments: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        head, target, weight = Head(*arguments[:4]), arguments[4], arguments[5]
        mixture = head.mixture()
        df, loc, scale, log_weight = mixture.df, mixture.loc, mixture.scale, mixture.log_weight
        half = 0.5 * (df + 1.0)
        z = (target.unsqueeze(-2) - loc) / scale
        ratio = z * z / df
        log_ratio = torch.log1p(ratio)
        joint = (
            torch.lgamma(half)
            .sub_(torch.lgamma(0.5 * df))
            .sub_((math.pi * df).sqrt_().mul_(scale).log_())
        )
        joint.addcmul_(half, log_ratio, value=-1.0).add_(log_weight)
        log_likelihood = torch.logsumexp(joint, dim=-2, keepdim=True)
        probability = log_weight.exp()
        mean = (probability * loc).sum(-2, keepdim=True)
        error = (mean - target.unsqueeze(-2)) / ROBUST_DELTA
        robust = torch.log1p(0.5 * error * error)
        weight = weight.unsqueeze(-2)
        nll_sum, robust_sum = -(log_likelihood * weight).sum(), (robust * weight).sum()

        by_mean = (1.0 - LAMBDA_NLL) / ROBUST_DELTA * weight * error / (1.0 + 0.5 * error * error)
        share = (joint - log_likelihood).exp_()
        by_logit = (probability - share) * (LAMBDA_NLL * weight)
        by_mean = probability * by_mean
        by_logit.addcmul_(by_mean, loc - mean)
        share.mul_(LAMBDA_NLL * weight)
        pull = ratio / (1.0 + ratio) * (df + 1.0)  # (df + 1) z^2 / (df + z^2)
        by_df = (
            torch.digamma(half)
            .sub_(torch.digamma(0.5 * df))
            .sub_(log_ratio)
            .add_((pull - 1.0) / df)
        )
        by_df.mul_(share).mul_(-0.5)
        by_scale = share * (1.0 - pull) / scale
        by_loc = by_mean - share * (df + 1.0) * z / (scale * df * (1.0 + ratio))
        # softplus' derivative is 1 - exp(-softplus), zero where its floor holds.
        eps = torch.finfo(df.dtype).eps
        by_df.mul_(_softplus_slope(df - 2.0, eps))
        by_scale.mul_(_softplus_slope(scale, eps))
        ctx.save_for_backward(by_df, by_loc, by_scale, by_logit)
        return LAMBDA_NLL * nll_sum + (1.0 - LAMBDA_NLL) * robust_sum, nll_sum, robust_sum

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return *(gradients[0] * by for by in ctx.saved_tensors), None, None


def _softplus_slope(value: Tensor, floor: float) -> Tensor:
    return torch.expm1(-value).neg_().mul_(value > floor)


@dataclass
class Loss:
    total: Tensor
    nll: Tensor
    robust: Tensor


def next_patch_loss(forward: Forward, series: Tensor, mask: Tensor, ids: Tensor | None) -> Loss:
    """Every patch but the first, predicted from those before it; masked steps do not count.

    As `toto.model.lightning_module: _train_or_val_step`: targets in units of the scaler's
    statistics at the end of the patch before.
    """
    patch = forward.patch
    output = forward(series[..., :-patch], mask[..., :-patch], ids)
    target = series[..., patch:].unflatten(-1, (-1, patch))
    target = (target - output.loc.unsqueeze(-1)) / output.scale.unsqueeze(-1)
    counts = mask[..., patch:].unflatten(-1, (-1, patch)).to(series.dtype)
    weight = counts / counts.sum().clamp_min(1.0)
    return Loss(*_CombinedLoss.apply(*vars(output.head).values(), target, weight))
