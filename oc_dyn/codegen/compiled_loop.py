"""The loop over the points of a batch in a library, shared by threads, and left only when none of them is in it."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress

import casadi as ca

from ..errors import SolveError
from ..types import Array
from .batch_arrays import ports

WORTH = 125_000  # instructions of one point a step that are worth a thread: about 50 us
_PATIENCE = 0.005  # [s] in C at a time, about: Ctrl-C waits for it, and so do threads that have nothing left to do


class CompiledLoop:
    """The loop over the points in a library, called without holding Python's lock.

    The thread that calls takes points until none is left, as do up to threads - 1 others. It needs none of them: those
    that do not come to it, in an executor that is busy or closed, are not waited for.
    """

    def __init__(self, function: ca.Function, library_: ctypes.CDLL, threads: int, executor: Executor | None) -> None:
        pointer, number = ctypes.c_void_p, ctypes.c_longlong
        loop = library_.oc_dyn_points
        loop.argtypes, loop.restype = [pointer] * 3 + [number] * 2, ctypes.c_int
        self.loop, self.name, self.threads = loop, function.name(), threads
        self.lanes = int(library_.oc_dyn_lanes())
        straight = function.is_a("SXFunction")
        length = function.n_instructions() if straight else WORTH // 32  # a guess: they call others
        self.least = max(1, WORTH // max(1, length)) * self.lanes  # points that are worth a thread
        self.first = self.least if straight else self.lanes  # points to begin with; a solver may take long over each
        self.columns = [port.columns for side in ports(function) for port in side]
        self.pools: dict[int, Executor] = {}  # by process: threads, and locks, are not what they were after a fork
        if executor is not None:
            self.pools[os.getpid()] = executor

    def __call__(self, points: list[Array], results: list[Array], n: int) -> None:
        """Compute n points, see Compute."""
        arrays = [*points, *results]
        addresses = (ctypes.c_void_p * len(arrays))()
        steps: list[int] = []
        for k, (x, columns) in enumerate(zip(arrays, self.columns, strict=True)):
            down, across = x.strides
            addresses[k] = x.__array_interface__["data"][0]
            steps += down, across, across * columns if x.shape[1] != columns else 0
        strides = (ctypes.c_longlong * len(steps))(*steps)
        fixed = addresses, ctypes.byref(addresses, len(points) * ctypes.sizeof(ctypes.c_void_p)), strides
        if n <= self.first:
            status = self.loop(*fixed, 0, n)
        else:
            pieces = max(1, min(self.threads, n // self.least))
            status = self._shared(_Points(n, self.lanes, self.first, pieces), arrays, fixed)
        if status == -1:
            raise MemoryError(f"{self.name}: no memory for a batch")
        if status:
            raise SolveError(f"{self.name} failed at one of the points, with status {status}")

    def _shared(self, points: _Points, arrays: Sequence[Array], fixed: tuple[object, ...]) -> int:
        """Status of all points, computed here and in other threads, none of which is in the loop afterwards."""

        def work() -> None:
            size = self.first
            while True:
                start, end = points.take(size)
                if start == end:
                    break
                begun = time.perf_counter()
                points.note(self.loop(*fixed, start, end))
                if time.perf_counter() - begun < _PATIENCE / 2:
                    size *= 2

        def help_(_: Sequence[Array] = arrays) -> None:  # each job keeps the arrays, whatever happens to the caller
            if points.enter():
                try:
                    work()
                except BaseException as error:
                    points.error = error
                finally:
                    points.leave()

        jobs: list[Future[None]] = []
        try:  # twice, as Ctrl-C may come again before a `finally` has begun
            try:
                with suppress(RuntimeError):  # an executor that is closed: all is computed here
                    for _ in range(points.pieces - 1):
                        jobs.append(self._pool().submit(help_))
                work()
            finally:
                points.finish()
        finally:
            points.finish()
            for job in jobs:
                job.cancel()
        if points.error is not None:
            raise points.error
        return points.status

    def _pool(self) -> Executor:
        pool = self.pools.get(os.getpid())
        if pool is None:  # it has no threads before it is given work: of several made at a time, one is kept
            new = ThreadPoolExecutor(max(1, self.threads - 1), thread_name_prefix=self.name)
            pool = self.pools.setdefault(os.getpid(), new)
        return pool


class _Points:
    """Which of n points are still to be computed, by the thread that calls and by those that help it."""

    def __init__(self, n: int, lanes: int, least: int, pieces: int) -> None:
        self.lanes, self.least, self.pieces = lanes, least, pieces
        self.status = 0
        self.error: BaseException | None = None  # of a thread that helps
        self._next, self._end, self._inside, self._finished = 0, n, 0, False
        self._lock = threading.Lock()
        self._idle = threading.Lock()  # held while any thread helps

    def take(self, most: int) -> tuple[int, int]:
        """(start, end) of points for one thread, fewer towards the end, so that all threads end together; whole lanes,
        but for the last ones."""
        with self._lock:
            start = self._next
            share = max(self.least, -(-(self._end - start) // self.pieces))
            self._next = min(self._end, start + -(-min(most, share) // self.lanes) * self.lanes)
            return start, self._next

    def note(self, status: int) -> None:
        """What the loop has returned; if it failed, nobody takes more."""
        if status:
            with self._lock:
                self.status, self._next = max(self.status, status, key=abs), self._end

    def enter(self) -> bool:
        """Whether one more thread may help."""
        with self._lock:
            if self._finished:
                return False
            if not self._inside:
                self._idle.acquire()
            self._inside += 1
            return True

    def leave(self) -> None:
        """One thread less."""
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._idle.release()

    def finish(self) -> None:
        """Let nobody begin any more, and wait for those that are inside; what interrupts it is raised afterwards."""
        interrupt = None
        while True:
            try:
                with self._lock:
                    self._next, self._finished = self._end, True
                with self._idle:
                    break
            except BaseException as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt
