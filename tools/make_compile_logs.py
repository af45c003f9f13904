#!/usr/bin/env python3
"""Records PyTorch's logs of compiling toto-ts: the fixtures of `toto analyze-log`.

    python tools/make_compile_logs.py tests/data/logs/pytorch-2.5.1.log

Runs a small random Toto under torch.compile with TORCH_LOGS="recompiles,graph_breaks,cudagraphs"
until functions recompile past their limit, and writes a trimmed log: paths start at their package, and
of each kind and place only the first few records are kept. Needs the environment that the help of
make_golden.py describes, with the PyTorch version whose logs are wanted.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

LOGS = "recompiles,graph_breaks,cudagraphs"
# "V0628 10:00:00.123000 4214 torch/_dynamo/guards.py:2830]"
PREFIX = re.compile(r"^[VIWEC]\d{4} [\d:.]+ \d+ \S+?\]")
KEPT_OF_A_KIND = 2
LAYERS = 6  # more than the limit: they share their code, and each has a version of it


def compile_toto(limit: int) -> None:
    """Runs in a separate process, whose standard error is the log."""
    import warnings

    warnings.simplefilter("ignore")
    import torch
    import torch._dynamo
    from torch._inductor import cudagraph_utils
    from toto.data.util.dataset import MaskedTimeseries
    from toto.inference.forecaster import TotoForecaster
    from toto.model.toto import Toto

    for name in ("recompile_limit", "cache_size_limit"):  # the new name, the old name
        if hasattr(torch._dynamo.config, name):
            setattr(torch._dynamo.config, name, limit)
            break

    torch.manual_seed(0)
    network = Toto(
        patch_size=16,
        stride=16,
        embed_dim=32,
        num_layers=LAYERS,
        num_heads=4,
        mlp_hidden_dim=32,
        dropout=0.0,
        spacewise_every_n_layers=LAYERS,
        scaler_cls="<class 'model.scaler.CausalPatchStdMeanScaler'>",
        output_distribution_classes=["<class 'model.distribution.MixtureOfStudentTsOutput'>"],
        output_distribution_kwargs={"k_components": 3},
        use_memory_efficient_attention=False,
    ).model
    # Guards and graph breaks come from Dynamo with every backend; this is the quickest one.
    network.compile(backend="eager")
    forecaster = TotoForecaster(network)
    for length in (48, 64):
        series = torch.sin(torch.arange(length, dtype=torch.float32) / 5).unsqueeze(0)
        inputs = MaskedTimeseries(
            series=series,
            padding_mask=torch.ones_like(series, dtype=torch.bool),
            id_mask=torch.zeros_like(series),
            timestamp_seconds=torch.zeros_like(series),
            time_interval_seconds=torch.ones(1),
        )
        forecaster.forecast(inputs, prediction_length=48, num_samples=None)
    # Skipped CUDA graphs are logged only on a machine with a GPU. These are the sentences that
    # compiling Toto gives there, through PyTorch's own function for them.
    for reason in ("mutated inputs (2 instances)", "incompatible op aten._local_scalar_dense.default"):
        message = cudagraph_utils.format_default_skip_message(reason)
        cudagraph_utils.log_cudagraph_skip_and_bump_counter(message)


def neutral(text: str) -> str:
    """Paths from the package on."""
    text = re.sub(r"(/[\w.+-]+)+/site-packages/", "/site-packages/", text)
    text = re.sub(r"(/[\w.+-]+)+/(lib/python3\.\d+)/", r"/\2/", text)
    return re.sub(r"(/[\w.+-]+)+/make_compile_logs\.py", "/tools/make_compile_logs.py", text)


def records_of(text: str) -> list[list[str]]:
    """Lines logged by one call: they have the same prefix, to the microsecond."""
    records: list[list[str]] = []
    previous = None
    for line in text.splitlines():
        found = PREFIX.match(line)
        prefix = found.group() if found else previous
        if records and prefix == previous:
            records[-1].append(line)
        else:
            records.append([line])
        previous = prefix
    return records


def trimmed(text: str) -> str:
    """The first records of each kind and place. Numbers are ignored, except lines of the source."""
    kept: list[str] = []
    kinds: dict[str, int] = {}
    for record in records_of(text):
        said = [PREFIX.sub("", line) for line in record[:3]]
        kind = "\n".join([said[0]] + [re.sub(r"\d+", "", line) for line in said[1:]])
        kind = re.sub(r"^( \[[^]]*\])+", "", kind)
        kinds[kind] = kinds.get(kind, 0) + 1
        if kinds[kind] <= KEPT_OF_A_KIND:
            kept += record
    return "\n".join(kept) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--limit", type=int, default=4, help="recompilations allowed (default 4)")
    parser.add_argument("--whole", action="store_true", help="keep every record")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        compile_toto(arguments.limit)
        return 0
    command = [sys.executable, __file__, "--inside", "--limit", str(arguments.limit), "-"]
    run = subprocess.run(command, env=os.environ | {"TORCH_LOGS": LOGS}, capture_output=True, text=True)
    if run.returncode != 0:
        print(f"error: the compiled run failed: {run.stderr.strip()[-2000:]}", file=sys.stderr)
        return 1
    log = neutral(run.stderr)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(log if arguments.whole else trimmed(log), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
