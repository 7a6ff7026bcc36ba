"""Motions that users plan: each in a process of its own, once and once again."""

import contextlib
from pathlib import Path

import casadi as ca

import oc_dyn as od

from . import robots
from .timing import quiet, timed, twice

KINDS = {  # of limits
    "kinematic": {"ignore": ("tau", "dtau")},
    "torque": {"ignore": ("dtau",)},
    "rate": {"scale": {"dtau": 0.3}},
}


def planned(motion):
    """Text: what a motion is."""
    return f"T {motion.duration:.6f} s, {motion.info.get('iterations', '?')} iterations"


def point_to_point(robot, ends, kind, continuity=3, own_limits=True, **options):
    """() -> Trajectory; the work of the cases of this file and of planning.py."""
    r = robots.robot(robot)
    how = {"continuity": continuity, "refinements": 0, "check": "off", "progress": False, **KINDS[kind], **options}
    if not own_limits:
        how["limits"] = robots.limits(r)
    return lambda: od.plan_point_to_point(r, *ends, **how)


def panda(ends, kind, **options):
    """A Panda between two of robots.ENDS."""
    quiet()
    yield from twice(point_to_point("panda", robots.ENDS[ends], kind, **options), planned)


def talos(kind, seed=0, **options):
    """Talos without its grippers on a fixed base, limits of acceleration and torque rate made up."""
    quiet()
    r = robots.robot("talos30")
    yield from twice(point_to_point("talos30", robots.ends(r, seed), kind, own_limits=False, **options), planned)


def elastic(**options):
    """A UR5 with elastic joints, from rest to rest in the shortest time."""
    quiet()
    arm, how = elastic_ur5(), {**OF_MOTORS, "check": "off", **options}

    def work():
        return od.elastic.plan_elastic(arm, *robots.UR5, **how)

    yield from twice(work, lambda plan: f"T {plan.duration:.6f} s")


def elastic_ur5():
    """A UR5 whose joints are springs of 1e4 (arm) and 3e3 Nm/rad (wrist)."""
    stiffness, inertia = [1e4] * 3 + [3e3] * 3, [0.5] * 3 + [0.1] * 3
    return od.elastic.elastic_robot(robots.robot("ur5"), stiffness, motor_inertia=inertia, joint_friction=False)


OF_MOTORS = {"motor_torque": [150, 150, 150, 28, 28, 28], "motor_speed": 3.0}
WAY = (robots.READY, (1.05, -0.4927, -0.1, -2.0781, 0.65, 2.1854, 0.4927), robots.ENDS["ready"][1])


def along_path(**options):
    """A Panda along a parabola of its joints, all limits held."""
    quiet()
    r = robots.robot("panda")

    def work():
        return od.plan_along_path(r, WAY, at=(0.0, 0.5, 1.0), check="off", **options)

    yield from twice(work, planned)


# -- stages: instructions of their exact Hessians ------------------------------------------------------------------


class _Asked(Exception):
    """A problem was to be solved."""


def problem_of(work):
    """(Problem, arguments) of the first Problem.solve in work(), which ends there."""
    asked, solve = [], od.Problem.solve

    def stop(self, *arguments, **options):
        asked.append((self, options))
        raise _Asked

    od.Problem.solve = stop
    try:
        with contextlib.suppress(_Asked):
            work()
    finally:
        od.Problem.solve = solve
    return asked[0]


def stage_counts(problem, method):
    """Parts: instructions of the largest stage's value, Jacobian and exact Hessian, and of the Hessian that AD makes of
    the same value and cost, common subexpressions eliminated."""
    begun, made = timed("built", lambda: problem.transcribed(method))
    kind = max((g.kind for g in made.assembly.groups), key=lambda k: k.hessian.n_instructions())
    for part, f in (("value", kind.value), ("Jacobian", kind.jacobian), ("Hessian", kind.hessian)):
        yield {"part": part, "value": f.n_instructions(), "unit": "instructions"}
    yield begun
    yield {"part": "Hessian by AD, cse", "value": hessian_by_ad(kind).n_instructions(), "unit": "instructions"}


def hessian_by_ad(kind):
    """The Hessian of a kind of stage by AD of its expanded value and cost."""
    value, cost = kind.value.expand(), kind.cost.expand()
    z, p, s = (ca.SX.sym(name, *value.size_in(k)) for k, name in enumerate("zps"))
    following, rows = value(z, p, s)
    lam = [ca.SX.sym(f"lam{k}", y.shape[0]) for k, y in enumerate((ca.SX(1, 1), following, rows))]
    y = ca.cse([lam[0] * cost(z, p, s) + ca.dot(lam[1], following) + ca.dot(lam[2], rows)])[0]
    H = ca.triu(ca.jacobian(ca.gradient(y, z), z, {"symmetric": True}))
    return ca.Function("by_ad", [z, p, s, *lam], ca.cse([H]))


def quadruped_stages(problems):
    """The jump of problems/quadruped_jump.py; problems: the folder of that file."""
    quiet()
    jump = loaded(Path(problems) / "quadruped_jump.py")
    cfg, r = jump.Config(), od.robots.quadruped()
    problem, options = problem_of(lambda: jump.jump(cfg, r, *jump.stand(cfg, r)))
    yield from stage_counts(problem, options["method"])


def elastic_stages():
    """What plan_elastic solves for a UR5."""
    quiet()
    arm = elastic_ur5()
    problem, options = problem_of(lambda: od.elastic.plan_elastic(arm, *robots.UR5, **OF_MOTORS))
    yield from stage_counts(problem, options.get("method", "rk4"))


def loaded(path):
    """The module in a file."""
    import importlib.util

    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
