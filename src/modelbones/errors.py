"""Every error this library raises on purpose.

    ModelbonesError
    ├── UsageError                 an argument no model could make right
    ├── SourceError                MODEL, or a file of it, cannot be read
    ├── ConfigError                a config.json that was read and refused
    ├── UnknownArchitectureError   a model_type no family here declares
    ├── UnknownSchemeError         a quantisation scheme that cannot be judged yet
    ├── EngineRefusedError         an engine would not start so, or no source tells
    ├── HeaderError                one checkpoint file whose header is wrong
    │   └── TruncatedError         one that ends before its data does
    ├── ExtraMissingError          an optional dependency that is not installed
    └── LiveStateError             a live cache asked for what it must refuse
        ├── CacheFullError         a write past the rows reserved
        ├── RowsMissingError       a cursor behind the sequence it serves
        ├── BadRowsError           rows of a wrong shape, type or value
        ├── SelectionError         a selection wider than its tile
        ├── BlobError              a snapshot that cannot be restored here
        ├── HandleError            a device handle freed twice, foreign or stale
        └── DeviceFullError        an allocation the device does not give

A message reads `place: what was found; what was expected; what to do`. What a
checkpoint lacks is a finding, a returned value, and not an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from json import dumps


class ModelbonesError(Exception):
    """The root: catch it to catch everything raised here on purpose."""


class UsageError(ModelbonesError):
    """An argument is wrong whatever the model: a negative count, an unknown flag value."""


class SourceError(ModelbonesError):
    """MODEL or a file of it is not there, is not readable or is not what its name says."""

    def __init__(self, *, place: str, found: str, fix: str) -> None:
        self.place = place
        self.found = found
        self.fix = fix
        super().__init__(f"{place}: {found}; {fix}")


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a config, at one key.

    Attributes:
        path: Dotted key path, e.g. "text_config.index_kpool".
        found: What stands there, shortened, or "missing".
        expected: What must stand there.
    """

    path: str
    found: str
    expected: str

    def __str__(self) -> str:
        return f"{self.path}: found {self.found}; expected {self.expected}"


class ConfigError(ModelbonesError):
    """A config was refused; `faults` holds everything wrong with it, in reading order."""

    def __init__(self, *, place: str, faults: tuple[Fault, ...]) -> None:
        self.place = place
        self.faults = faults
        noun = "fault" if len(faults) == 1 else "faults"
        lines = "".join(f"\n  {fault}" for fault in faults)
        super().__init__(f"{place}: {len(faults)} {noun} in this config; correct each:{lines}")


class UnknownArchitectureError(ModelbonesError):
    """The top-level `model_type` belongs to no family declared here."""

    def __init__(self, *, place: str, model_type: str, known: tuple[str, ...], hint: str) -> None:
        self.place = place
        self.model_type = model_type
        self.known = known
        super().__init__(
            f"{place}: unknown architecture {dumps(model_type)}; expected one of {', '.join(known)}; {hint}"
        )


class UnknownSchemeError(ModelbonesError):
    """A checkpoint is stored in a quantisation scheme no code here can judge."""

    def __init__(self, *, place: str, scheme: str, known: tuple[str, ...]) -> None:
        self.place = place
        self.scheme = scheme
        self.known = known
        super().__init__(
            f'{place}: unknown quantisation scheme "{scheme}"; expected one of {", ".join(known)}; '
            "no verdict is given on a scheme that cannot be judged"
        )


class EngineRefusedError(ModelbonesError):
    """The engine would not start so, or no source tells what it would do.

    Attributes:
        engine: Whose rule it is.
        place: The setting or the state that is refused.
        found: What was asked for.
        expected: What would be accepted.
        fix: The way out.
    """

    def __init__(self, *, place: str, found: str, expected: str, fix: str, engine: str = "vllm") -> None:
        self.engine = engine
        self.place = place
        self.found = found
        self.expected = expected
        self.fix = fix
        super().__init__(f"{engine}: {place}: found {found}; expected {expected}; {fix}")


