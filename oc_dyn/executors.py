"""Where many points are computed: here, by processes, by Dask, or by any concurrent.futures.Executor.

A point is a plain tuple of arguments for a function that can be pickled; results come as they are done. Processes are
spawned, not forked: a script that starts them needs `if __name__ == "__main__":` around what it does.

CasADi holds the interpreter lock while it evaluates and while it solves, so that threads of one process take turns:
a worker of two threads does as much as one of one, and answers its scheduler late. Start as many workers of one thread
as there are cores, without Dask's profiler, which takes another third: "dask:N" does, and elsewhere
`DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False dask worker --nworkers N --nthreads 1 ADDRESS`.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import re
import signal
import tempfile
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TypeAlias

from .errors import ShapeError, SolveError
from .interrupts import watched

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_DASK_SETS = ("PYTHONHASHSEED", "__DASK_PARENT_PID")  # in our own environment, for its workers
# (number, result, error) of each point, as they are done
Outcomes: TypeAlias = Generator[tuple[int, Any, Exception | None], None, None]
_BEGIN = 120  # [s] that a worker of Dask may take to begin
TRIES = 3  # runs of a point whose worker ends before it is done


def checked(executor: str | Executor) -> tuple[str, Any]:
    """The executor as ("serial", None), ("processes", number), ("dask", number or address) or ("given", Executor)."""
    if isinstance(executor, Executor):
        return "given", executor
    kind, _, rest = str(executor).partition(":")
    if isinstance(executor, str):
        if kind == "serial" and not rest:
            return kind, None
        if kind in ("processes", "dask") and re.fullmatch("0*[1-9][0-9]{0,4}", rest):
            return kind, int(rest)
        if kind == "dask" and re.fullmatch(r"\w+://.+|.*[^:]:[0-9]+", rest):
            return kind, rest
    expected = 'expected "serial", "processes:N" or "dask:N" with N = 1, 2, ..., "dask:ADDRESS" as of '
    expected += '"dask:tcp://10.0.0.1:8786", or a concurrent.futures.Executor'
    raise ShapeError(f"executor: got {executor!r}, {expected}")


def completed(
    function: Callable[..., Any],
    points: Sequence[tuple[Any, ...]],
    executor: str | Executor = "serial",
    name: Callable[[int], str] | None = None,
    tries: int = TRIES,
) -> Outcomes:
    """Yield (number, result, error) for every point, as they are done: function(*points[number]), or its exception.

    function: of a module, or else picklable. points: list of tuples; those appended to it while results are taken are
    computed too. executor: "serial"; "processes:N"; "dask:N" (extra distributed) for a scheduler and N workers of one
    thread on this machine, which end with the last point; "dask:ADDRESS" of a scheduler whose workers can import the
    function, with one thread each (see above); or any Executor, which is not shut down. name: what a point is called in
    messages, a function of its number.
    A point whose worker process ends before it is done (killed, out of memory) runs again, for processes:N alone the
    last times; after `tries` runs its error is a SolveError. A scheduler of yours runs such points again by its own
    rules. Close the generator to stop: the workers of processes:N and dask:N end at once.
    """
    kind, what = checked(executor)
    name = name or (lambda number: f"point {number}")
    if kind == "serial":
        return _serial(function, points)
    if kind == "processes":
        return _processes(function, points, name, what, tries)
    if kind == "dask":
        return _dask(function, points, name, what, tries)
    return _submitted(function, points, name, what)


def told(error: BaseException) -> str:
    """Text "Kind: message" of an exception, even of one whose message cannot be had."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as raised:
        return f"{type(error).__name__}: its text cannot be had, for its __str__ raises {type(raised).__name__}"


def _serial(function: Callable[..., Any], points: Sequence[tuple[Any, ...]]) -> Outcomes:
    for number, point in enumerate(points):
        try:
            result, error = function(*point), None
        except Exception as raised:
            result, error = None, raised
        yield number, result, error


