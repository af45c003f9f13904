#!/usr/bin/env python3
"""Checks that every folder includes only what it may (ARCHITECTURE.md, "The layers")."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Folder -> project folders it may include besides itself.
ALLOWED = {
    "include/toto": set(),
    "src/base": {"toto"},
    "src/io": {"base", "toto"},
    "src/tables": {"base", "io", "toto"},
    "src/settings": {"base", "io", "tables", "toto"},
    "src/cache": {"base", "io", "toto"},
    "src/kernels": {"base", "toto"},
    "src/model": {"base", "io", "kernels", "toto"},
    "src/forecast": {"base", "io", "cache", "model", "kernels", "toto"},
    "src/validate": {"base", "io", "tables", "report", "toto"},
    "src/report": {"base", "io", "tables", "toto"},
    "src/eval": {"base", "io", "tables", "report", "toto"},
    "src/backtest": {"base", "io", "tables", "settings", "report", "toto"},
    "compile_log": {"base", "io", "toto"},
    "server": {"base", "io", "tables", "settings", "toto"},
    "python": {"base", "io", "tables", "settings", "validate", "report", "backtest", "toto"},
    "cli": {"base", "io", "tables", "settings", "cache", "validate", "report", "eval", "backtest", "model", "server", "compile_log", "toto"},
}

# Third party -> the only places that may include it.
DOORS = {
    r"simdjson": {"src/io/json.cc"},
    r"CLI/": {"cli/arguments.cc"},
    r"nanobind/|Python\.h": {
        "python/bindings.h",
        "python/bindings.cc",
        "python/bindings_backtest.cc",
        "python/bindings_engine.cc",
        "python/bindings_session.cc",
        "python/bindings_settings.cc",
        "python/bindings_verify.cc",
        "python/conversions.cc",
        "python/engine_handle.h",
        "python/running_calls.h",
    },
    r"immintrin\.h": {
        "src/kernels/avx2.cc",
        "src/kernels/avx512.cc",
        "src/kernels/avx512_vnni.cc",
        "src/io/sha256.cc",
    },
    r"boost/": {"server/connection.h", "server/connection.cc"},
    r"(zlib|zstd)\.h": {"server/decompress.cc"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)


def problems_in(path: Path) -> list[str]:
    relative = path.relative_to(ROOT).as_posix()
    folder = next(f for f in ALLOWED if relative.startswith(f + "/"))
    own = folder.split("/")[-1]
    found = []
    for quote, target in INCLUDE.findall(path.read_text(encoding="utf-8")):
        for pattern, doors in DOORS.items():
            if re.match(pattern, target) and relative not in doors:
                found.append(f"{relative}: includes {target}, which only {sorted(doors) or 'tests'} may")
        if quote == '"' and "/" in target:
            room = target.split("/")[0]
            if room != own and room not in ALLOWED[folder]:
                found.append(f"{relative}: {folder} may not include {target}")
    return found


def main() -> int:
    problems: list[str] = []
    count = 0
    for folder in ALLOWED:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".h", ".cc", ".inl"}:
                count += 1
                problems += problems_in(path)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if count == 0:
        print("error: no source file found", file=sys.stderr)
        return 1
    print(f"layers: {count} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
