"""Runs the reference, `toto-ts`, on a golden's weights and inputs, and removes its parts one by one to
show that the answer depends on every part."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np

warnings.filterwarnings("ignore", category=ImportWarning)  # xFormers: absent on purpose

import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from torch.utils.hooks import RemovableHandle  # noqa: E402
from toto.data.util.dataset import MaskedTimeseries, pad_array  # noqa: E402
from toto.inference.forecaster import TotoForecaster  # noqa: E402
from toto.model import attention as reference_attention  # noqa: E402
from toto.model.attention import AttentionAxis  # noqa: E402
from toto.model.toto import Toto  # noqa: E402

from golden_format import Answer, Inputs  # noqa: E402
from golden_network import HEADS  # noqa: E402


def make_repeatable(num_threads: int) -> None:
    """Gives the same bytes on every run of one machine. The number of threads affects the rounding."""
    torch.set_num_threads(num_threads)
    torch.use_deterministic_algorithms(True)


def load_reference(folder: Path) -> Toto:
    """The reference's model from a golden's files, float32 and in evaluation mode.

    `Toto.load_from_checkpoint` reads one file with the `model.` prefix and drops variate labels; the
    rest is assembled here in the same way.
    """
    config = json.loads((folder / "config.json").read_text())
    config["use_memory_efficient_attention"] = False
    state: dict[str, torch.Tensor] = {}
    for file in sorted(folder.glob("model*.safetensors")):
        state |= load_file(file)
    state = {n if n.startswith("model.") else f"model.{n}": t for n, t in state.items()}
    state = Toto._map_state_dict_keys(state, use_fused_swiglu=False)
    toto = Toto(**config)
    if "model.target_variate_label" in state:
        toto.model.enable_variate_labels()
    state = {n: t for n, t in state.items() if not n.endswith("rotary_emb.freqs")}
    toto.load_state_dict(state, strict=True)
    return toto.eval().requires_grad_(False)


def loads_the_official_way(folder: Path, toto: Toto) -> bool:
    """Whether the reference's own loader reads the same weights."""
    official = Toto.load_from_checkpoint(str(folder)).state_dict()
    ours = toto.state_dict()
    return official.keys() == ours.keys() and all(torch.equal(official[n], ours[n]) for n in ours)


def _forecast_mean(toto: Toto, inputs: Inputs, horizon: int, use_kv_cache: bool) -> np.ndarray:
    dtype = next(toto.parameters()).dtype
    series = torch.from_numpy(inputs.series).to(dtype)
    future = inputs.future_exogenous
    request = MaskedTimeseries(
        series=series,
        padding_mask=torch.from_numpy(inputs.padding_mask),
        id_mask=torch.from_numpy(inputs.id_mask),
        timestamp_seconds=torch.zeros(series.shape, dtype=torch.int64),
        time_interval_seconds=torch.full(series.shape[:2], 3600, dtype=torch.int64),
        num_exogenous_variables=inputs.num_exogenous,
    )
    forecast = TotoForecaster(toto.model).forecast(
        request,
        prediction_length=horizon,
        num_samples=None,
        use_kv_cache=use_kv_cache,
        future_exogenous_variables=None if future is None else torch.from_numpy(future).to(dtype),
    )
    return forecast.mean.numpy()


def cached_mean(toto: Toto, inputs: Inputs, horizon: int) -> np.ndarray:
    return _forecast_mean(toto, inputs, horizon, use_kv_cache=True)


def ask(toto: Toto, inputs: Inputs, horizon: int) -> Answer:
    """Every output of the golden format, in the model's own dtype.

    The first patch's distribution is captured from the forecaster's own first call of the model.
    """
    heard: dict[str, object] = {}
    head = toto.model.output_distribution

    def listen(module: torch.nn.Module, name: str) -> RemovableHandle:
        def keep_first(_module: torch.nn.Module, _args: object, output: object) -> None:
            heard.setdefault(name, output)

        return module.register_forward_hook(keep_first)

    with ExitStack() as hooks:
        hooks.enter_context(listen(toto.model, "output"))
        if hasattr(head, "mixture_weights"):
            hooks.enter_context(listen(head.mixture_weights, "logits"))
        mean = cached_mean(toto, inputs, horizon)
    mean_no_cache = _forecast_mean(toto, inputs, horizon, use_kv_cache=False)

    base, loc, scale = heard["output"]
    patch = toto.model.patch_embed.patch_size
    transformed = TotoForecaster.create_affine_transformed(base, loc, scale)
    shape = (*mean.shape[:2], patch)

    def affine(values: torch.Tensor) -> np.ndarray:
        return np.ascontiguousarray(values[..., -patch:].expand(shape).numpy())

    def components(values: torch.Tensor) -> np.ndarray:
        return np.ascontiguousarray(values[:, :, -patch:].reshape(*shape, -1).numpy())

    students = getattr(base, "component_distribution", base)
    answer: Answer = {
        "loc": affine(transformed.loc),
        "scale": affine(transformed.scale),
        "df": components(students.df),
        "component_loc": components(students.loc),
        "component_scale": components(students.scale),
    }
    if "logits" in heard:
        answer["logits"] = components(heard["logits"])
    return answer | {"mean": mean, "mean_no_cache": mean_no_cache}


