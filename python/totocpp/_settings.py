"""The settings of an engine: arguments win over environment variables, which win over defaults."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from . import _native
from ._arrays import text_of, whole_number
from ._rows import ENGINE, Row
from ._warnings import warn

BUNDLED_MODEL: str = ENGINE["model"].default
BACKENDS = ENGINE["backend"].choices
T = TypeVar("T")
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


def _number(row: Row, name: str, text: str) -> int:
    low = int(row.low)
    if not (text.isascii() and text.isdecimal()) or not low <= int(text) <= row.most:
        raise ValueError(f'{name} is "{text}", expected a whole number from {low} to {row.most}')
    return int(text)


class _Said(NamedTuple):
    """A setting as it was given, and its origin."""

    origin: str
    text: str
    is_argument: bool


def _said(name: str, value: Any = None) -> _Said | None:
    """The argument if it is given, else the first of the setting's variables that is set."""
    if value is not None:
        return _Said(name, text_of(name, value), True)
    found = variable(*ENGINE[name].variables)
    return _Said(*found, False) if found else None


def _known(said: _Said, name_of: Callable[[str], str]) -> str:
    """The name in the library's spelling. Errors about unknown names get the origin in front."""
    try:
        return name_of(said.text)
    except ValueError as error:
        raise ValueError(f"{said.origin}: {error}") from None


def _rollback_switch() -> str | None:
    """The variable that forces reference mode, if one is set."""
    if _switch("TOTO_DISABLE_COMPILE"):
        return "TOTO_DISABLE_COMPILE"
    return "TOTO_COMPILE" if _switch("TOTO_COMPILE") is False else None


def _mode_asked_for(mode: str | None) -> str:
    said = _said("mode", mode)
    return _known(said, _native.mode_name) if said else str(ENGINE["mode"].default)


def _active_mode(mode: str | None) -> tuple[str, str | None]:
    """The mode, and the variable that forces reference mode, if one does. An argument wins over it."""
    switch = _rollback_switch()
    if switch is not None and mode is not None:
        if mode != "reference":
            warn(f"{switch} asks for reference mode, but the argument mode={mode!r} wins; omit it to roll back")
        switch = None
    return (_mode_asked_for(mode), None) if switch is None else ("reference", switch)


class _Rollback:
    """Keeps other settings from stopping a rollback to reference mode.

    While a variable forces reference mode, invalid values and values that this mode does not support
    are ignored, and one warning names them. Model and seed are never ignored: they change the
    forecast. A wrong argument is always an error.
    """

    def __init__(self, switch: str | None) -> None:
        self._switch = switch
        self._ignored: list[str] = []

    def take(self, said: _Said | None, use: Callable[[_Said], T], default: T) -> T:
        if said is None:
            return default
        try:
            return use(said)
        except ValueError:
            if self._switch is None or said.is_argument:
                raise
            return self._ignore(said, default)

    def take_if(self, available: Callable[[str], bool], said: _Said | None, value: str, default: str) -> str:
        """`value`, or the default if a rollback is active and reference mode does not support it."""
        if said is None or self._switch is None or available(value):
            return value
        return self._ignore(said, default)

    def _ignore(self, said: _Said, default: T) -> T:
        self._ignored.append(f'{said.origin} ("{said.text}")')
        return default

    def warn(self) -> None:
        if self._ignored:
            verb = "is" if len(self._ignored) == 1 else "are"
            warn(f"{self._switch} forces reference mode; {', '.join(self._ignored)} {verb} ignored")


def seed_in_force(seed: int | None) -> int:
    row = ENGINE["seed"]
    if seed is not None:
        return whole_number("seed", seed, int(row.low), row.most)
    found = variable(*row.variables)
    return _number(row, *found) if found else int(row.default)


def model_in_force(model: Any) -> str:
    if model is None:
        found = variable(*ENGINE["model"].variables)
        return found[1] if found else BUNDLED_MODEL
    return folder_of(model)


def folder_of(model: Any) -> str:
    path = os.fspath(model) if isinstance(model, (str, os.PathLike)) else None
    if not isinstance(path, str):
        raise TypeError(f"the model is {model!r}, expected a folder or a name")
    return path


