"""`Glm5NextDsaState`: one sequence's indexer cache for one layer, and the cursor over it.

Source: Metrale/metrale-inference-alpha model-arch glm5next_dsa/state.rs::Glm5NextDsaState, whose names
this keeps. Improved on purpose: a refused call changes nothing, `alloc` that fails half way
frees what it took, nothing is used after `free`, and `free` that fails half way may be called again.
"""

from __future__ import annotations

from typing import Any

from modelbones.buffers import Buffer
from modelbones.errors import BlobError, CacheFullError, HandleError, RowsMissingError, UsageError
from modelbones.live import blob as snapshot
from modelbones.live.backend import Backend, Handle
from modelbones.live.counts import ensure_count
from modelbones.live.dsa_config import Glm5NextDsaConfig
from modelbones.live.rows import Rows, ensure_finite, ensure_same_rows
from modelbones.live.select import DsaSelectGeometry
from modelbones.parts.indexer import indexer_rows, max_dsa_context
from modelbones.units import round_up


class Glm5NextDsaState:
    """One sequence's indexer cache for one layer, allocated once and never grown.

    The selector reads rows `[0, len)`. Make one with `alloc`, or `borrowed` for a view over
    buffers that someone else frees. It is one thread's at a time.
    """

    __slots__ = ("_buffers", "_capacity", "_handles", "_index_head_dim", "_is_owner", "_len")

    def __init__(self, cfg: Glm5NextDsaConfig, handles: list[Handle | None], *, length: int, is_owner: bool) -> None:
        self._buffers = _buffers(cfg)
        self._capacity = max_dsa_context(cfg)
        self._index_head_dim = cfg.index_head_dim
        self._handles = handles
        self._len = length
        self._is_owner = is_owner

    @classmethod
    def alloc(cls, backend: Backend, cfg: Glm5NextDsaConfig) -> Glm5NextDsaState:
        """Reserve three buffers for the whole of `cfg.max_context`, in whole pools.

        Raises:
            ConfigError: `cfg` does not validate.
            DeviceFullError: The device does not give one of them; those before it are freed.
        """
        cfg.validate()
        taken: list[Handle | None] = []
        try:
            for buffer in _buffers(cfg):
                taken.append(backend.alloc(buffer.reserved_nbytes(max_context=cfg.max_context)))
        except BaseException as error:
            for failure in _free_each(backend, taken):
                error.add_note(f"a buffer taken before could not be freed: {failure}")
            raise
        return cls(cfg, taken, length=0, is_owner=True)

    @classmethod
    def borrowed(
        cls,
        cfg: Glm5NextDsaConfig,
        k_normed: Handle | None,
        gate: Handle | None,
        valid: Handle | None,
        *,
        length: int = 0,
    ) -> Glm5NextDsaState:
        """A view with its own cursor over buffers that their owner frees.

        Raises:
            HandleError: A handle is none, or too small for `cfg`.
            CacheFullError: `length` is past the rows reserved.
        """
        cfg.validate()
        handles = [k_normed, gate, valid]
        for buffer, handle in zip(_buffers(cfg), handles, strict=True):
            needed = buffer.reserved_nbytes(max_context=cfg.max_context)
            if handle is None or handle.nbytes < needed:
                found = "no handle" if handle is None else f"a handle of {handle.nbytes} bytes"
                expected = f"at least {needed} bytes"
                raise HandleError(place=buffer.name, found=found, expected=expected, fix="borrow from a live owner")
        view = cls(cfg, handles, length=0, is_owner=False)
        view.ensure_room_through(ensure_count("length", length))
        view._len = length
        return view

    @property
    def k_normed(self) -> Handle | None:
        """`[capacity, index_head_dim] bf16`, keys after their norm; None once freed."""
        return self._handles[0]

    @property
    def gate(self) -> Handle | None:
        """`[capacity, index_head_dim] bf16`, the compress gate; None once freed."""
        return self._handles[1]

    @property
    def valid(self) -> Handle | None:
        """`[capacity] u8`, not zero where the position counts; None once freed."""
        return self._handles[2]

    def len(self) -> int:
        """Rows written and kept; the selector reads `[0, len)`."""
        return self._len

    def is_empty(self) -> bool:
        """Whether no row is kept."""
        return self._len == 0

    def capacity(self) -> int:
        """Rows reserved."""
        return self._capacity

    def index_head_dim(self) -> int:
        """Width of a key row; a snapshot of another width is refused."""
        return self._index_head_dim

    def row_offset(self, pos: int) -> int:
        """Byte offset of row `pos` in `k_normed` and in `gate`; `pos` may be the end, `capacity`."""
        self._ensure_reserved(ensure_count("pos", pos))
        return pos * self._buffers[0].row_bytes()

    def ensure_room(self, n: int) -> None:
        """Raise `CacheFullError` when `n` more rows would pass the rows reserved."""
        self.ensure_room_through(self._len + ensure_count("n", n))

    def ensure_room_through(self, end: int) -> None:
        """The same for an absolute end row, when a rejected draft left `len` ahead of the sequence."""
        self._held()
        self._ensure_reserved(ensure_count("end", end))

    def advance(self, n: int) -> None:
        """Count `n` rows that were written at `[len, len + n)`."""
        self.ensure_room(n)
        self._len += n

    def rewind_to(self, n: int) -> None:
        """Keep the first `n` rows, after a rejected draft; it only shrinks.

        Rows from `n` on stay in the buffers but are unreachable, and the next write covers
        them. What was computed from them elsewhere (a pool they completed) is stale.
        """
        self._held()
        if ensure_count("n", n) > self._len:
            fix = "a rewind only shrinks; find where the caller lost the sequence position"
            raise RowsMissingError(held=self._len, wanted=n, what="the rewind goes to row", fix=fix)
        self._len = n

    def sync_to(self, seq_len: int, k: int) -> None:
        """Put the cursor where a replayed step of `k` rows, begun at `seq_len`, leaves it.

        Ahead of `seq_len` (a rejected draft) it is rewound first; behind it, rows are missing.
        """
        self._held()
        end = ensure_count("seq_len", seq_len) + ensure_count("k", k)
        if self._len < seq_len:
            fix = "replay or prefill the missing rows first"
            raise RowsMissingError(held=self._len, wanted=seq_len, what="the replayed step starts at row", fix=fix)
        self._ensure_reserved(end)
        self._len = end

    def geometry(self, cfg: Glm5NextDsaConfig, q_rows: int) -> DsaSelectGeometry:
        """The selection of `q_rows` queries over everything kept."""
        self._held()
        if cfg.index_head_dim != self._index_head_dim:
            raise UsageError(
                f"geometry: found index_head_dim {cfg.index_head_dim}; expected {self._index_head_dim}, this "
                "cache's; pass the config it was allocated with"
            )
        return DsaSelectGeometry.plan(cfg, self._len, q_rows)

    def append(self, backend: Backend, k_normed: Any, gate: Any, valid: Any) -> None:
        """Write rows at `[len, len + n)` and advance, or change nothing.

        Args:
            backend: The backend that holds the buffers.
            k_normed: `[n, index_head_dim] bf16`.
            gate: `[n, index_head_dim] bf16`.
            valid: `[n] u8`.

        Raises:
            BadRowsError: A wrong shape, type, or a value that is not finite.
            CacheFullError: The rows would pass those reserved.
            HandleError: The cache was freed, or is another backend's.
        """
        handles = self._live_on(backend)
        rows = Rows(k_normed, gate, valid)
        num_rows = ensure_same_rows(backend, self._buffers, rows)
        self.ensure_room(num_rows)
        ensure_finite(backend, self._buffers, rows)
        for buffer, handle, array in zip(self._buffers, handles, rows, strict=True):
            backend.write(handle, self._len * buffer.row_bytes(), array)
        self._len += num_rows

    def rows(self, backend: Backend, start: int, stop: int) -> Rows:
        """Copies of rows `[start, stop)`, all of them below `len`."""
        handles = self._live_on(backend)
        if ensure_count("start", start) > ensure_count("stop", stop):
            raise UsageError(f"rows: found start {start} after stop {stop}; expected start <= stop; swap them")
        if stop > self._len:
            fix = "read below len; what lies past it was never written or was taken back"
            raise RowsMissingError(held=self._len, wanted=stop, what="the read ends at row", fix=fix)
        return Rows(
            *(
                backend.read(handle, start * buffer.row_bytes(), (stop - start, *buffer.shape), buffer.dtype)
                for buffer, handle in zip(self._buffers, handles, strict=True)
            )
        )

    def snapshot_blob(self, backend: Backend) -> bytes:
        """Everything kept, as `16 + len * (4 * index_head_dim + 1)` bytes."""
        pairs = zip(self._buffers, self._live_on(backend), strict=True)
        parts = [backend.copy_out(handle, 0, self._len * buffer.row_bytes()) for buffer, handle in pairs]
        return snapshot.pack(self._len, self._index_head_dim, parts)

    def restore_blob(self, blob: bytes | bytearray | memoryview, backend: Backend) -> None:
        """Replace what is kept by a snapshot; one that does not fit changes nothing.

        The bytes come back as they were taken, whatever their values. When the device fails
        in the middle of a copy, nothing is kept: `len` is 0.

        Raises:
            BlobError: Its header, width, row count or size is wrong.
            HandleError: The cache was freed, or is another backend's.
        """
        handles = self._live_on(backend)
        if not isinstance(blob, bytes | bytearray | memoryview):
            raise BlobError(found=type(blob).__name__, expected="bytes", fix="pass what snapshot_blob returned")
        raw = bytes(blob)
        length = snapshot.length_of(raw, self._buffers, index_head_dim=self._index_head_dim, capacity=self._capacity)
        self._len = 0
        for handle, part in zip(handles, snapshot.parts_of(raw, length, self._buffers), strict=True):
            backend.copy_in(handle, 0, part)
        self._len = length

    def free(self, backend: Backend) -> None:
        """Give the buffers back, once; a view only lets go of them. A second call does nothing.

        Each buffer that was freed is let go at once, and `len` is 0 then. When the backend
        fails, the others are still freed, the first failure is raised, and another call
        tries only what is left: nothing is freed twice, nothing is lost.
        """
        failures = _free_each(backend, self._handles) if self._is_owner else []
        if not self._is_owner:
            self._handles = [None, None, None]
        if None in self._handles:
            self._len = 0
        for failure in failures:
            raise failure

    def _held(self) -> list[Handle]:
        held = [handle for handle in self._handles if handle is not None]
        if len(held) < len(self._handles):
            found, fix = "this state was freed", "allocate a new one; nothing survives free"
            raise HandleError(place="indexer cache", found=found, expected="a live one", fix=fix)
        return held

    def _live_on(self, backend: Backend) -> list[Handle]:
        """The three handles, all live on `backend`."""
        held = self._held()
        for handle in held:
            backend.ensure_live(handle)
        return held

    def _ensure_reserved(self, end: int) -> None:
        if end > self._capacity:
            enough = round_up(end, self._buffers[0].per.reserve_step)
            raise CacheFullError(end=end, capacity=self._capacity, max_seq_len=enough)


def _buffers(cfg: Glm5NextDsaConfig) -> tuple[Buffer, ...]:
    return indexer_rows(index_head_dim=cfg.index_head_dim, index_kpool=cfg.index_kpool)


def _free_each(backend: Backend, handles: list[Handle | None]) -> list[Exception]:
    """Free every handle, each set to None once it is; what could not be freed is returned as errors."""
    failures = []
    for place, handle in enumerate(handles):
        if handle is None:
            continue
        try:
            backend.free(handle)
        except Exception as error:
            failures.append(error)
        else:
            handles[place] = None
    return failures
