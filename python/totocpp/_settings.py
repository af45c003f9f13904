"""How an engine runs: arguments, then the variables of the command line, then defaults."""

from __future__ import annotations

import os
import sys
from typing import Any

from . import _native
from ._arrays import whole_number

BUNDLED_MODEL = "toto-mini"
_YES, _NO = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


def variable(*names: str) -> tuple[str, str] | None:
    """The first of these variables that is set and not empty, with its value."""
    for name in names:
        if value := os.environ.get(name):
            return name, value
    return None


def _switch(name: str) -> bool | None:
    found = variable(name)
    if found is None:
        return None
    value = found[1].lower()
    if value not in _YES | _NO:
        raise ValueError(f'{name} is "{found[1]}", expected 1 or 0')
    return value in _YES


def _number(name: str, text: str, low: int, high: int) -> int:
    if not text.isdecimal() or not low <= int(text) <= high:
        raise ValueError(f'{name} is "{text}", expected a whole number from {low} to {high}')
    return int(text)


def mode_in_force(mode: str | None) -> str:
    """TOTO_DISABLE_COMPILE=1 rolls back to the reference whatever else is set, except an argument."""
    if mode is not None:
        return mode
    if _switch("TOTO_DISABLE_COMPILE") or _switch("TOTO_COMPILE") is False:
        return "reference"
    found = variable("TOTO_COMPILE_MODE", "TORCH_COMPILE_MODE")
    return found[1] if found else "default"


def seed_in_force(seed: int | None) -> int:
    if seed is not None:
        return whole_number("seed", seed, 0, 2**64 - 1)
    found = variable("TOTO_SEED")
    return _number(*found, 0, 2**64 - 1) if found else 0


def model_in_force(model: Any) -> str:
    if model is None:
        found = variable("TOTO_MODEL_ID")
        return found[1] if found else BUNDLED_MODEL
    if not isinstance(model, (str, os.PathLike)):
        raise TypeError(f"the model is {model!r}, expected a folder or a name")
    return os.fspath(model)


def _cache_folder(cache: bool | str | os.PathLike[str] | None) -> str:
    if cache is False:
        return ""
    if isinstance(cache, (str, os.PathLike)):
        return os.fspath(cache)
    if found := variable("TOTO_CACHE_DIR"):
        return found[1]
    if found := variable("XDG_CACHE_HOME"):
        return os.path.join(found[1], "toto")
    home = variable("HOME")
    return os.path.join(home[1], ".cache", "toto") if home else ""


def _log_plan(sentence: str) -> None:
    print(f"[plans] {sentence}", file=sys.stderr)


def engine_arguments(
    *,
    mode: str | None,
    dtype: str | None,
    threads: int | None,
    isa: str | None,
    use_kv_cache: bool,
    cache: bool | str | os.PathLike[str] | None,
    plan_cache_size: int | None,
) -> dict[str, Any]:
    """The keyword arguments of _native.Engine."""
    most = 4 * _native.usable_cores()
    if threads is None and (found := variable("TOTO_THREADS")):
        threads = _number(*found, 1, most)
    if plan_cache_size is None and (
        found := variable("TORCHDYNAMO_CACHE_SIZE_LIMIT", "TORCHDYNAMO_RECOMPILE_LIMIT")
    ):
        plan_cache_size = _number(*found, 1, 1_000_000)
    logs = variable("TOTO_LOGS")
    return {
        "mode": mode_in_force(mode),
        "dtype": dtype if dtype is not None else (variable("TOTO_DTYPE") or ("", "f32"))[1],
        "isa": isa if isa is not None else (variable("TOTO_ISA") or ("", "auto"))[1],
        "threads": 0 if threads is None else whole_number("threads", threads, 1, most),
        "use_kv_cache": bool(use_kv_cache),
        "plan_cache_size": whole_number("plan_cache_size", plan_cache_size or 256, 1, 1_000_000),
        "cache_dir": _cache_folder(cache),
        "on_plan": _log_plan if logs and "plans" in logs[1].split(",") else None,
    }
