"""Functions of robots on the disk: what took long to build is loaded when it is asked for again.

A file is used only if others could not have written it, if it holds what was asked for as it was written (a digest of
all of it, and the key in full), and if the Functions in it have the ports that are expected and give the value at one
point that was kept with them. Anything else is built again. What is in a file is C++ objects of CasADi, so the folder
is to be as safe as that of compiled code, and is checked in the same way.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import cache as once
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from . import digest
from .compiled_files import cache_folder, own_content
from .derivatives import registered, with_registered, without_registered
from .errors import ModelError, ModelWarning, ShapeError, warn
from .model.cache import cached
from .types import AnyRobot, StrPath
from .validation import switch

ENVIRONMENT = "OC_DYN_FUNCTION_CACHE"
SLOW = 0.1  # [s] from which building counts as slow, and its result is kept
MOST = 500_000_000  # bytes in a folder; those least recently used go first
_HEAD = b"oc_dyn function 1\n"
_ENDING = ".functions"
_WRITTEN = {"SXFunction", "MXFunction", "Map", "ThreadMap", "OmpMap", "Switch"}  # kinds that CasADi writes in full
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_LEFT = 3600.0  # [s] after which a file that is half written is one that a killed process has left
_NO_SOURCE = {"__pycache__", "study", "planning", "optimal_control", "control", "runs", "codegen"}  # Functions ask none
_STAGES = "optimal_control"  # but those of stages
_STARTED = time.time()
_PACKAGE = Path(__file__).resolve().parent
_Ports = Sequence[tuple[str, tuple[int, int]]]
_CACHE: ContextVar[StrPath | bool | None] = ContextVar("cache", default=None)  # of the Function that is being built


def stored(
    robot: AnyRobot,
    key: Sequence[Any],
    ports: tuple[_Ports, _Ports],
    make: Callable[[], ca.Function],
    cache: StrPath | bool | None = None,
) -> ca.Function:
    """make(), or what it gave for an equal robot and key before, in whatever process; with its registered derivatives.

    key: names, truth values and tuples of them that hold, with the robot, all that make() reads. ports: (name, shape)
    of inputs and of outputs that the Function must have. cache: a folder; None for that of $OC_DYN_FUNCTION_CACHE, or
    "functions" in the folder of compiled code; False, or "off", "no", "false" or "0" in the variable, for none. It
    holds for what make() asks for as well.
    Raises ModelError for a folder given as `cache` that cannot be used; for others a ModelWarning tells it once.
    """
    cache = _CACHE.get() if cache is None else cache
    folder = _folder(cache)
    text = _key(robot, key) if folder else None
    if folder is None or text is None:
        return _made(make, cache)
    path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}{_ENDING}"
    kept = _loaded(path, text, ports)
    if kept is not None:
        return kept[0] if len(kept) == 1 else with_registered(*kept)
    start = time.perf_counter()
    made = _made(make, cache)
    if time.perf_counter() - start >= SLOW:
        _write(path, text, _parts(made))
    return made


def stored_with(
    f: ca.Function, name: str, make: Callable[[], list[ca.Function] | None], cache: StrPath | bool | None = None
) -> list[ca.Function] | None:
    """make(), plain Functions that f decides, with what is registered with the Functions that it calls; or what it gave
    for an equal f before, in whatever process. None is not kept. name: of what they are to f. cache: as of `stored`.
    """
    folder = _folder(cache)
    content = _content(f) if folder else None
    source = _source(_STAGES) if content else None
    if folder is None or source is None:
        return make()
    text = repr((source, ca.CasadiMeta.version(), platform.machine(), name, content))
    path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}{_ENDING}"
    found = _loaded(path, text)
    if found is not None:
        return found
    start = time.perf_counter()
    made = make()
    if made and time.perf_counter() - start >= SLOW and all(_parts(g) for g in made):
        _write(path, text, made)
    return made


def _content(f: ca.Function) -> str | None:
    """Digest of a Function, and of what is registered with those that it calls; None where one of them is not written
    in full."""
    out, called = hashlib.sha256(), f.find_functions()
    if any(g.class_name() not in _WRITTEN for g in (f, *called)):
        return None
    parts = [f]
    for own in map(registered, called):
        parts += [*own, own[1].jacobian()] if own else []
    try:
        for g in parts:
            data = g.serialize().encode()
            out.update(f"{len(data)}\n".encode() + data)
    except RuntimeError:  # CasADi cannot write it
        return None
    return out.hexdigest()


def _made(make: Callable[[], ca.Function], cache: StrPath | bool | None) -> ca.Function:
    token = _CACHE.set(cache)
    try:
        return make()
    finally:
        _CACHE.reset(token)


# -- where, and under which key -----------------------------------------------------------------------------------


def _folder(cache: StrPath | bool | None) -> Path | None:
    """The folder of Functions, made if it is not there; None where nothing is to be kept or can be."""
    if cache is False:
        return None
    if cache is not None and cache is not True:
        return cache_folder(cache)
    named = os.environ.get(ENVIRONMENT, "").strip()
    wanted = switch(named)
    if wanted is False:
        return None
    named = "" if wanted else named
    return _checked_folder(named, *(os.environ.get(x) for x in ("OC_DYN_CACHE", "XDG_CACHE_HOME", "HOME")))


@once
def _checked_folder(named: str, *read: str | None) -> Path | None:
    try:
        return cache_folder(named or cache_folder() / "functions")
    except ModelError as error:
        how = f"set ${ENVIRONMENT} to a folder, or to off"
        warn(ModelWarning(f"Functions are not kept on the disk: {error}; {how}"))
        return None


def _key(robot: AnyRobot, key: Sequence[Any]) -> str | None:
    """All that decides a Function, as a text; None where that cannot be told."""
    source = _source()
    if source is None:
        return None
    try:
        told = cached(robot, ("digest",), lambda: digest.digest(robot))
    except ShapeError:  # it holds what has no content, such as a callback
        return None
    return repr((source, ca.CasadiMeta.version(), platform.machine(), told, *key))


@once
def _source(*more: str) -> str | None:
    """Digest of the source that Functions are made by, and of more folders; None if a file has changed since this
    process has read it."""
    out = hashlib.sha256()
    for folder, folders, files in os.walk(_PACKAGE):
        folders[:] = sorted(set(folders) - (_NO_SOURCE - set(more)))
        for name in sorted(files):
            if name.endswith(".py") and not name.startswith("."):  # an editor's
                try:
                    with open(os.path.join(folder, name), "rb") as file:
                        found, data = os.fstat(file.fileno()), file.read()
                except OSError:  # it is being replaced
                    return None
                # times of content can be set, and are kept by copies; those of the file itself cannot
                if (found.st_mtime if os.name == "nt" else found.st_ctime) > _STARTED:
                    return None
                out.update(f"{os.path.relpath(folder, _PACKAGE)} {name} {len(data)}\n".encode() + data)
    return out.hexdigest()


# -- reading ------------------------------------------------------------------------------------------------------


def _loaded(path: Path, text: str, ports: tuple[_Ports, _Ports] | None = None) -> list[ca.Function] | None:
    """The Functions of a file; None if it is not there, or is not what it should be. ports: of the first one."""
    try:
        functions = _unpacked(path, text)
        if ports is not None and _ports(functions[0]) != _as_lists(ports):
            raise ValueError("it has other ports")
    except OSError:  # it is not there, or cannot be read now
        return None
    except Exception as error:  # whatever CasADi, zlib and json find wrong: nothing in it may do harm
        said = " ".join(str(error).split())
        warn(ModelWarning(f"{path} is not as it was written: {said}; it is made again"))
        with suppress(OSError):
            path.unlink()
        return None
    with suppress(OSError):
        os.utime(path)  # the time of last use
    return functions


def _unpacked(path: Path, text: str) -> list[ca.Function]:
    """The Functions in a file; OSError if it cannot be read, ValueError if there is anything wrong with it."""
    data, problem = own_content(path)
    if problem:
        raise ValueError(problem)
    start = len(_HEAD) + 65
    if data[:start] != _HEAD + hashlib.sha256(data[start:]).hexdigest().encode() + b"\n":
        raise ValueError("its content is another")
    header, _, packed = data[start:].partition(b"\n")
    facts = json.loads(header)
    if facts["key"] != text:
        raise ValueError("it is of another Function")
    functions = ca.StringDeserializer(zlib.decompress(packed).decode("ascii")).unpack()
    for f, fact in zip(functions, facts["functions"], strict=True):
        if f.name() != fact["name"] or _ports(f) != fact["ports"] or not _agree(_values(f), fact["values"]):
            raise ValueError("it has other ports, or computes something else")
    return functions


# -- writing ------------------------------------------------------------------------------------------------------


def _write(path: Path, text: str, functions: list[ca.Function]) -> None:
    """Keep Functions, if they can be kept: in one step, so that nobody reads a half of them."""
    if not functions:
        return
    try:
        together = ca.StringSerializer()  # so that symbols that they share stay shared
        together.pack(functions)
        packed = zlib.compress(together.encode().encode("ascii"), 1)
    except RuntimeError:  # CasADi cannot write it
        return
    facts = [{"name": g.name(), "ports": _ports(g), "values": _values(g)} for g in functions]
    rest = json.dumps({"key": text, "functions": facts}).encode() + b"\n" + packed
    part = path.with_name(f"{secrets.token_hex(8)}.part")
    try:
        with open(os.open(part, _NEW, 0o600), "wb") as file:
            file.write(_HEAD + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest)
        os.replace(part, path)
    except OSError:  # a full disk, a folder that is gone, a file that is read on Windows
        pass
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    _make_room(path.parent)


def _parts(f: ca.Function) -> list[ca.Function]:
    """What has to be written of a Function: [itself], or [itself without derivatives, Jacobian, adjoint]; empty where
    it cannot be kept as it is, as it calls machine code, Python, or another one with registered derivatives."""
    own = registered(f)
    if own is not None:
        return [without_registered(f), *own]
    plain = all(g.class_name() in _WRITTEN and registered(g) is None for g in (f, *f.find_functions()))
    return [ca.Function(f)] if plain else []


def _make_room(folder: Path) -> None:
    """Remove what was used least recently, until the rest is well below MOST bytes, and what killed processes left."""
    files, now = [], time.time()
    with suppress(OSError):
        for entry in os.scandir(folder):
            with suppress(OSError):  # another process has removed it
                found = entry.stat(follow_symlinks=False)
                if entry.name.endswith(_ENDING):
                    files.append((found.st_mtime, found.st_size, entry.path))
                elif entry.name.endswith(".part") and now - found.st_mtime > _LEFT:
                    os.unlink(entry.path)
    left = sum(size for _, size, _ in files)
    if left > MOST:
        for _, size, path in sorted(files):
            if left <= 0.9 * MOST:
                break
            with suppress(OSError):
                os.unlink(path)
            left -= size


# -- what is kept beside a Function -------------------------------------------------------------------------------


def _ports(f: ca.Function) -> list[Any]:
    """[inputs, outputs], each [[name, [rows, columns]], ...], as json has them."""
    inputs = [[f.name_in(i), list(f.size_in(i))] for i in range(f.n_in())]
    return [inputs, [[f.name_out(i), list(f.size_out(i))] for i in range(f.n_out())]]


def _as_lists(ports: tuple[_Ports, _Ports]) -> list[Any]:
    return [[[name, [int(n) for n in shape]] for name, shape in some] for some in ports]


def _values(f: ca.Function) -> list[list[float]]:
    """[[weighted sum of the entries, sum of their magnitudes], ...] of the outputs at a fixed point."""
    rng = np.random.default_rng(0)
    found = f.call([ca.DM(f.sparsity_in(i), rng.uniform(-1, 1, f.nnz_in(i))) for i in range(f.n_in())])
    out = []
    for y in found:
        numbers = np.array(y.nonzeros(), float)
        out.append([float(np.cos(np.arange(numbers.size)) @ numbers), float(np.abs(numbers).sum())])
    return out


def _agree(got: list[list[float]], kept: list[list[float]]) -> bool:
    pairs = zip(got, kept, strict=True)
    return all(
        np.allclose(a, b, rtol=0, atol=1e-9 * (b[1] if np.isfinite(b[1]) else 0), equal_nan=True) for a, b in pairs
    )
