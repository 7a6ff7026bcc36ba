"""Descriptions of robots by name: of the package, and of wheels that bring files or fetch them."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import re
from pathlib import Path
from typing import Any

from ..errors import ModelError, UnknownName
from ..model.robot import Robot

_FETCH = "is not on this computer; download=True lets it be fetched"


def found_by_name(name: str, download: bool) -> tuple[Robot | Path, str]:
    """(Robot of the package, or file; where it was found, in words). See od.load for the order of the places.

    Raises UnknownName; ModelError for one that would have to be fetched.
    """
    from . import by_name, names

    if name.partition(":")[0] in {x.partition(":")[0] for x in names()}:
        return by_name(name), "a robot of the package"
    files = _of_example_robot_data()
    if name in files:
        return files[name], f"{files[name].name} of example-robot-data"
    path = _in_menagerie(name, download)
    if path is not None:
        return path, f"{path.parent.name}/{path.name} of mujoco_menagerie"
    path = _in_descriptions(name, download)
    if path is not None:
        return path, f"{path.name} of robot_descriptions"
    name = name if len(name) <= 100 else name[:100] + "..."
    raise UnknownName("file or robot", name, [*names(), *files, *_menagerie_names()], _more())


def _more() -> str:
    """Where there are more names, in words; empty where all that bring them are installed."""
    brings = {"example-robot-data": bool(_of_example_robot_data()), "mujoco_menagerie": bool(_menagerie_names())}
    lacking = [wheel for wheel, there in brings.items() if not there]
    if not lacking:
        return ""
    how = 'pip install "oc-dyn[names]"'
    if not brings["mujoco_menagerie"]:  # its models are not in the wheel
        how += ", and od.load(name, download=True) lets a model of mujoco_menagerie, as ur10e, be fetched"
    return f"more names are in {' and '.join(lacking)}: {how}"


def _of_example_robot_data() -> dict[str, Path]:
    """{name: file} of the wheel example-robot-data; of an URDF and an SDF of the same name the former."""
    try:
        found = importlib.metadata.files("example-robot-data") or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    files = [Path(str(x.locate())) for x in found if str(x).endswith((".urdf", ".sdf"))]
    return {x.stem: x for x in sorted(files, key=lambda x: (x.suffix, str(x)))}


def _menagerie_names() -> list[str]:
    if importlib.util.find_spec("mujoco_menagerie") is None:
        return []
    return list(importlib.import_module("mujoco_menagerie").names())


def _in_menagerie(name: str, download: bool) -> Path | None:
    """File of a model of mujoco_menagerie, of its whole name or the end of one; None where it has none, or several."""
    known = _menagerie_names()
    chosen = [x for x in known if x == name] or [x for x in known if x.endswith(f"_{name}")]
    if len(chosen) != 1:
        return None
    entry: Any = importlib.import_module("mujoco_menagerie").get(chosen[0])
    cache: Any = importlib.import_module("mujoco_menagerie._cache").Cache()
    if not download and cache.root is None and not cache.is_cached(entry):
        raise ModelError(name, [f"{chosen[0]} of mujoco_menagerie {_FETCH}"])
    return Path(entry.xml(entry.default_model))


def _in_descriptions(name: str, download: bool) -> Path | None:
    """File of a module of robot_descriptions, which is fetched when it is imported; None where there is none."""
    if importlib.util.find_spec("robot_descriptions") is None or not re.fullmatch(r"\w+", name):
        return None
    for module in (name, f"{name}_description", f"{name}_mj_description"):
        spec = importlib.util.find_spec(f"robot_descriptions.{module}")
        if spec is None or spec.origin is None or module.startswith("_"):
            continue
        if not download and not _was_fetched(Path(spec.origin)):
            raise ModelError(name, [f"{module} of robot_descriptions {_FETCH}"])
        found = importlib.import_module(f"robot_descriptions.{module}")
        return Path(getattr(found, "URDF_PATH", None) or found.MJCF_PATH)
    return None


def _was_fetched(module: Path) -> bool:
    """Whether the repository that a module of robot_descriptions takes its files from is in the cache."""
    named = re.search(r"""_clone_to_cache\(\s*["']([^"']+)""", module.read_text(encoding="utf-8"))
    if named is None:
        return False
    known = importlib.import_module("robot_descriptions._repositories").REPOSITORIES
    folder = os.path.expanduser(os.environ.get("ROBOT_DESCRIPTIONS_CACHE", "~/.cache/robot_descriptions"))
    return named.group(1) in known and os.path.isdir(os.path.join(folder, known[named.group(1)].cache_path))
