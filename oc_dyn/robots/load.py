"""od.load: a robot from whatever describes it: a file, a text, or a name."""

from __future__ import annotations

import errno
import importlib
import importlib.util
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import ModelError, ShapeError
from ..model.mjcf import load_mjcf
from ..model.robot import Robot
from ..model.sdf import load_sdf
from ..model.urdf import load_urdf
from ..model.xml_read import is_xml, read_xml
from .found_by_name import found_by_name

_READERS: dict[str, Callable[..., Robot]] = {"robot": load_urdf, "sdf": load_sdf, "mujoco": load_mjcf}
_ENDINGS = (".urdf", ".xml", ".sdf", ".world", ".mjcf", ".xacro")
_XACRO = "xacro evaluates expressions of its file as Python: give trusted=True for a file that you trust"


def load(
    robot: str | bytes | os.PathLike[str], *, trusted: bool = False, download: bool = False, **options: Any,
) -> Robot:  # fmt: skip
    """Robot of a URDF, SDF, MJCF or xacro file, of such a text, or of a name; `robot.report` says where it came from.

    robot: a path, or XML itself: its first element tells what it is, <robot>, <sdf> or <mujoco>. Or a name, looked for
        in this order: robots of the package (od.robots.names()); files of the wheel example-robot-data, such as
        "talos_reduced"; models of the wheel mujoco_menagerie, "universal_robots_ur10e" or "ur10e"; modules of
        robot_descriptions, "ur10e_description". The last two hold what they fetched once; download=True lets them.
    trusted: whether a xacro file may be expanded, which runs what is written in it; by the wheel xacrodoc or xacro.
    options: of load_urdf, load_sdf or load_mjcf, such as lock, gravity and, but for MJCF, floating_base.
    Raises FileNotFoundError; ModelError with all that is wrong in a file; UnknownName with near names; ShapeError for
    options that the reader does not have.
    """
    if isinstance(robot, (bytes, bytearray)) or (isinstance(robot, str) and is_xml(robot)):
        return _read(robot, "a text", options)
    if not isinstance(robot, (str, os.PathLike)):
        raise ShapeError(f"load: got {type(robot).__name__}, expected a path, a text or a name")
    path = Path(robot)
    if isinstance(robot, os.PathLike) or path.suffix.lower() in _ENDINGS or os.sep in robot or _is_there(path):
        return _of_file(path, trusted, options)
    found, where = found_by_name(robot, download)
    if isinstance(found, Path):
        return _read(found, where, options)
    if options:
        raise ShapeError(f"load: {robot!r} is a robot of the package, which takes no options; it has methods instead")
    return replace(found, report=(*found.report, where))


def _is_there(path: Path) -> bool:
    """Whether there is something of this name, of whatever kind but a folder."""
    try:
        return path.exists() and not path.is_dir()
    except (OSError, ValueError):  # no file can have such a name
        return False


def _of_file(path: Path, trusted: bool, options: dict[str, Any]) -> Robot:
    if path.suffix.lower() == ".xacro":
        if not trusted:
            raise ModelError(path, [_XACRO])
        if not _is_there(path):
            shown = str(path) if len(str(path)) <= 200 else str(path)[:200] + "..."
            raise FileNotFoundError(errno.ENOENT, "no such file", shown)
        if not path.is_file():  # a pipe may have no end
            raise ModelError(path, ["is no regular file"])
        return _read(_expanded(path), f"the xacro file {path.name}", options)
    return _read(path, f"the file {path.name}", options)


def _read(given: Any, where: str, options: dict[str, Any]) -> Robot:
    source, _, root, _ = read_xml(given, "robot")
    reader = _READERS.get(root.tag)
    if reader is None:
        known = ", ".join(f"<{tag}>" for tag in _READERS)
        raise ModelError(source, [f"the document is a <{root.tag}>; robots are {known}"])
    try:
        robot = reader(given, **options)
    except TypeError as error:
        if "keyword argument" not in str(error):
            raise
        raise ShapeError(f"load: {reader.__name__} of {where} takes no such option: {error}") from None
    return replace(robot, report=(*robot.report, f"read from {where} by {reader.__name__}"))


def _expanded(path: Path) -> bytes:
    """A xacro file as URDF."""
    try:
        if importlib.util.find_spec("xacrodoc"):
            document: Any = importlib.import_module("xacrodoc").XacroDoc
            return str(document.from_file(str(path), resolve_packages=False).to_urdf_string()).encode()
        if importlib.util.find_spec("xacro"):
            document = importlib.import_module("xacro").process_file(str(path))
            return bytes(document.toprettyxml(encoding="utf-8"))
    except Exception as error:  # whatever the file made xacro do
        raise ModelError(path, [f"xacro: {type(error).__name__}: {' '.join(str(error).split())[:400]}"]) from None
    how = 'pip install "oc-dyn[xacro]"'
    raise ModelError(path, [f"xacro files are expanded by xacrodoc or xacro, and neither is installed; {how}"])