# ------------------------------------------------------------------------- parts the answer rests on


@contextmanager
def _zeroed(*tensors: torch.Tensor) -> Iterator[None]:
    kept = [tensor.clone() for tensor in tensors]
    for tensor in tensors:
        tensor.zero_()
    yield
    for tensor, values in zip(tensors, kept, strict=True):
        tensor.copy_(values)


@contextmanager
def _without_rotation(toto: Toto) -> Iterator[None]:
    rotary = toto.model.transformer.rotary_emb
    with mock.patch.object(rotary, "rotate_queries_and_keys", lambda q, k, **_: (q, k)):
        yield


@contextmanager
def _without_xpos(toto: Toto) -> Iterator[None]:
    rotary = toto.model.transformer.rotary_emb
    with mock.patch.dict(rotary._buffers, scale=torch.ones_like(rotary.scale)):
        yield


def _variates_meet(inputs: Inputs) -> bool:
    """Whether any two variates share an id: otherwise space-wise scores have no effect."""
    ids = np.sort(inputs.id_mask, axis=1)
    return bool((ids[:, 1:] == ids[:, :-1]).any())


def ablated_means(toto: Toto, inputs: Inputs, horizon: int) -> dict[str, np.ndarray]:
    """The forecast with one part removed at a time, by the name of that part."""
    run: Callable[[], np.ndarray] = lambda: cached_mean(toto, inputs, horizon)  # noqa: E731
    model = toto.model
    embed = model.embed_dim
    means: dict[str, np.ndarray] = {}
    layers = model.transformer.layers
    patch = model.patch_embed.patch_size
    tokens = -(-inputs.series.shape[-1] // patch) + model.num_prepended_tokens
    several_tokens = tokens > 1 or horizon > patch  # else every time-wise softmax is over one score
    for index, layer in enumerate(layers):
        attention = [layer.attention.wO.weight, layer.attention.wO.bias]
        mlp = [layer.mlp[2].weight, layer.mlp[2].bias]
        with _zeroed(*attention, *mlp):
            means[f"layer {index}"] = run()
        with _zeroed(*attention):
            means[f"attention {index}"] = run()
        with _zeroed(*mlp):
            means[f"mlp {index}"] = run()
        time_wise = layer.attention_axis == AttentionAxis.TIME
        if several_tokens if time_wise else _variates_meet(inputs):
            queries_and_keys = slice(0, 2 * embed)
            wqkv = layer.attention.wQKV
            with _zeroed(wqkv.weight[queries_and_keys], wqkv.bias[queries_and_keys]):
                means[f"scores {index}"] = run()

    if several_tokens and any(layer.attention_axis == AttentionAxis.TIME for layer in layers):
        with _without_rotation(toto):
            means["rotary"] = run()
        with _without_xpos(toto):
            means["xPos"] = run()
    if model.fusion is not None:
        with mock.patch.object(model, "exogenous_variate_label", model.target_variate_label):
            if inputs.num_exogenous > 0:
                means["exogenous label"] = run()
        with _zeroed(model.target_variate_label):
            means["target label"] = run()
    return means


def altered_input_means(toto: Toto, inputs: Inputs, horizon: int) -> dict[str, np.ndarray]:
    """The forecast with one input made trivial, for each input that is not."""
    altered: dict[str, Inputs] = {}
    space_wise = any(x.attention_axis == AttentionAxis.SPACE for x in toto.model.transformer.layers)
    if space_wise and np.unique(inputs.id_mask).size > 1:
        altered["ids"] = replace(inputs, id_mask=np.zeros_like(inputs.id_mask))
    if not inputs.padding_mask.all():
        altered["padding mask"] = replace(inputs, padding_mask=np.ones_like(inputs.padding_mask))
        shown = np.where(inputs.padding_mask, inputs.series, np.float32(0))
        if not np.array_equal(shown, inputs.series):
            altered["masked values"] = replace(inputs, series=shown)
    if inputs.future_exogenous is not None:
        altered["known future"] = replace(inputs, future_exogenous=None)
    return {name: cached_mean(toto, other, horizon) for name, other in altered.items()}


def scale_clamp_effects(toto: Toto, inputs: Inputs) -> set[str]:
    """The effects of the global clamp on the causal scale of the context: "raised", "lowered", and
    "last" if it binds in the patch that the first forecast patch is scaled by."""
    scaler = toto.model.scaler
    patch = toto.model.patch_embed.patch_size
    series = pad_array(torch.from_numpy(inputs.series).double(), patch)
    mask = pad_array(torch.from_numpy(inputs.padding_mask), patch)

    def scale_of(stabilize: bool) -> torch.Tensor:
        with mock.patch.object(scaler, "stabilize_with_global", stabilize):
            return scaler(series, mask, torch.ones_like(series), series.shape[-1])[2]

    clamped, free = scale_of(True), scale_of(False)
    return {
        name
        for name, seen in (
            ("raised", (clamped > free).any()),
            ("lowered", (clamped < free).any()),
            ("last", (clamped != free)[..., -1].any()),
        )
        if seen
    }


# -------------------------------------------------------------- is the reference's own error typical?


def _linear_in_double(self: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    double = torch.nn.functional.linear(x.double(), self.weight.double(), self.bias.double())
    return double.to(x.dtype)


def _attention_in_double(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: object
) -> torch.Tensor:
    attend = torch.nn.functional.scaled_dot_product_attention
    return attend(q.double(), k.double(), v.double(), **options).to(q.dtype)


@contextmanager
def sums_in_double() -> Iterator[None]:
    """Matrix products and attention summed in float64, every result rounded to float32."""
    with (
        mock.patch.object(torch.nn.Linear, "forward", _linear_in_double),
        mock.patch.object(reference_attention, "scaled_dot_product_attention", _attention_in_double),
    ):
        yield


def shuffle_channels(toto: Toto, seed: int) -> None:
    """Renumbers the channels of the stream, the MLPs and the head: the same function, with its sums
    in another order."""
    random = torch.Generator().manual_seed(seed)
    model = toto.model
    stream = torch.randperm(model.embed_dim, generator=random)
    inner = torch.randperm(model.embed_dim, generator=random)

    def rows(module: torch.nn.Linear, order: torch.Tensor) -> None:
        module.weight.copy_(module.weight[order])
        module.bias.copy_(module.bias[order])

    def columns(module: torch.nn.Linear, order: torch.Tensor) -> None:
        module.weight.copy_(module.weight[:, order])

    rows(model.patch_embed.projection, stream)
    for layer in model.transformer.layers:
        layer.norm1.scale.copy_(layer.norm1.scale[stream])
        layer.norm2.scale.copy_(layer.norm2.scale[stream])
        columns(layer.attention.wQKV, stream)
        rows(layer.attention.wO, stream)
        columns(layer.mlp[0], stream)
        rows(layer.mlp[2], stream)
        hidden = torch.randperm(layer.mlp_hidden_dim, generator=random)
        rows(layer.mlp[0], torch.cat([hidden, hidden + layer.mlp_hidden_dim]))
        columns(layer.mlp[2], hidden)
    columns(model.unembed, stream)
    patch_starts = torch.arange(model.patch_embed.patch_size)[:, None] * model.embed_dim
    rows(model.unembed, (patch_starts + inner).flatten())
    for name in HEADS:
        if hasattr(model.output_distribution, name):
            columns(getattr(model.output_distribution, name), inner)
    for label in (model.target_variate_label, model.exogenous_variate_label):
        if label is not None:
            label.copy_(label[stream])


def float32_variants(
    folder: Path, inputs: Inputs, horizon: int, num_shuffles: int
) -> Iterator[tuple[str, Answer]]:
    """Other float32 evaluations of the same network, to find a lucky draw."""
    with sums_in_double():
        answer = ask(load_reference(folder), inputs, horizon)
    yield "sums in double", answer
    for seed in range(num_shuffles):
        toto = load_reference(folder)
        shuffle_channels(toto, seed)
        yield f"shuffle {seed}", ask(toto, inputs, horizon)