class HeaderError(ModelbonesError):
    """One checkpoint file is wrong inside: its header, its offsets, its size.

    `faults` holds everything wrong with it, in reading order, where it is more than one
    sentence; `names` the tensors it names, as far as they could be read.
    """

    def __init__(
        self,
        *,
        place: str,
        found: str,
        expected: str,
        fix: str,
        faults: tuple[Fault, ...] = (),
        names: tuple[str, ...] = (),
    ) -> None:
        self.place = place
        self.found = found
        self.expected = expected
        self.fix = fix
        self.faults = faults
        self.names = names
        super().__init__(f"{place}: {found}; expected {expected}; {fix}")


class TruncatedError(HeaderError):
    """One checkpoint file ends before its header says it does.

    `missing_bytes` is at least what is missing; `partly` and `wholly` name the tensors
    cut by the end and those past it.
    """

    def __init__(
        self,
        *,
        place: str,
        found: str,
        expected: str,
        fix: str,
        missing_bytes: int,
        partly: tuple[str, ...] = (),
        wholly: tuple[str, ...] = (),
    ) -> None:
        self.missing_bytes = missing_bytes
        self.partly = partly
        self.wholly = wholly
        super().__init__(place=place, found=found, expected=expected, fix=fix)


class LiveStateError(ModelbonesError):
    """A live cache was asked for something it must refuse; nothing was changed."""


class ExtraMissingError(ModelbonesError, ImportError):
    """Something was asked for that needs an extra of this package."""

    def __init__(self, *, place: str, module: str, extra: str) -> None:
        self.place = place
        self.module = module
        self.extra = extra
        super().__init__(
            f"{place}: {module} is not installed; expected the extra `{extra}`; pip install 'modelbones[{extra}]'"
        )


class CacheFullError(LiveStateError):
    """A write would pass the rows reserved for this sequence.

    `max_seq_len` is the least `--max-seq-len` whose whole pools hold row `end`.
    """

    def __init__(self, *, end: int, capacity: int, max_seq_len: int) -> None:
        self.end = end
        self.capacity = capacity
        self.max_seq_len = max_seq_len
        super().__init__(
            f"indexer cache: row {end} is past its {capacity} reserved rows; "
            f"the cache never grows; raise --max-seq-len to at least {max_seq_len}"
        )


class RowsMissingError(LiveStateError):
    """A step, a rewind or a read asks for rows that were never written: rows `held` to `wanted`."""

    def __init__(self, *, held: int, wanted: int, what: str, fix: str) -> None:
        self.held = held
        self.wanted = wanted
        self.missing = wanted - held
        noun = "row is" if self.missing == 1 else "rows are"
        super().__init__(f"indexer cache: {held} rows held; {what} {wanted}, so {self.missing} {noun} MISSING; {fix}")


class BadRowsError(LiveStateError):
    """Rows offered to a live cache are of a wrong shape, type or value."""

    def __init__(self, *, name: str, found: str, expected: str, fix: str) -> None:
        self.name = name
        self.found = found
        self.expected = expected
        super().__init__(f"{name}: found {found}; expected {expected}; {fix}")


class SelectionError(LiveStateError):
    """A selection takes more pools than the selector's tile has places."""

    def __init__(self, *, select_k: int, tile: int, seq: int) -> None:
        self.select_k = select_k
        self.tile = tile
        self.seq = seq
        super().__init__(
            f"selection over {seq} tokens: {select_k} pools to select; expected at most {tile}, the selector's tile; "
            "lower index_topk or raise index_kpool"
        )


class BlobError(LiveStateError):
    """A snapshot cannot be restored into this cache."""

    def __init__(self, *, found: str, expected: str, fix: str) -> None:
        self.found = found
        self.expected = expected
        super().__init__(f"snapshot: found {found}; expected {expected}; {fix}")


class HandleError(LiveStateError):
    """A device handle was freed before, is another backend's, or is no handle."""

    def __init__(self, *, place: str, found: str, expected: str, fix: str) -> None:
        self.place = place
        self.found = found
        self.expected = expected
        super().__init__(f"{place}: {found}; expected {expected}; {fix}")


class DeviceFullError(LiveStateError):
    """The device does not give an allocation of `nbytes` while `live_bytes` are held."""

    def __init__(self, *, place: str, nbytes: int, live_bytes: int) -> None:
        self.place = place
        self.nbytes = nbytes
        self.live_bytes = live_bytes
        super().__init__(
            f"{place}: the device gives no {nbytes} bytes beside the {live_bytes} live ones; "
            "expected room for them; lower --max-seq-len or free other sequences"
        )
