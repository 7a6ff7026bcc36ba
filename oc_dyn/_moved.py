"""Names of the last release that are called otherwise now: programs and pickles that have them still work, for one more
release, with a DeprecationWarning."""

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MODULES = {  # those that hold what users name, or what is pickled
    "oc_dyn.given": "oc_dyn.validation",
    "oc_dyn.kinematics.inverse": "oc_dyn.planning.inverse_kinematics",
    "oc_dyn.model.numbers": "oc_dyn.numbers",
    "oc_dyn.partials.design": "oc_dyn.design.parameters",
    "oc_dyn.partials.sensitivity": "oc_dyn.design.sensitivity",
    "oc_dyn.planning.check_rows": "oc_dyn.optimal_control.check_rows",
    "oc_dyn.planning.contact_motion": "oc_dyn.optimal_control.contact_motion",
    "oc_dyn.planning.files": "oc_dyn.files",
    "oc_dyn.planning.integrators": "oc_dyn.optimal_control.integrators",
    "oc_dyn.planning.mpc": "oc_dyn.control.mpc",
    "oc_dyn.planning.polynomials": "oc_dyn.optimal_control.polynomials",
    "oc_dyn.planning.problem": "oc_dyn.optimal_control.problem",
    "oc_dyn.planning.solution_check": "oc_dyn.optimal_control.solution_check",
    "oc_dyn.planning.solver": "oc_dyn.optimal_control.solver",
    "oc_dyn.planning.stages": "oc_dyn.optimal_control.stages",
    "oc_dyn.planning.transcribed": "oc_dyn.optimal_control.solution",
    "oc_dyn.study.manifest": "oc_dyn.runs.manifest",
    "oc_dyn.study.script": "oc_dyn.runs.script",
    "oc_dyn.sweeps": "oc_dyn.runs.sweeps",
}


def renamed(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """__getattr__ of a module in which {old name: new name}."""

    def attribute(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(f"{module}.{name} is called {names[name]} now", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], names[name])

    return attribute


class MovedModules(MetaPathFinder, Loader):
    """Finds the modules of MODULES by their old names, as stand-ins for those of today."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of a module that has moved; None for all others."""
        return ModuleSpec(name, self) if name in MODULES else None

    def exec_module(self, module: ModuleType) -> None:
        """Let the stand-in answer for the module that it stands for."""
        new = MODULES[module.__name__]
        warnings.warn(f"{module.__name__} is called {new} now", DeprecationWarning, stacklevel=2)
        today = import_module(new)
        vars(module)["__getattr__"] = lambda name: getattr(today, name)


def install() -> None:
    """Look for modules by their old names where they are not found otherwise."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())
