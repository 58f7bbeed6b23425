"""`read_checkpoint`: a directory, an index or one file, to a `Census`.

One bad file is a finding, and the rest is still read. Only a MODEL that cannot be read at
all is an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from modelbones.checkpoint import fileset
from modelbones.checkpoint.census import Census
from modelbones.checkpoint.reading import Opened, no_collection, take_census
from modelbones.checkpoint.safetensors import read_header
from modelbones.checkpoint.stored import Forms
from modelbones.errors import HeaderError, SourceError


def read_checkpoint(path: str | os.PathLike[str]) -> Census:
    """What is stored at `path`: a directory, a `*.safetensors.index.json` or one `*.safetensors`.

    Raises SourceError where there is nothing to read: no such path, no permission, a
    directory without safetensors files. All else is in the census's findings.
    """
    with no_collection():
        source, folder = fileset.locate(Path(path))

        def open_all(names: Sequence[str], forms: Forms) -> Iterator[tuple[str, Opened]]:
            return ((name, open_file(folder / name, name, forms)) for name in names)

        return take_census(source, open_all, place=str(path))


def open_file(path: Path, name: str, forms: Forms) -> Opened:
    """The header of the file at `path`, which messages call `name`."""
    try:
        return read_header(path, place=name, forms=forms)
    except (HeaderError, SourceError) as error:
        error.__context__ = None  # Kept errors must not keep the bytes of their file.
        return error.with_traceback(None)
