#!/usr/bin/env python3
"""Let PyTorch use AMX in a virtual machine that hides how large its tiles are.

    tools/train_enable_amx.py ENV/lib/python3.*/site-packages/torch/lib/libtorch_cpu.so

oneDNN, which multiplies bf16 for PyTorch, asks CPUID leaf 0x1D for the size of AMX's tiles. Some virtual machines
have AMX but answer zeros there, and oneDNN then crashes. This writes the only sizes there are (palette 1: 8 tiles of
16 rows x 64 bytes) into the library of a throw-away environment. Training is several times as fast: 1143 against 137
GFLOP/s of one product on a Xeon with two cores.
"""

import struct
import subprocess
import sys

SIZES = {
    "get_max_palette()": 1, "get_target_palette()": 1, "get_max_tiles(int)": 8, "get_max_rows(int)": 16,
    "get_max_column_bytes(int)": 64,
}  # fmt: skip


def output_of(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def loaded_segments(library: str) -> list[tuple[int, int, int]]:
    """(address, offset in the file, bytes in the file) of every segment that is loaded."""
    fields = [line.split() for line in output_of("readelf", "-lW", library)]
    return [(int(f[2], 16), int(f[1], 16), int(f[4], 16)) for f in fields if f and f[0] == "LOAD"]


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    library = sys.argv[1]
    symbols = output_of("nm", "-C", library)
    segments = loaded_segments(library)
    patches = []
    for name, value in SIZES.items():
        found = [int(line.split()[0], 16) for line in symbols if line.endswith(f"x64::amx::{name}") and " t " in line]
        if len(found) != 1:
            print(f"error: {library} has {len(found)} functions {name}, expected 1; nothing was changed", file=sys.stderr)
            return 3
        address, offset, _ = next(s for s in segments if s[0] <= found[0] < s[0] + s[2])
        patches.append((found[0] - address + offset, b"\xb8" + struct.pack("<i", value) + b"\xc3"))  # mov eax; ret
    with open(library, "r+b") as file:
        for place, code in patches:
            file.seek(place)
            file.write(code)
    print(f"{library}: {len(patches)} functions now answer with the sizes of palette 1")
    return 0


if __name__ == "__main__":
    sys.exit(main())
