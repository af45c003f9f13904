#!/usr/bin/env python3
"""Makes the golden cases of tests/golden from the reference, the PyPI package `toto-ts` 0.2.0.

Each golden holds a small seeded random network, inputs, and the reference's answers in float32 and in
float64. It is written only if every check holds: finite answers, a small float32 error that is not a
lucky draw, a forecast that depends on every layer, on the positions and on every input.

It needs a throw-away virtual environment (python3 -m venv) without xFormers:
    pip install torch
    pip install numpy pandas einops jaxtyping gluonts lightning rotary-embedding-torch safetensors
    pip install huggingface_hub beartype scipy
    pip install --no-deps toto-ts==0.2.0
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from golden_environment import import_reference, stop

try:
    import numpy as np
except ModuleNotFoundError:
    stop(f"NumPy is not installed; make the environment first.\n\n{__doc__.rstrip()}", 5)

from golden_cases import CASES, Case, Golden
from golden_format import (
    ALLOWED_FLOAT32_ERROR,
    Answer,
    bounds_apart,
    magnitude,
    parts,
    relative_error,
    write_case,
)
from golden_network import draw_weights, num_components, write_model
from golden_readme import write_readme

SOURCE = Path(__file__).resolve().parent.parent

# Effects are counted in tolerances of `mean`, the least affected series deciding.
MIN_PART_EFFECT = 1000  # a layer, its attention, MLP or scores, the rotation, a label, an input
MIN_XPOS_EFFECT = 100  # xPos changes scores by a few per cent only
MIN_PATHS_APART = 50  # cached against uncached
MIN_COMPONENT_SPREAD = 0.1  # standard deviation across the mixture's components

# Rounding is partly luck: a bound from a lucky reference would reject correct engines. Other float32
# evaluations of the same network must therefore stay well inside it.
NUM_SHUFFLES = 8
MAX_SHARE_OF_TOLERANCE = 0.8

SEARCHED_SEEDS = 500


class Unfit(Exception):
    """This seed makes no useful golden; the message says why."""


def all_parts(answer: Answer, f32: Answer, f64: Answer) -> Iterator[tuple[str, np.ndarray, ...]]:
    for name in f64:
        columns = (parts(name, from_[name]) for from_ in (answer, f32, f64))
        for (label, ours), (_, single), (_, double) in zip(*columns, strict=True):
            yield label, ours, single, double


def make(case: Case, seed: int, folder: Path, reference: ModuleType) -> Golden:
    """Writes the golden of `case` into the empty `folder`, or raises Unfit.

    `reference` is golden_reference, which takes seconds to import and an environment to find.
    """
    weights = draw_weights(case.config, case.init, case.variate_labels, seed)
    write_model(folder, case.config, weights, case.storage)
    inputs = case.inputs(seed)

    single = reference.load_reference(folder)
    f32 = reference.ask(single, inputs, case.horizon)
    double = reference.load_reference(folder).double()
    f64 = reference.ask(double, inputs, case.horizon)
    check_answers(case, f32, f64)
    write_case(folder / "case.safetensors", inputs, case.horizon, case.variate_labels, f32, f64)
    if case.official_loader and not reference.loads_the_official_way(folder, single):
        raise Unfit("the reference's own loader reads other weights")

    # Cheapest first: most seeds fail here.
    share = 0.0
    variants = reference.float32_variants(folder, inputs, case.horizon, NUM_SHUFFLES)
    for variant, answer in variants:
        for name, ours, s, d in all_parts(answer, f32, f64):
            share = max(share, bounds_apart(ours, d, s, d))
            if share > MAX_SHARE_OF_TOLERANCE:
                raise Unfit(f"float32 with {variant} needs {share:.2f} of the tolerance of {name}")

    def apart(mean: np.ndarray) -> float:
        triples = zip(mean, f32["mean"], f64["mean"], strict=True)
        return min(bounds_apart(other, d, s, d) for other, s, d in triples)

    golden = Golden(
        case=case,
        shape=inputs.series.shape,
        f32=f32,
        f64=f64,
        paths_apart=apart(f64["mean_no_cache"]),
        effects={
            name: apart(mean)
            for name, mean in reference.ablated_means(double, inputs, case.horizon).items()
        }
        # An input may concern some series only, so all of them together decide.
        | {
            name: bounds_apart(mean, f64["mean"], f32["mean"], f64["mean"])
            for name, mean in reference.altered_input_means(double, inputs, case.horizon).items()
        },
        share_of_tolerance=share,
        clamp=reference.scale_clamp_effects(double, inputs) if case.clamp else set(),
        num_bytes=sum(file.stat().st_size for file in folder.iterdir()),
    )
    check_effects(golden)
    return golden


def check_answers(case: Case, f32: Answer, f64: Answer) -> None:
    for name, double in f64.items():
        if not (np.isfinite(f32[name]).all() and np.isfinite(double).all()):
            raise Unfit(f"{name} is not finite")
        # Of every output of every series, though the tolerance pools some.
        error = max(map(relative_error, f32[name], double))
        if error > ALLOWED_FLOAT32_ERROR:
            raise Unfit(f"the float32 error of {name} is {error:.1e}")
    if num_components(case.config) is not None:
        for name in ("df", "component_scale", "logits"):
            if f64[name].std(axis=-1).mean() < MIN_COMPONENT_SPREAD:
                raise Unfit(f"components hardly differ in {name}")


def check_effects(golden: Golden) -> None:
    case = golden.case
    for name, effect in golden.effects.items():
        if effect < (MIN_XPOS_EFFECT if name == "xPos" else MIN_PART_EFFECT):
            raise Unfit(f"without {name} the mean moves by {effect:.0f} tolerances only")
    if case.paths_differ and golden.paths_apart < MIN_PATHS_APART:
        raise Unfit(f"cached and uncached are {golden.paths_apart:.1f} tolerances apart only")
    if not case.paths_differ and golden.paths_apart > 0:
        raise Unfit("cached and uncached differ, which they cannot here")
    if not case.clamp <= golden.clamp:
        raise Unfit(f"the clamp did {sorted(golden.clamp)}, not {sorted(case.clamp)}")


def print_table(golden: Golden) -> None:
    name, effect = golden.least_effect
    print(f"\n{golden.case.name}: {golden.case.covers}")
    print(f"  {'output':<18}{'mean |f64|':>12}{'f32 error':>12}{'cached - uncached':>20}")
    for label, single, _, double in all_parts(golden.f32, golden.f32, golden.f64):
        apart = ""
        if label.startswith("mean") and not label.startswith("mean_no_cache"):
            other = dict(parts("mean", golden.f64["mean_no_cache"]))[label]
            apart = f"{bounds_apart(other, double, single, double):.0f} bounds"
        error = relative_error(single, double)
        print(f"  {label:<18}{magnitude(double):>12.4g}{error:>12.1e}{apart:>20}")
    print(
        f"  least effect: {name}, {effect:.0f} bounds; other float32 evaluations need up to"
        f" {golden.share_of_tolerance:.2f} of the bound; {golden.num_bytes / 1024:.0f} kB",
        flush=True,
    )


def search(case: Case, reference: ModuleType) -> int:
    for seed in range(SEARCHED_SEEDS):
        with tempfile.TemporaryDirectory() as folder:
            try:
                make(case, seed, Path(folder), reference)
                return seed
            except Unfit as reason:
                print(f"{case.name}: not {seed}, {reason}", flush=True)
    stop(f"no seed below {SEARCHED_SEEDS} makes a fit golden of {case.name}")


def make_and_keep(case: Case, output: Path, reference: ModuleType) -> Golden:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / case.name
        folder.mkdir()
        try:
            golden = make(case, case.seed, folder, reference)
        except Unfit as reason:
            stop(
                f"{case.name} with seed {case.seed} makes no fit golden: {reason}; look for a seed"
                f" with --search --case {case.name}"
            )
        print_table(golden)
        shutil.rmtree(output / case.name, ignore_errors=True)
        shutil.copytree(folder, output / case.name)
    return golden


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--output", type=Path, default=SOURCE / "tests/golden", help="folder of the golden folders"
    )
    parser.add_argument(
        "--case",
        nargs="+",
        choices=[case.name for case in CASES],
        metavar="NAME",
        help="only these; the README is not changed",
    )
    parser.add_argument("--list", action="store_true", help="list the cases and stop")
    parser.add_argument(
        "--search",
        action="store_true",
        help="write nothing; print the first seed of each case that passes every check",
    )
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    cases = [case for case in CASES if not arguments.case or case.name in arguments.case]
    if arguments.list:
        for case in cases:
            print(f"{case.name:<26}{case.covers}")
        return
    reference = import_reference()
    reference.make_repeatable(num_threads=1)
    if arguments.search:
        for case in cases:
            print(f"{case.name}: seed={search(case, reference)}", flush=True)
        return
    arguments.output.mkdir(parents=True, exist_ok=True)
    goldens = [make_and_keep(case, arguments.output, reference) for case in cases]
    total = sum(golden.num_bytes for golden in goldens)
    print(f"\n{len(goldens)} goldens, {total / 1e6:.2f} MB, in {arguments.output}")
    if not arguments.case:
        write_readme(
            arguments.output / "README.md",
            goldens,
            shuffles=NUM_SHUFFLES,
            share=MAX_SHARE_OF_TOLERANCE,
            part=MIN_PART_EFFECT,
            xpos=MIN_XPOS_EFFECT,
            paths=MIN_PATHS_APART,
        )


if __name__ == "__main__":
    main()
