"""Contents and dependencies of the wheel that WHEEL names; without WHEEL of the installed package."""

from __future__ import annotations

import importlib.metadata
import os
import re
import struct
import unittest
import zipfile
from pathlib import Path

from support import SOURCE

import totocpp

# On every Linux that has Python; the wheel brings the others.
PLATFORM = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libpthread.so.0", "libdl.so.2"}
LOADER = re.compile(r"ld-linux.*")


def needed(path: Path) -> tuple[set[str], list[str]]:
    """DT_NEEDED and DT_RUNPATH of an ELF file of 64 bits."""
    raw = path.read_bytes()
    assert raw[:5] == b"\x7fELF\x02"
    (start,) = struct.unpack_from("<Q", raw, 32)
    size, count = struct.unpack_from("<HH", raw, 54)
    segments = [struct.unpack_from("<IIQQQQ", raw, start + i * size) for i in range(count)]
    loads = [(virtual, offset, length) for kind, _, offset, virtual, _, length in segments if kind == 1]

    def offset_of(address: int) -> int:
        return next(offset + address - virtual for virtual, offset, length in loads if virtual <= address < virtual + length)

    (dynamic,) = [(offset, length) for kind, _, offset, _, _, length in segments if kind == 2]
    entries = [struct.unpack_from("<QQ", raw, at) for at in range(dynamic[0], sum(dynamic), 16)]
    strings = offset_of(next(value for tag, value in entries if tag == 5))

    def text(value: int) -> str:
        return raw[strings + value : raw.index(b"\0", strings + value)].decode()

    return {text(v) for tag, v in entries if tag == 1}, [text(v) for tag, v in entries if tag in (15, 29)]


class Package(unittest.TestCase):
    folder = Path(totocpp.__file__).parent

    def test_libraries(self) -> None:
        libraries = {path.name: path for path in self.folder.glob("*.so*")}
        self.assertTrue(any(name.startswith("_native") for name in libraries))
        for name, path in libraries.items():
            wanted, places = needed(path)
            foreign = {other for other in wanted - PLATFORM - set(libraries) if not LOADER.fullmatch(other)}
            self.assertEqual(foreign, set(), name)
            if name.startswith("_native"):
                self.assertEqual(places, ["$ORIGIN"])

    def test_contents(self) -> None:
        self.assertTrue((self.folder / "py.typed").exists())
        self.assertIn("class Engine", (self.folder / "_native.pyi").read_text())
        self.assertTrue((self.folder / "models" / "toto-mini" / "model.safetensors").exists())

    def test_metadata(self) -> None:
        about = importlib.metadata.metadata("totocpp")
        version = re.search(r"project\(toto VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text())
        self.assertEqual({about["Version"], totocpp.__version__}, {version.group(1) if version else None})
        required = [r for r in importlib.metadata.requires("totocpp") or [] if "extra ==" not in r]
        self.assertEqual([re.split(r"[^a-z]", r)[0] for r in required], ["numpy"])

    def test_size(self) -> None:
        wheel = os.environ.get("WHEEL")
        if not wheel:
            self.skipTest("needs WHEEL")
        self.assertLess(Path(wheel).stat().st_size, 15_000_000)
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
        self.assertTrue(any(name.endswith("licenses/python/THIRD_PARTY.md") for name in names), names)


if __name__ == "__main__":
    unittest.main()
