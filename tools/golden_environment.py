"""Finds the packages needed to make goldens, or reports in one sentence what is missing."""

from __future__ import annotations

import os
import sys
import warnings
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from provenance import cpu_name

REFERENCE_PACKAGE = "toto-ts"
REFERENCE_VERSION = "0.2.0"
UNAVAILABLE = 5  # the command's exit code for a missing dependency


def stop(message: str, code: int = 1) -> NoReturn:
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(code)


def require_command(toto: Path) -> None:
    if not os.access(toto, os.X_OK):
        stop(f"{toto} is not a program that can be run; build it first, or see --toto")


def import_reference(own_environment: bool = False) -> ModuleType:
    """The module golden_reference, with the one version of the reference that goldens come from.

    A user's own environment may have another version, which gives a warning, and xFormers, which is
    hidden from the reference.
    """
    try:
        found = version(REFERENCE_PACKAGE)
    except PackageNotFoundError:
        found = "nothing"
    wanted = f"{REFERENCE_PACKAGE} {REFERENCE_VERSION}"
    if found != REFERENCE_VERSION and own_environment and found != "nothing":
        print(f"warning: the reference is {found}, expected {wanted}", file=sys.stderr)
    elif found != REFERENCE_VERSION:
        stop(
            f"the reference is {found}, expected {wanted}; run in the virtual environment that the"
            " help of make_golden.py describes",
            UNAVAILABLE,
        )
    if own_environment:
        sys.modules["xformers"] = None  # importing it fails, as if it were not installed
    elif find_spec("xformers") is not None:
        stop(
            "xFormers is installed, expected an environment without it; its kernels round"
            " differently, so make a fresh environment",
            UNAVAILABLE,
        )
    with warnings.catch_warnings():
        # About xFormers being absent and about faster JSON packages.
        warnings.simplefilter("ignore")
        try:
            import golden_reference
        except ImportError as error:
            stop(
                f"{error}, needed by the reference; install what the help of make_golden.py lists",
                UNAVAILABLE,
            )
    return golden_reference


def environment() -> list[str]:
    """Versions and machine, on which the rounding of a golden depends."""
    import torch

    packages = ("torch", REFERENCE_PACKAGE, "rotary-embedding-torch", "gluonts", "numpy")
    python = ".".join(map(str, sys.version_info[:3]))
    capability = torch.backends.cpu.get_cpu_capability()
    return [
        ", ".join(f"{package} {version(package)}" for package in packages) + f", Python {python}",
        f"{cpu_name()} with {capability} kernels, {torch.get_num_threads()} thread(s)",
    ]
