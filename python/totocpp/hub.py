"""Finds a model's folder: a path, the bundled model, or the local Hugging Face cache.

Models that are not on this machine are downloaded only if `huggingface_hub` is installed.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from ._settings import BUNDLED_MODEL

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_BUNDLED = Path(__file__).parent / "models"


def _hub_cache(cache_dir: str | os.PathLike[str] | None) -> Path:
    """huggingface_hub/constants.py: HF_HUB_CACHE"""
    if cache_dir is not None:
        return Path(cache_dir)
    if cache := os.environ.get("HF_HUB_CACHE"):
        return Path(cache)
    if home := os.environ.get("HF_HOME"):
        return Path(home) / "hub"
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache) / "huggingface" / "hub"
    return Path.home() / ".cache" / "huggingface" / "hub"


def _snapshot(name: str, revision: str | None, cache_dir: str | os.PathLike[str] | None) -> Path:
    folder = _hub_cache(cache_dir) / ("models--" + name.replace("/", "--"))
    if not folder.is_dir():
        raise FileNotFoundError(
            f"the model {name} is not on this machine, looked for {folder}; fetch it with "
            f"`hf download {name}`, install huggingface_hub to have it downloaded, or give a folder"
        )
    wanted = revision or "main"
    reference = folder / "refs" / wanted
    commit = reference.read_text(encoding="utf-8").strip() if reference.is_file() else wanted
    if not _NAME.fullmatch(commit):
        raise ValueError(f'{reference}: has "{commit}", expected the name of a revision')
    snapshot = folder / "snapshots" / commit
    if absent := _absent(snapshot):
        raise FileNotFoundError(
            f"{snapshot}: no {absent} there, expected revision {wanted} of {name}; the download is "
            f"incomplete: repeat `hf download {name}`"
        )
    return snapshot


def _absent(snapshot: Path) -> str | None:
    """The first file that is missing, if any. Links exist before their files are downloaded."""
    if not (snapshot / "config.json").exists():
        return "config.json"
    if (snapshot / "model.safetensors").exists():
        return None
    index = snapshot / "model.safetensors.index.json"
    if not index.exists():
        return "model.safetensors"
    try:
        shards = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None  # the engine reports the error
    return next((str(shard) for shard in shards if not (snapshot / str(shard)).exists()), None)


def locate_model(
    model: str,
    *,
    revision: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    local_files_only: bool = False,
    force_download: bool = False,
    token: str | bool | None = None,
) -> str:
    """The folder of `model`. FileNotFoundError says where it was looked for."""
    if not model:
        raise ValueError("the model's name is empty; expected a folder or a name")
    if (Path(model) / "config.json").exists():
        return model
    bundled = _BUNDLED / model
    if _NAME.fullmatch(model) and (bundled / "config.json").exists():
        return str(bundled)
    if Path(model).is_dir():
        raise FileNotFoundError(
            f"{model}: holds no config.json; expected a folder with config.json and model.safetensors"
        )
    if Path(model).exists():
        raise FileNotFoundError(f"{model}: is a file, expected the folder with config.json")
    parts = model.split("/")
    if len(parts) != 2 or not all(_NAME.fullmatch(part) for part in parts):
        raise FileNotFoundError(
            f"no model folder at {model}; expected a folder with config.json and model.safetensors, the "
            f"name of a bundled model ({BUNDLED_MODEL}), or owner/name"
        )
    if force_download and not local_files_only:
        return _download(model, revision, cache_dir, token, force=True)
    try:
        return str(_snapshot(model, revision, cache_dir))
    except FileNotFoundError:
        if local_files_only:
            raise
        try:
            import huggingface_hub  # noqa: F401
        except ImportError:
            pass
        else:
            return _download(model, revision, cache_dir, token)
        raise


def _download(
    model: str,
    revision: str | None,
    cache_dir: str | os.PathLike[str] | None,
    token: str | bool | None,
    force: bool = False,
) -> str:
    from huggingface_hub import snapshot_download

    try:
        folder = snapshot_download(
            model,
            revision=revision,
            cache_dir=cache_dir,
            token=token,
            force_download=force,
            allow_patterns=["config.json", "*.safetensors", "*.safetensors.index.json"],
        )
    except Exception as error:  # error types differ between versions
        reason = " ".join(str(error).split())
        raise FileNotFoundError(
            f"the model {model} is not on this machine and could not be downloaded: {reason}; "
            f"give a folder, or fetch it elsewhere with `hf download {model}`"
        ) from error
    return str(folder)
