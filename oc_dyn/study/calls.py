"""What a call from Python costs: od.numpy_call beside Pinocchio's Python binding, and a Function above CasADi's call.

Every way takes its turn in each of many rounds. Calls of od.numpy_call are of code compiled for this machine, on the
arrays that Pinocchio gets, too; what both compute is compared. "checks" is what a Function of od.function adds to
casadi.Function.__call__ of the same arguments, the median of the differences within a round.
"""

from pathlib import Path

import casadi as ca
import numpy as np

from .. import robots
from ..codegen import compile, numpy_call
from ..errors import SolveError
from ..files import write_csv
from ..function import function
from ..runs.manifest import manifest, write_json
from ..runs.points import bar
from ..text import in_columns
from .native import compiler, laps
from .peers.robots import coordinate_places, pinocchio_model, robot

ARMS = ("ur5", "panda")
ROUTINES = {  # of Pinocchio: what gives a quantity, and its results in the order of ours
    "inverse_dynamics": ("rnea", ("q", "v", "dv")),
    "forward_dynamics": ("aba", ("q", "v", "tau")),
    "mass_matrix": ("crba", ("q",)),
    "inverse_dynamics_partials": ("computeRNEADerivatives", ("q", "v", "dv")),
    "forward_dynamics_partials": ("computeABADerivatives", ("q", "v", "tau")),
}
FLAGS = ("-O3", "-march=native")
BINDING = ("robot", "joints", "quantity", "bare [us]", "packed [us]", "packed, out [us]", "numpy_call [us]")
BINDING += ("Pinocchio [us]", "packed / Pinocchio", "numpy_call / Pinocchio", "difference")
CHECKS = ("quantity", "order", "arguments", "by", "CasADi [us]", "Function [us]", "checks [us]")
CAPTIONS = {
    "binding.csv": "Median time of a call from Python. bare: the buffers of CasADi without checks or copies; packed: "
    "one array in, a new one out, or one that was given; numpy_call: an array for each port. Ratios are medians within "
    "rounds; difference: the largest of ours and Pinocchio's results, relative to the largest entry.",
    "checks.csv": "A Function of the Panda called with arguments of several kinds, beside CasADi's own call.",
}


def run(out, quick=False, progress=None):
    """Measure, and write binding.csv, checks.csv and manifest.json to the folder `out`; returns the tables as a text.

    Without a compiler there is no binding.csv, without Pinocchio and example-robot-data it has the Panda of this
    package alone, and no ratios; the report says so. quick: fewer rounds. progress: show a bar on stderr.
    """
    folder, rounds = Path(out), 15 if quick else 301
    notes, measured = [], []
    with bar(progress, len(ARMS) + 4, "calls", " tables") as shown:
        for name in ARMS if compiler() else ():
            measured += _binding(name, rounds, notes)
            shown.update()
        checked = []
        for quantity, order in (("inverse_dynamics", 0), ("inverse_dynamics", 1), ("forward_dynamics", 0)):
            checked += _checks(quantity, order, rounds)
            shown.update()
    if not compiler():
        notes.append("no C compiler, so that od.numpy_call is not measured")
    tables = {"binding.csv": (BINDING, measured), "checks.csv": (CHECKS, checked)}
    for file, (head, rows) in tables.items():
        if rows:
            write_csv(folder / file, [head, *rows])
    command = "oc-dyn study calls" + (" --quick" if quick else "")
    facts = {
        file.removesuffix(".csv"): [dict(zip(h, x, strict=True)) for x in rows] for file, (h, rows) in tables.items()
    }
    write_json(folder / "manifest.json", manifest(command, rounds=rounds, notes=notes, **facts))
    return "\n\n".join([*(in_columns([head, *rows]) for head, rows in tables.values() if rows), *notes])


def _laps(ways, rounds, calls):
    """(rounds, ways) microseconds of a call of each, in runs of `calls` that alternate."""
    for way in ways:  # what is made at the first call
        way()
    return 1e6 * laps(ways, rounds, calls)


