"""`Workers`: many requests at once, on threads that never keep the process."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

Task = tuple[Future[Any], Callable[[], Any]]


class Workers:
    """Threads that take calls in the order they were given.

    The threads are daemons: a person who interrupts, or a refused config, does not wait
    for a server that is silent.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._num_threads = 0

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """What `call` will give."""
        future: Future[Any] = Future()
        self._tasks.put((future, call))
        if self._num_threads < self._most:
            self._num_threads += 1
            Thread(target=self._work, daemon=True).start()
        return future

    def close(self) -> None:
        """Drop what was not begun, and let the threads end."""
        with suppress(Empty):
            while True:
                self._tasks.get_nowait()
        for _ in range(self._num_threads):
            self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, call = task
            try:
                future.set_result(call())
            except BaseException as error:  # it is the waiting thread's to raise
                future.set_exception(error)
