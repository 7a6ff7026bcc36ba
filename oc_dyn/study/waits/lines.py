"""The lines of the table: what a user waits for, the cases that measure it, peers beside it, what is aimed at."""

from dataclasses import dataclass, field
from pathlib import Path

from ..apart import HERE, Case
from ..cases.calls import BATCHED

NODES, KINEMATIC = (20, 50, 100, 200, 400), (100, 200, 400)


@dataclass(frozen=True)
class Line:
    """A line: name, Case, {peer: Case}, runs of each, {part: aim}, whether a quick study has it."""

    name: str
    case: Case
    peers: dict = field(default_factory=dict)
    runs: int = 3
    aims: dict = field(default_factory=dict)
    quick: bool = False


def lines():
    """All of them, in their order."""
    return [*_motions(), *_other_plans(), *_stages(), *_batches(), *_builds(), *_calls()]


def _motions():
    aims = {("ready", 50): {"first": 0.4}, ("ready", 400): {"first": 5.0}}
    for ends in ("ready", "across"):
        for nodes in NODES:
            given = {"ends": ends, "kind": "rate", "nodes": nodes}
            peers = {"Opti": Case("peers", "opti", given)} if nodes <= 200 else {}
            name = f"Panda, {ends}, torque rate 0.3, {nodes} nodes"
            aim = aims.get((ends, nodes), {})
            yield Line(name, Case("plans", "panda", given), peers, aims=aim, quick=given["nodes"] == 20)
    for nodes in KINEMATIC:
        given = {"ends": "ready", "kind": "kinematic", "nodes": nodes}
        peers = {"Opti": Case("peers", "opti", given)} if nodes <= 200 else {}
        peers |= {"ruckig, jerk": Case("peers", "ruckig", {"ends": "ready"})} if nodes == 100 else {}
        yield Line(f"Panda, ready, kinematic, {nodes} nodes", Case("plans", "panda", given), peers)
    across = {"ends": "across", "kind": "rate", "nodes": 50}
    yield Line("the same as across at 50, no smoothing", Case("plans", "panda", {**across, "smoothing": 0.0}))
    ready = {**across, "ends": "ready"}
    yield Line("the same as ready at 50, Functions kept", Case("plans", "panda", ready, kept=True))
    compiled = Case("plans", "panda", {**ready, "compiled": True}, kept=True)
    yield Line("the same as ready at 50, compiled before", compiled, aims={"again": 0.1})
    for nodes in (50, 200):
        given = {**ready, "nodes": nodes, "solver": "fatrop"}
        yield Line(f"Panda, ready, torque rate 0.3, {nodes} nodes, fatrop", Case("plans", "panda", given))


def _other_plans():
    for what, seed in (("no torque at its limit", 0), ("torques at their limits", 1)):
        case = Case("plans", "talos", {"kind": "torque", "nodes": 50, "seed": seed})
        yield Line(f"Talos, 30 joints, torque, 50 nodes, {what}", case, aims={"first": 2.0})
    yield Line("plan_elastic, UR5", Case("plans", "elastic"), aims={"first": 2.0})
    compiled = Case("plans", "elastic", {"compiled": True}, kept=True)
    yield Line("plan_elastic, UR5, compiled before", compiled)
    peers = {"toppra, no jerk": Case("peers", "toppra")}
    yield Line("plan_along_path, Panda", Case("plans", "along_path"), peers)


def _stages():
    problems = Path(HERE) / "problems"
    if (problems / "quadruped_jump.py").exists():
        case = Case("plans", "quadruped_stages", {"problems": str(problems)})
        yield Line("quadruped jump, largest stage", case, runs=1)
    yield Line("plan_elastic, UR5, largest stage", Case("plans", "elastic_stages"), runs=1)


def _batches():
    for what in BATCHED:
        for threads in (1, 2):
            name = f"od.batch, Panda, {what}, {threads} thread{'s' * (threads > 1)}"
            yield Line(name, Case("calls", "batch", {"what": what, "threads": threads}, kept=True))


def _builds():
    yield Line("import", Case("builds", "package"), runs=9, aims={"oc_dyn": 0.25}, quick=True)
    second, hessian = "inverse_dynamics_second_partials", "inverse_dynamics_lagrangian_hessian"
    for title, quantity, order in (("second partials", second, 0), ("Hessian, order 2", hessian, 2)):
        for kept in (False, True):
            name = f"Talos, {title}, {'in a later process' if kept else 'built'}"
            case = Case("builds", "talos", {"quantity": quantity, "order": order}, kept)
            yield Line(name, case, aims={"first": 0.2} if kept else {})
    for kept in (False, True):
        name = f"Panda, 119 Functions, {'in a later process' if kept else 'built'}"
        yield Line(name, Case("builds", "panda", kept=kept), runs=2)


def _calls():
    for robot in ("panda", "ur5"):
        given = {"robot": robot}
        peers = {"Pinocchio": Case("peers", "pinocchio", given), "MuJoCo": Case("peers", "mujoco", given)}
        yield Line(f"a call, inverse dynamics, {robot}", Case("calls", "single", given, kept=True), peers)
    yield Line("oc-dyn demo", Case("calls", "demo"), aims={"after import": 2.0})
    for executor in ("serial", "processes:2", "dask:threads", "dask:2"):
        case = Case("calls", "side_by_side", {"executor": executor})
        yield Line(f"16 motions of a Panda, {executor}", case, runs=2)