def _guarded(function: Callable[..., Any], point: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    """(result, None) or (None, exception), by a worker: an exception that cannot travel would end the whole pool."""
    try:
        return function(*point), None
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
            return None, error
        except Exception:
            return None, SolveError(told(error))


def _outcome(future: Future[Any]) -> tuple[Any, Exception | None]:
    """What _guarded returned; or the exception of the executor, unless it is broken."""
    try:
        return future.result()
    except BrokenExecutor:
        raise
    except Exception as error:  # what cannot be pickled, or a worker of Dask that is lost again and again
        return None, error


# -- processes of our own ------------------------------------------------------------------------------------------


def _processes(
    function: Callable[..., Any],
    points: Sequence[tuple[Any, ...]],
    name: Callable[[int], str],
    workers: int,
    tries: int,
) -> Outcomes:
    waiting: deque[int] = deque()
    alone: deque[int] = deque()
    lost: Counter[int] = Counter()
    running: dict[Future[Any], int] = {}
    seen = 0
    pool = _pool(workers)
    try:
        while waiting or alone or running or seen < len(points):
            waiting.extend(range(seen, len(points)))
            seen = len(points)
            # what was there twice when a worker ended runs alone, so that the third time tells who did it; one more
            # than there are workers is handed out, so that none waits for what is done with the results
            some, room = (waiting, workers + 1) if waiting else (alone, 1)
            try:
                with _one_thread(), _ctrl_c_waits():
                    while some and len(running) < room:
                        running[pool.submit(_guarded, function, points[some[0]])] = some[0]
                        some.popleft()
                done = wait(running, return_when=FIRST_COMPLETED).done
                broken = False
            except BrokenExecutor:
                done, broken = set(running), True
            for future in done:
                try:
                    result, error = _outcome(future)
                except BrokenExecutor:
                    broken = True
                    continue
                yield running.pop(future), result, error
            if broken:
                pool.shutdown(wait=True, cancel_futures=True)
                pool = _pool(workers)
                for number in running.values():
                    lost[number] += 1
                    if lost[number] < tries:
                        (waiting if lost[number] < 2 else alone).append(number)
                    else:
                        yield number, None, SolveError(_lost(name(number), lost[number]))
                running = {}
    finally:
        _end(pool)


def _pool(workers: int) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")  # a fork would copy threads of solvers and of Dask half-way
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_begin_worker)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Workers started here, as they are with their first points, use one thread each, or what the user has set: solvers
    whose threads wait for each other on busy cores take twice as long."""
    added = [name for name in _THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Ctrl-C comes at the end: a worker that is started here and cut off before it is known would stay. On a terminal
    it goes to workers, too, which inherit that it is blocked until they are ready to ignore it."""
    with watched(hold=True):
        if not hasattr(signal, "pthread_sigmask"):  # Windows
            yield
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker() -> None:
    """Ctrl-C is for the parent, which ends its workers; one whose parent is gone ends too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with, args=[multiprocessing.parent_process()], daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _end(pool: ProcessPoolExecutor) -> None:
    """Shut down without waiting for points in progress."""
    workers = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.terminate()


def _lost(name: str, times: int) -> str:
    return (
        f"{name}: its worker process ended {times} times before it was done (killed, out of memory, or a crash of "
        "compiled code); run it with executor='serial' to see more"
    )


# -- executors of others -------------------------------------------------------------------------------------------


def _submitted(
    function: Callable[..., Any], points: Sequence[tuple[Any, ...]], name: Callable[[int], str], pool: Executor
) -> Outcomes:
    running: dict[Future[Any], int] = {}
    seen = 0
    try:
        while running or seen < len(points):
            while seen < len(points):
                running[pool.submit(_guarded, function, points[seen])] = seen
                seen += 1
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                number = running.pop(future)
                try:
                    yield number, *_outcome(future)
                except BrokenExecutor as error:
                    hint = "the executor that was given is broken; what is done is kept, start again for the rest"
                    raise SolveError(f"{name(number)}: {error or type(error).__name__}; {hint}") from error
    finally:
        for future in running:
            future.cancel()


def _dask(
    function: Callable[..., Any],
    points: Sequence[tuple[Any, ...]],
    name: Callable[[int], str],
    where: int | str,
    tries: int,
) -> Outcomes:
    try:
        from distributed import Client, KilledWorker
    except ImportError:
        raise SolveError("executor dask: distributed is not installed; pip install 'oc-dyn[distributed]'") from None
    if not points and isinstance(where, int):
        return
    with ExitStack() as stack:
        scheduler = stack.enter_context(_local_cluster(where, tries)) if isinstance(where, int) else where
        try:
            client = stack.enter_context(Client(scheduler, timeout=20, set_as_default=False))
        except (OSError, ValueError) as error:  # TimeoutError is an OSError
            raise SolveError(f"executor dask:{where}: no scheduler answers there: {error}") from error
        pool = stack.enter_context(client.get_executor(pure=False))
        for number, result, error in _submitted(function, points, name, pool):
            if isinstance(where, int) and isinstance(error, KilledWorker):
                error = SolveError(_lost(name(number), tries))
            yield number, result, error


@contextmanager
def _local_cluster(workers: int, tries: int) -> Iterator[Any]:
    """A scheduler of Dask on this machine with so many workers of one thread, which end at once with the block."""
    import dask
    from distributed import LocalCluster

    with tempfile.TemporaryDirectory(prefix="oc_dyn_dask_", ignore_cleanup_errors=True) as folder:
        settings = {
            "temporary-directory": folder,
            "distributed.scheduler.worker-ttl": None,  # a worker cannot tell that it lives while a solver runs
            "distributed.scheduler.worker-saturation": 1.0,  # it has one point, and no other is blamed when it ends
            "distributed.scheduler.allowed-failures": tries - 1,
            "distributed.worker.profile.enabled": False,  # by a thread that wants the interpreter lock every 10 ms
            # without MALLOC_TRIM_THRESHOLD_ of Dask, which makes solvers get their memory anew from the system
            "distributed.nanny.pre-spawn-environ": dict.fromkeys(_THREADS, "1"),
        }
        with _environment_kept(*_THREADS, *_DASK_SETS):
            multiprocessing.get_context("spawn").Lock()  # starts what tracks them, which lets Ctrl-C through to workers
            cluster = None
            try:
                try:
                    with _ctrl_c_waits(), dask.config.set(settings):
                        cluster = LocalCluster(
                            n_workers=workers, threads_per_worker=1, processes=True, memory_limit=None,
                            dashboard_address=None, scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                            silence_logs=logging.CRITICAL, death_timeout=_BEGIN,
                        )  # fmt: skip
                except Exception as error:
                    hint = 'a script that starts them needs `if __name__ == "__main__":` around what it does'
                    raise SolveError(f"executor dask:{workers}: no workers: {told(error)}; {hint}") from error
                yield cluster
            finally:
                if cluster is not None:
                    _end_cluster(cluster)


def _end_cluster(cluster: Any) -> None:
    """Shut down without waiting for points in progress."""
    from distributed.core import Status

    with _ctrl_c_waits():
        for nanny in list(cluster.workers.values()):
            if nanny.process is not None and nanny.process.status is Status.running and nanny.pid:
                nanny.close_gracefully()  # so that it starts no other; one that has just begun has no point
                with suppress(ProcessLookupError):
                    os.kill(nanny.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        with suppress(TimeoutError):
            cluster.close(timeout=10)


@contextmanager
def _environment_kept(*names: str) -> Iterator[None]:
    """Undo at the end what Dask changes of our own environment, for its workers."""
    before = {name: os.environ.get(name) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
