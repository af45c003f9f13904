"""What a report says about its origin: commit, CPU, and the command without paths of this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent


def commit() -> str:
    """The commit of the source tree, with "-dirty" after it if files differ from it."""
    command = ["git", "-C", str(SOURCE), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "no commit"


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown CPU"


def shown_path(path: Path) -> Path:
    """The path as another machine can use it: relative to the source tree, or the name alone."""
    path = path.resolve()
    return path.relative_to(SOURCE) if path.is_relative_to(SOURCE) else Path(path.name)
