"""Where models are found: folders, the bundled one, the Hugging Face cache, a download."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

from support import engine

import totocpp
from totocpp.hub import locate_model

BUNDLED = Path(str(engine().info["path"]))
WITHOUT_HUB = {"huggingface_hub": None}  # importing it fails


def make_snapshot(cache: Path, name: str, commit: str = "abc123", reference: str = "main") -> Path:
    """The layout of huggingface_hub's cache: blobs, links to them, and the revision in refs."""
    folder = cache / ("models--" + name.replace("/", "--"))
    (folder / "refs").mkdir(parents=True, exist_ok=True)
    (folder / "refs" / reference).write_text(commit)
    snapshot = folder / "snapshots" / commit
    snapshot.mkdir(parents=True, exist_ok=True)
    for file in ("config.json", "model.safetensors"):
        blob = folder / "blobs" / file
        blob.parent.mkdir(exist_ok=True)
        shutil.copyfile(BUNDLED / file, blob)
        (snapshot / file).symlink_to(blob)
    return snapshot


class Locating(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = Path(folder.name)
        patch = mock.patch.dict(os.environ, {"HF_HUB_CACHE": str(self.cache)})
        patch.start()
        self.addCleanup(patch.stop)

    def test_the_cache(self) -> None:
        snapshot = make_snapshot(self.cache, "Datadog/Toto-Open-Base-1.0")
        self.assertEqual(locate_model("Datadog/Toto-Open-Base-1.0"), str(snapshot))
        loaded = totocpp.Engine.from_pretrained("Datadog/Toto-Open-Base-1.0")
        self.assertEqual(loaded.name, "Datadog/Toto-Open-Base-1.0")
        other = make_snapshot(self.cache, "Datadog/Toto-Open-Base-1.0", "def456", "v2")
        self.assertEqual(locate_model("Datadog/Toto-Open-Base-1.0", revision="v2"), str(other))
        self.assertEqual(locate_model("Datadog/Toto-Open-Base-1.0", revision="abc123"), str(snapshot))

    def test_hf_home(self) -> None:
        snapshot = make_snapshot(self.cache / "hub", "a/b")
        with mock.patch.dict(os.environ, {"HF_HOME": str(self.cache)}):
            del os.environ["HF_HUB_CACHE"]
            self.assertEqual(locate_model("a/b"), str(snapshot))
        self.assertEqual(locate_model("a/b", cache_dir=self.cache / "hub"), str(snapshot))

    def test_missing_models(self) -> None:
        (self.cache / "empty").mkdir()
        with mock.patch.dict(sys.modules, WITHOUT_HUB):
            for model, sentence in (
                ("nope", "bundled model .toto-mini."),
                ("a/b", "not on this machine.*models--a--b.*hf download a/b"),
                ("a/../b", "no model folder"),
                (str(self.cache / "empty"), "has no config.json"),
                (__file__, "is a file"),
            ):
                with self.subTest(model), self.assertRaisesRegex(FileNotFoundError, sentence):
                    totocpp.Engine.from_pretrained(model)
        with self.assertRaisesRegex(ValueError, "name is empty"):
            locate_model("")
        with self.assertRaisesRegex(TypeError, "expected a folder or a name"):
            totocpp.Engine.from_pretrained(3)  # type: ignore[arg-type]

    def test_an_incomplete_download(self) -> None:
        snapshot = make_snapshot(self.cache, "a/b")
        (snapshot / "config.json").unlink()
        with self.assertRaisesRegex(FileNotFoundError, "incomplete"):
            locate_model("a/b", local_files_only=True)
        (self.cache / "models--a--b" / "refs" / "main").write_text("../../..")
        with self.assertRaisesRegex(ValueError, "expected the name of a revision"):
            locate_model("a/b", local_files_only=True)

    def test_an_interrupted_download_is_resumed(self) -> None:
        snapshot = make_snapshot(self.cache, "a/b")
        weights = snapshot / "model.safetensors"
        fake = types.ModuleType("huggingface_hub")
        fake.snapshot_download = lambda *_, **__: str(make_snapshot(self.cache / "whole", "a/b"))  # type: ignore[attr-defined]
        index = snapshot / "model.safetensors.index.json"
        for text in (None, '{"weight_map": {"x": "part-2.safetensors"}}'):
            weights.unlink(missing_ok=True)
            if text is not None:
                index.write_text(text)
            lacks = "model.safetensors" if text is None else "part-2.safetensors"
            with self.assertRaisesRegex(FileNotFoundError, f"no {lacks} there.*incomplete"):
                locate_model("a/b", local_files_only=True)
            with mock.patch.dict(sys.modules, {"huggingface_hub": fake}):
                self.assertIn("whole", locate_model("a/b"))
            shutil.rmtree(self.cache / "whole")
        shutil.copyfile(BUNDLED / "model.safetensors", snapshot / "part-2.safetensors")
        self.assertEqual(locate_model("a/b", local_files_only=True), str(snapshot))

    def test_downloads_with_huggingface_hub(self) -> None:
        asked = []

        def snapshot_download(name: str, **arguments: object) -> str:
            asked.append((name, arguments["revision"]))
            return str(make_snapshot(self.cache, name))

        fake = types.ModuleType("huggingface_hub")
        fake.snapshot_download = snapshot_download  # type: ignore[attr-defined]
        with mock.patch.dict(sys.modules, {"huggingface_hub": fake}):
            with self.assertRaises(FileNotFoundError):
                locate_model("a/b", local_files_only=True)
            self.assertEqual(asked, [])
            first = locate_model("a/b", revision="main")
            self.assertEqual(locate_model("a/b"), first)  # now from the cache
        self.assertEqual(asked, [("a/b", "main")])

    def test_a_download_that_fails(self) -> None:
        def snapshot_download(*_: object, **__: object) -> str:
            raise OSError("no route\nto host")

        fake = types.ModuleType("huggingface_hub")
        fake.snapshot_download = snapshot_download  # type: ignore[attr-defined]
        with (
            mock.patch.dict(sys.modules, {"huggingface_hub": fake}),
            self.assertRaisesRegex(FileNotFoundError, "could not be downloaded: no route to host"),
        ):
            locate_model("a/b")


if __name__ == "__main__":
    unittest.main()
