"""A motion on many nodes, of robots of 6 to 30 joints: seconds, iterations, share of functions, memory."""

import time

import casadi as ca

from . import robots
from .plans import point_to_point
from .timing import quiet, timed

ROBOTS = {6: "ur5", 7: "panda", 14: "two_pandas", 30: "talos30"}  # by the number of joints
SEED = 1


def ends(dof):
    """Of the motion: those of the demo for a Panda and for two of them, at random otherwise."""
    if dof == 7:
        return robots.ENDS["ready"]
    if dof == 14:
        return [[*left, *right] for left, right in zip(*(robots.ENDS[k] for k in ("ready", "across")), strict=True)]
    return robots.ends(robots.robot(ROBOTS[dof]), SEED)


def plan(dof, kind, nodes, compiled=False):
    """Parts "cold" and "warm", the first plan of a process and the same once again; with compiled stages "compiling"
    and "compiled"."""
    quiet()
    solvers = watched_solvers()
    work = point_to_point(ROBOTS[dof], ends(dof), kind, own_limits=False, nodes=nodes, compiled=compiled)
    for part in ("compiling", "compiled") if compiled else ("cold", "warm"):
        solvers.clear()
        row, motion = timed(part, work)
        whole, within = (sum(x) for x in zip((0.0, 0.0), *solvers, strict=True))
        row |= {"functions": within, "solver": whole - within, "iterations": motion.info.get("iterations")}
        yield {**row, "T": motion.duration, "nodes": len(motion.t) - 1, "peak": peak()}


def watched_solvers():
    """A list to which every call of an NLP solver from now on adds its wall seconds, and those in its functions."""
    found, make = [], ca.nlpsol

    class Watched(ca.Function):
        def __call__(self, *arguments, **ports):
            begun = time.perf_counter()
            out = super().__call__(*arguments, **ports)
            whole = time.perf_counter() - begun
            found.append((whole, sum(x for name, x in self.stats().items() if name.startswith("t_wall_nlp_"))))
            return out

    ca.nlpsol = lambda *arguments, **options: Watched(make(*arguments, **options))
    return found


def peak():
    """Largest resident memory of this process so far [MB], or None."""
    from oc_dyn.study.memory import peak

    return peak()