def _cache_folder(cache: bool | str | os.PathLike[str] | None) -> str:
    if cache is False:
        return ""
    if isinstance(cache, (str, os.PathLike)):
        return os.fspath(cache)
    if cache is not None and cache is not True:
        raise TypeError(f"cache is {cache!r}, expected a folder, True or False")
    if found := variable(*ENGINE["cache_dir"].variables):
        return found[1]
    if found := variable("XDG_CACHE_HOME"):
        return os.path.join(found[1], "toto")
    home = variable("HOME")
    return os.path.join(home[1], ".cache", "toto") if home else ""


def backend_in_force() -> str:
    """Only for reports: the kernels are always native. engine_arguments() checks the value."""
    found = variable(*ENGINE["backend"].variables)
    return found[1] if found and found[1] in BACKENDS else str(ENGINE["backend"].default)


def _checked_backend(said: _Said) -> str:
    if said.text not in BACKENDS:
        raise ValueError(f'{said.origin} is "{said.text}", expected {" or ".join(BACKENDS)}')
    return said.text


def _log_plan(sentence: str) -> None:
    print(f"[plans] {sentence}", file=sys.stderr)


def _logger(said: _Said) -> Callable[[str], None]:
    for topic in said.text.split(","):
        if topic.strip() != "plans":
            raise ValueError(f'{said.origin}: unknown topic "{topic.strip()}"; what can be logged is: plans')
    return _log_plan


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
    mode, switch = _active_mode(mode)
    rollback = _Rollback(switch)

    def number(name: str, value: int | None) -> int:
        row = ENGINE[name]
        if value is not None:
            return whole_number(name, value, int(row.low), row.most)
        return rollback.take(_said(name), lambda said: _number(row, said.origin, said.text), row.default or 0)

    default_dtype, default_isa = str(ENGINE["dtype"].default), str(ENGINE["isa"].default)
    said_dtype, said_isa = _said("dtype", dtype), _said("isa", isa)
    stored = rollback.take(said_dtype, lambda said: _known(said, _native.dtype_name), default_dtype)
    kernels = rollback.take(said_isa, lambda said: _known(said, _native.isa_name), default_isa)
    rollback.take(_said("backend"), _checked_backend, BACKENDS[0])
    arguments = {
        "mode": mode,
        "dtype": rollback.take_if(lambda name: name in ("f32", "f64"), said_dtype, stored, default_dtype),
        "isa": rollback.take_if(_native.isa_available, said_isa, kernels, default_isa),
        "threads": number("threads", threads),
        "use_kv_cache": bool(use_kv_cache),
        "plan_cache_size": number("plan_cache_size", plan_cache_size),
        "cache_dir": _cache_folder(cache),
        "on_plan": rollback.take(_said("logs"), _logger, None),
    }
    rollback.warn()
    return arguments


class Travelling(NamedTuple):
    """The arguments of a pickled engine. The process that unpickles it applies its own rollback variable."""

    arguments: dict[str, Any]  # of Engine
    mode: str  # from variables or the default, if no argument names one

    def arguments_here(self) -> dict[str, Any]:
        mode = self.arguments["mode"]
        if mode is None and _rollback_switch() is None:
            mode = self.mode
        return {**self.arguments, "mode": mode}


def travelling_arguments(asked: dict[str, Any], in_force: dict[str, Any]) -> Travelling:
    """From Engine's arguments and engine_arguments(): a rollback of this process is not pickled."""
    rolled_back = asked["mode"] is None and _rollback_switch() is not None

    def wanted(use: Callable[[], str], default: str) -> str:
        try:
            return use()
        except ValueError:  # a variable that the rollback ignores
            return default

    def without_rollback(name: str, name_of: Callable[[str], str]) -> str:
        if not rolled_back:
            return str(in_force[name])
        said, default = _said(name, asked[name]), str(ENGINE[name].default)
        return wanted(lambda: _known(said, name_of), default) if said else default

    arguments = {
        "mode": asked["mode"],
        "dtype": without_rollback("dtype", _native.dtype_name),
        "isa": without_rollback("isa", _native.isa_name),
        "threads": in_force["threads"] or None,  # None: all cores of the other machine
        "use_kv_cache": in_force["use_kv_cache"],
        "cache": in_force["cache_dir"] or False,
        "plan_cache_size": in_force["plan_cache_size"],
    }
    return Travelling(arguments, wanted(lambda: _mode_asked_for(asked["mode"]), str(ENGINE["mode"].default)))
