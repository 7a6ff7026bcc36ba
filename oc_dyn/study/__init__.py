"""Studies: measurements that anyone can repeat.

Each is a function run(out, quick=False, progress=None) that writes tables, figures and manifest.json to a folder, out,
and returns its report, a text. Loaded when asked for.
"""

from importlib import import_module

from ..errors import UnknownName

STUDIES = {
    "growth": "oc_dyn.study.growth:run",
    "matrices": "oc_dyn.study.matrices:run",
    "peers": "oc_dyn.study.peers:run",
    "second_order": "oc_dyn.study.second_order:run",
    "solvers": "oc_dyn.study.solvers:run",
}


def load(name):
    """The function of a study; UnknownName lists what there is."""
    if name not in STUDIES:
        raise UnknownName("study", name, STUDIES)
    module, function = STUDIES[name].split(":")
    return getattr(import_module(module), function)