def _binding(name, rounds, notes):
    """Rows of a robot."""
    arm, theirs = robot(name), None
    try:
        theirs = _Pinocchio(name, arm) if arm is not None else None
    except ImportError:
        notes.append("no Pinocchio to compare with")
    if arm is None:
        notes.append(f"{name}: no example-robot-data" + (", the Panda of this package is taken" * (name == "panda")))
        if name != "panda":
            return []
        arm = robots.panda()
    rows, rng = [], np.random.default_rng(0)
    values = {x: rng.normal(size=arm.nv) for x in ("q", "v", "dv", "tau")}
    for quantity, (routine, ports) in ROUTINES.items():
        f = function(arm, quantity)
        if tuple(f.name_in()) != ports:
            raise SolveError(f"study calls: {quantity} has the ports {f.name_in()}, expected {list(ports)}")
        call = numpy_call(compile(f, flags=FLAGS))
        given = [values[x] for x in ports]
        x, y = np.concatenate(given), call.packed(np.concatenate(given))
        ways = [call.evaluate, lambda c=call, x=x: c.packed(x), lambda c=call, x=x, y=y: c.packed(x, y)]
        ways.append(lambda c=call, given=given: c(*given))
        told = ("", "", "", "")
        if theirs is not None:
            ways.append(theirs.way(routine, given))
        times = _laps(ways, rounds, 100)
        if theirs is not None:
            ratios = np.median(times / times[:, -1:], axis=0)
            apart = theirs.difference(routine, given, call)
            told = (f"{np.median(times[:, -1]):.2f}", f"{ratios[1]:.2f}", f"{ratios[3]:.2f}", f"{apart:.1e}")
        rows.append((name, arm.nv, quantity, *(f"{t:.2f}" for t in np.median(times[:, :4], axis=0)), *told))
    return rows


class _Pinocchio:
    """The same arm in Pinocchio, whose joints are in the same order."""

    def __init__(self, name, arm):
        import pinocchio

        self.pin, self.model = pinocchio, pinocchio_model(name)
        self.data = self.model.createData()
        if any((np.diff(places) != 1).any() for places in coordinate_places(arm, self.model)):
            raise SolveError(f"study calls: the joints of {name} are in another order in Pinocchio")

    def way(self, routine, given):
        """A call as users write it."""
        compute, model, data = getattr(self.pin, routine), self.model, self.data
        return lambda: compute(model, data, *given)

    def difference(self, routine, given, call):
        """The largest difference of results, of matrices above their diagonal, relative to the largest entry."""
        theirs, ours = self.way(routine, given)(), call(*given)
        if routine == "computeABADerivatives":
            theirs = (self.data.ddq_dq, self.data.ddq_dv, self.data.Minv)
        pairs = list(zip(*(x if isinstance(x, tuple) else (x,) for x in (ours, theirs)), strict=False))
        upper = (lambda x: x) if routine == "computeRNEADerivatives" else np.triu
        part = [(upper(a), upper(b)) if np.ndim(a) == 2 else (a, b) for a, b in pairs]
        return max(np.abs(a - b).max() / np.abs(b).max() for a, b in part)


def _checks(quantity, order, rounds):
    """Rows of a Function called with arguments of several kinds."""
    f = function(robots.panda(), quantity, order=order)
    values = np.random.default_rng(0).normal(size=(f.n_in(), 7))
    kinds = {
        "arrays": list(values),
        "lists": values.tolist(),
        "DM": list(map(ca.DM, values)),
        "an array and zeros": [values[0], *[0] * (f.n_in() - 1)],
        "four points each": [np.repeat(x[:, None], 4, axis=1) for x in values],
        "MX": [ca.MX.sym("x", 7) for _ in values],
        "MX and arrays": [ca.MX.sym("x", 7), *values[1:]],
    }
    rows, plain = [], ca.Function.__call__
    for kind, given in kinds.items():
        named = dict(zip(f.name_in(), given, strict=True))
        ways = [
            lambda given=given: plain(f, *given),
            lambda given=given: f(*given),
            lambda named=named: plain(f, **named),
            lambda named=named: f(**named),
        ]
        times = _laps(ways, rounds, 5)
        for k, by in ((0, "position"), (2, "name")):
            middle = (*np.median(times[:, k : k + 2], axis=0), np.median(times[:, k + 1] - times[:, k]))
            rows.append((quantity, order, kind, by, *(f"{t:.1f}" for t in middle)))
    return rows
