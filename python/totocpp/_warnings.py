"""Warnings that point at the caller's line, not at a line of this package."""

from __future__ import annotations

import sys
import warnings
from types import FrameType


class TotoWarning(UserWarning):
    """What the command says after `warning:`: about a series, a model or a setting."""


def warn(sentence: str) -> None:
    level = 1
    caller: FrameType | None = sys._getframe()
    while caller is not None and str(caller.f_globals.get("__name__")).partition(".")[0] == __package__:
        level, caller = level + 1, caller.f_back
    warnings.warn(sentence, TotoWarning, stacklevel=level)
