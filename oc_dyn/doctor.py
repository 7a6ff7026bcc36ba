"""`oc-dyn doctor`: what is installed, what is missing, and what each missing part costs."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca

from ._version import __version__
from .codegen.build import find_compiler
from .compiled_files import cache_folder
from .errors import ALL, SolveError

REQUIRED = ("casadi", "numpy", "matplotlib", "lxml", "PyYAML", "tqdm")
OPTIONAL = {  # distribution: (extra that brings it, what is not there without it)
    "urdf_parser_py": ("urdf", "URDF files are taken apart by a reader of the package's own, to the same numbers"),
    "trimesh": ("meshes", "meshes are not read: scenes from files leave them out, od.view shows none"),
    "scipy": ("meshes", "hulls of collision meshes, and capsules around them"),
    "pycollada": ("meshes", "collision meshes in .dae files are not read"),
    "ompl": ("sampling", "planners among obstacles start from ways of our own trees, which take longer to find"),
    "jinja2": ("report", "studies write no report.html"),
    "dask": ("distributed", "sweeps and studies run on this computer's processes alone"),
    "distributed": ("distributed", "the same"),
    "pin": ("test", "tests beside Pinocchio are skipped, and od.interop.to_pinocchio has no model to convert to"),
    "mujoco": ("mjcf", "MJCF files are not read; tests beside MuJoCo are skipped"),
    "xacrodoc": ("xacro", "xacro files are not expanded, trusted or not"),
    "mujoco_menagerie": ("names", "robots of the menagerie are not found by name"),
    "example-robot-data": ("names", "robots of example-robot-data are not found by name"),
    "viser": ("live", "od.view(live=True) is refused; pages of od.view need nothing"),
    "coal": ("test", "tests of distances beside coal are skipped"),
}
SOLVERS = {
    "nlpsol": ("ipopt", "fatrop", "uno", "sqpmethod", "sleqp"),
    "conic": ("qrqp", "hpipm", "osqp", "piqp", "proxqp", "daqp", "qpoases"),
    "integrator": ("cvodes", "idas"),
}
NEEDED = {("nlpsol", "ipopt"), ("integrator", "cvodes"), ("conic", "qrqp")}


@dataclass(frozen=True)
class Finding:
    """What was looked at. ok: True, False where something that is needed is missing, None where an option is."""

    group: str
    name: str
    ok: bool | None
    told: str


def findings() -> list[Finding]:
    """All of them, in the order in which they are printed."""
    python = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    fits = (3, 10) <= sys.version_info[:2]
    out = [Finding("versions", "oc_dyn", True, __version__), Finding("versions", "python", fits, python)]
    for name in REQUIRED:
        version = _version(name)
        out.append(Finding("versions", name, version is not None, version or "missing: pip install oc-dyn"))
    for name, (extra, without) in OPTIONAL.items():
        version = _version(name)
        told = version or f'not installed: {without}; pip install "oc-dyn[{extra}]"'
        out.append(Finding("options", name, True if version else None, told))
    out.append(_compiler())
    out += _caches()
    for kind, names in SOLVERS.items():
        for name in names:
            there = bool(getattr(ca, f"has_{kind}")(name))
            needed = (kind, name) in NEEDED
            told = "in CasADi" if there else "not in this build of CasADi" + (", and needed" if needed else "")
            out.append(Finding("solvers", name, True if there else (False if needed else None), told))
    return out


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _compiler() -> Finding:
    try:
        command = find_compiler()
    except SolveError as error:
        without = "od.compile and compiled=True are refused, fallback=True takes CasADi's virtual machine"
        return Finding("compiler", "C", None, f"{error}; without one {without}")
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=20, check=False)
        first = (done.stdout or done.stderr).strip().splitlines()[:1]
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("compiler", "C", False, f"{' '.join(command)} does not run: {error}")
    return Finding("compiler", "C", done.returncode == 0, f"{' '.join(command)}: {''.join(first) or 'no version told'}")


def _caches() -> list[Finding]:
    """Folders of compiled code and of Functions: where, how large, whether they may be used."""
    try:
        folder = cache_folder()
    except ALL as error:
        return [Finding("cache", "compiled code", None, f"{error}; everything is built anew in each process")]
    out = []
    for name, place in (("compiled code", folder), ("Functions", folder / "functions")):
        files = [p for p in place.glob("*") if p.is_file()] if place.is_dir() else []
        size = sum(_size(p) for p in files) / 1e6
        out.append(Finding("cache", name, True, f"{place}: {len(files)} files, {size:.1f} MB"))
    return out


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # removed in between
        return 0


def report(found: list[Finding]) -> str:
    """Lines of text, none of them broken."""
    lines, group = [], ""
    width = max(len(x.name) for x in found)
    for x in found:
        if x.group != group:
            lines += [*([""] if group else []), x.group]
            group = x.group
        mark = {True: "ok", False: "MISSING", None: "-"}[x.ok]
        lines.append(f"  {x.name:{width}}  {mark:7}  {x.told}")
    wrong = [x.name for x in found if x.ok is False]
    lines += ["", f"needed and missing: {', '.join(wrong)}" if wrong else "all that is needed is there"]
    return "\n".join(lines)


def as_json(found: list[Finding]) -> list[dict[str, Any]]:
    """Records, for machines."""
    return [vars(x) for x in found]
