"""MODEL: an existing path, a preset, or a repository of the Hub; for every verb the same."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelbones import __version__
from modelbones.checkpoint.reference import SCHEME, Reference, parse_reference
from modelbones.config_file import MAX_CONFIG_BYTES, load_config, parse_config
from modelbones.errors import SourceError, UsageError
from modelbones.families.model_config import ModelConfig
from modelbones.families.registry import preset_names, read_config, read_mapping

if TYPE_CHECKING:
    from modelbones.checkpoint.census import Census
    from modelbones.checkpoint.remote import Repository

CONFIG = "config.json"
QUANTIZATION = "hf_quant_config.json"
Placed = tuple[str, Mapping[str, Any]]
"""A JSON object, and where it stands for messages."""


class LocalModel:
    """A path or a preset.

    Attributes:
        revision: The commit its files are at, where they are the Hub's and cached.
    """

    def __init__(self, source: str, revision: str | None = None) -> None:
        self._source = source
        self._path = Path(source)
        self.revision = revision

    def config(self) -> ModelConfig:
        """The config MODEL is, or has."""
        self._ensure_readable()
        return read_config(self._source)

    def _ensure_readable(self) -> None:
        if self._path.suffix.lower() == ".gguf" and self._path.is_file():
            found, fix = "a GGUF file, whose header is not read yet", "name the safetensors checkpoint it was made from"
            raise SourceError(place=self._source, found=found, fix=fix)

    def config_of_checkpoint(self) -> ModelConfig:
        """The config that stands beside the weights MODEL names."""
        path = self._path
        self._ensure_readable()
        if self._source in preset_names() and not os.path.lexists(self._source):
            raise UsageError(
                f"{self._source}: found a preset, which has no checkpoint; expected one; "
                f"name its directory, or make one: modelbones synth {self._source} OUT"
            )
        try:
            if path.is_dir():
                return read_config(path)
            path.stat()
        except (OSError, ValueError) as error:
            from modelbones.checkpoint.safetensors import unreadable

            raise unreadable(path, error, place=str(path)) from None
        if path.name == CONFIG:
            raise UsageError(f"{path}: found a config alone; expected a checkpoint; name the directory it stands in")
        return read_config(path.parent / CONFIG)

    def quantization(self) -> Placed | None:
        """What the producer's own file beside the config says, where there is one."""
        beside = (self._path if self._path.is_dir() else self._path.parent) / QUANTIZATION
        return (str(beside), load_config(beside)) if beside.is_file() else None

    def census(self) -> Census:
        """What its checkpoint stores."""
        from modelbones.checkpoint.directory import read_checkpoint

        return read_checkpoint(self._source)

    def names_in(self, file: str) -> Collection[str]:
        """Names of the tensors in a file beside the checkpoint's own; none when it cannot be read."""
        from modelbones.checkpoint.directory import read_checkpoint

        folder = self._path if self._path.is_dir() else self._path.parent
        try:
            return read_checkpoint(folder / file).tensors.keys()
        except SourceError:
            return ()


class HubModel:
    """A repository of the Hub, at the commit its revision was when it was opened."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self.revision: str | None = repository.commit

    def config(self) -> ModelConfig:
        """Its config.json."""
        place, values = self._read(CONFIG)
        return read_mapping(values, place=place)

    def config_of_checkpoint(self) -> ModelConfig:
        """Its config.json; the headers are under way from here on."""
        self._repository.begin({CONFIG: MAX_CONFIG_BYTES, QUANTIZATION: MAX_CONFIG_BYTES})
        return self.config()

    def quantization(self) -> Placed | None:
        """Its hf_quant_config.json, where there is one."""
        return self._read(QUANTIZATION) if QUANTIZATION in self._repository.files else None

    def _read(self, name: str) -> Placed:
        place = self._repository.place(name)
        return place, parse_config(self._repository.read(name, most_bytes=MAX_CONFIG_BYTES), place=place)

    def census(self) -> Census:
        """What its checkpoint stores, by headers alone; a bar on a terminal shows how far it is."""
        from modelbones.cli.progress import bar

        with bar("headers") as progress:
            return self._repository.census(progress)

    def names_in(self, file: str) -> Collection[str]:
        """Names of the tensors in a file beside the checkpoint's own; none when its header is refused."""
        return self._repository.names_in(file)


Model = LocalModel | HubModel


@contextmanager
def open_model(text: str) -> Iterator[Model]:
    """The model `text` names: an existing path wins, then a preset, then the Hub.

    Raises:
        SourceError: The Hub does not answer for it.
        ExtraMissingError: It is the Hub's, and huggingface_hub is not installed.
    """
    is_local = not text.startswith(SCHEME) and (os.path.lexists(text) or text in preset_names())
    reference = None if is_local else parse_reference(text)
    if reference is None:
        yield LocalModel(text)
        return
    from modelbones.checkpoint import hub

    hub.ensure_usable(reference)
    if hub.is_offline():
        yield _cached(reference)
        return
    from modelbones.checkpoint.remote import open_repository

    repository = open_repository(reference, user_agent=f"modelbones/{__version__}")
    try:
        yield HubModel(repository)
    finally:
        repository.close()


def _cached(reference: Reference) -> LocalModel:
    from modelbones.checkpoint import hub

    commit = hub.cached_commit(reference)
    snapshot = None if commit is None else hub.cached_snapshot(reference, commit)
    if snapshot is None:
        found = "not in the cache, and HF_HUB_OFFLINE is set"
        raise SourceError(place=str(reference), found=found, fix="unset it, or download the repository first")
    return LocalModel(str(snapshot), revision=commit)
