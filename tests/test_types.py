"""Types of the public surface: every parameter and result has one, and what comes out is what they say."""

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
import oc_dyn.executors
import oc_dyn.interop

NAMESPACES = (od, od.control, od.elastic, od.interop, oc_dyn.executors, od.identification, od.design, od.robots)


def public_names(namespace):
    return [name for name in dir(namespace) if not name.startswith("_")]


def public_callables():
    """{qualified name: function or method} of all that can be reached by public names and belongs to oc_dyn."""
    out = {}
    for namespace in NAMESPACES:
        for name in public_names(namespace):
            x = getattr(namespace, name)
            if isinstance(x, types.ModuleType) or not getattr(x, "__module__", "").startswith("oc_dyn"):
                continue
            out |= {f.__qualname__: f for f in methods_of(x)} if inspect.isclass(x) else {f"{x.__module__}.{name}": x}
    return out


def methods_of(cls):
    """Public methods, properties and the constructor that a class of oc_dyn defines or inherits from one of oc_dyn."""
    for base in cls.__mro__:
        if not base.__module__.startswith("oc_dyn"):
            continue
        for name, x in vars(base).items():
            if name.startswith("_") and name not in ("__init__", "__call__"):
                continue
            f = x.fget if isinstance(x, property) else inspect.unwrap(getattr(x, "__func__", x))
            if inspect.isfunction(f) and f.__module__.startswith("oc_dyn"):
                yield f


CALLABLES = public_callables()
TYPED = {name: f for name, f in CALLABLES.items() if inspect.isfunction(f)}


def test_much_is_reached():
    some = {"Robot.integrate", "RobotBuilder.add_joint", "Conversion.from_dv", "oc_dyn.model.urdf.load_urdf"}
    assert some <= TYPED.keys()


@pytest.mark.parametrize("name", TYPED)
def test_every_parameter_and_result_has_a_type(name):
    f = TYPED[name]
    hints = typing.get_type_hints(f)  # also evaluates their texts: a name that is not there is an error
    bare = [p for p in inspect.signature(f).parameters if p not in ("self", "cls") and p not in hints]
    assert not bare
    assert "return" in hints


# -- what comes out ------------------------------------------------------------------------------------------------


def is_a(value, hint):
    """Whether a value is of a type as far as it can be seen: of containers the first element, of arrays their kind."""
    if hint in (typing.Any, object):
        return True
    if hint is None:
        return value is None
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(is_a(value, x) for x in inner)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and value.dtype == float
    if origin is Callable:
        return callable(value)
    if origin is tuple and inner[-1] is not Ellipsis:
        return type(value) is tuple and len(value) == len(inner) and all(map(is_a, value, inner))
    if origin is tuple:
        return type(value) is tuple and all(is_a(x, inner[0]) for x in value)
    if origin in (list, frozenset):
        return isinstance(value, origin) and all(is_a(x, inner[0]) for x in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, origin) and all(is_a(k, inner[0]) and is_a(x, inner[1]) for k, x in value.items())
    return type(value) is hint if hint in (int, float, bool) else isinstance(value, hint)


def test_the_check_tells_types_apart():
    hints = typing.get_type_hints(od.Robot.integrate)
    assert is_a(np.zeros(2), hints["return"])
    assert is_a(ca.SX(2, 1), hints["return"])
    assert not is_a([0.0, 0.0], hints["return"])
    assert not is_a(np.zeros(2, int), hints["return"])
    assert not is_a((1.0, "x"), tuple[float, float])
    assert not is_a(np.float64(1.0), float)
    assert not is_a({"a": 1}, dict[str, str])


PANDA, ARM = od.robots.panda(), od.robots.planar_2r()
QUADRUPED = od.robots.quadruped()
Q, V = np.array([0.3, -0.2]), np.array([0.5, 1.0])
MOTION = od.identification.PeriodicMotion(2.0, Q, np.ones((2, 3)), np.zeros((2, 3)))
DESIGN = od.design.link_length("elbow")


class Joint:  # of a model of Pinocchio
    def __init__(self, k):
        self.nq, self.idx_q, self.idx_v = 1, k, k

    def shortname(self):
        return "JointModelRZ"


class Model:
    names, njoints, nq, nv = ("universe", "elbow", "shoulder"), 3, 2, 2
    joints = (None, Joint(0), Joint(1))


TIP = od.function(ARM, "frame_pose", frame="tip")(q=[0.4, 0.5])["p"]
BASE, el = od.base_parameters(ARM), od.elastic
LIMITS = od.Limits(ARM.coordinate_names, q=(-3, 3), v=2, dv=10, d2v=100, tau=500)
MOVED = od.Trajectory([0, 1, 2], np.zeros((2, 5, 2)), joints=("a", "b"), units=("rad", "rad"), robot=ARM, limits=LIMITS)
RATE = ca.Function("rate", [ca.SX.sym("x", 2), ca.SX.sym("w")], [ca.SX.zeros(2)])
SOFT = el.elastic_robot(ARM, 100.0, motor_inertia=0.1)
STEP = el.rest_to_rest([0, 0], [0.1, 0.1], 1.0)
RUN = el.simulate(SOFT, el.feedforward(SOFT), el.reference(SOFT, STEP), dt=0.5, rtol=1e-6)
HARD = el.NonlinearSpring(lambda z: 100 * z + 50 * z**3)


def problem():
    """A small one, a state of it and a chain."""
    ocp = od.Problem(4, 1.0)
    x, u = ocp.state("x"), ocp.control("u")
    y = ocp.chain("y", 1, 2)
    ocp.rate(x, u)
    ocp.start({x: 0, y[0]: 0, y[1]: 0})
    ocp.goal({x: 1})
    ocp.minimize(integral=u**2 + y[2] ** 2)
    return ocp, x, y


def of_problem(name, arguments):
    """A method, or property, of a problem of its own."""
    ocp, x, y = problem()
    f = getattr(od.Problem, name)
    return getattr(f, "fget", f), ocp, *arguments(x, y)


FOUND = problem()[0].solve()
PROBLEM = {
    "state": lambda x, y: ("a", 2),
    "control": lambda x, y: ("b",),
    "parameter": lambda x, y: ("c",),
    "varying": lambda x, y: ("d",),
    "variable": lambda x, y: ("e",),
    "integral": lambda x, y: (x,),
    "chain": lambda x, y: ("f", 2, 3),
    "between": lambda x, y: (y, 0.5),
    "rigid_body": lambda x, y: (ARM,),
    "contact_body": lambda x, y: (QUADRUPED, ["LF_foot"]),
    "limit": lambda x, y: (0, x, 1),
    "start": lambda x, y: ({x: 0},),
    "guess": lambda x, y: ({x: 0},),
    "with_mesh": lambda x, y: (8,),
    "phase": lambda x, y: (4, 1.0),
    "transcribed": lambda x, y: (),
    **dict.fromkeys(("duration", "nominal", "relative_step", "step", "time", "description"), lambda x, y: ()),
}
CONVERSION = od.interop.to_pinocchio(ARM, Model())

CALLS = [
    *((getattr(od.Robot, x), QUADRUPED) for x in ("neutral", "canonical_report", "integrate_function")),
    *((getattr(od.Robot, x).fget, QUADRUPED) for x, p in vars(od.Robot).items() if isinstance(p, property)),
    *((getattr(od.Inertia, x).fget, ARM.bodies[0].inertia) for x in ("com", "tensor_com", "matrix", "parameters")),
    (od.Robot.joint, ARM, "elbow"),
    (od.Robot.frame, ARM, "tip"),
    (od.Robot.body, ARM, "upper"),
    (od.Robot.limit, ARM, "lower"),
    (od.Robot.parameter_values, ARM, ("armature",)),
    (od.Robot.parameter_rows, ARM),
    (od.Robot.random_configuration, ARM, 0),
    (od.Robot.normalized, ARM, [1, 2]),
    (od.Robot.integrate, ARM, [1, 2], Q),
    (od.Robot.integrate, ARM, ca.SX.sym("q", 2), Q),
    (od.Robot.integrate, ARM, ca.DM(Q), Q),
    (od.Robot.difference, ARM, Q, V),
    (od.Robot.configuration_rate, ARM, Q, ca.MX.sym("v", 2)),
    (od.Robot.locked, ARM, {"elbow": 0.1}),
    (od.Robot.with_payload, ARM, "tip", od.Inertia.from_com(1.0)),
    (od.Robot.with_frame, ARM, "tool", "tip"),
    (od.Robot.with_gravity, ARM, (0, 0, 0)),
    (od.Robot.with_snapped_angles, ARM),
    (od.Inertia.expressed_in, ARM.bodies[0].inertia, np.eye(3), (1, 0, 0)),
    (od.load_urdf, '<robot name="r"><link name="a"/></robot>'),
    (od.robots.names,),
    (od.robots.by_name, "chain:3"),
    (od.robots.panda_limits,),
    (od.robots.fr3_limits,),
    (od.robots.fr3_velocity_limits, [0, 0, 0, -1, 0, 1, 0]),
    (od.robots.propellers,),
    (od.robots.propeller_poses,),
    *((getattr(od.interop.Conversion, x), CONVERSION, Q) for x in ("q", "from_q", "v", "from_v", "dv", "tau")),
    (od.interop.Conversion.velocity_matrix, CONVERSION),
    (od.interop.Conversion.q, CONVERSION, ca.SX.sym("q", 2)),
    (od.interop.xyzw, [1, 0, 0, 0]),
    (od.interop.linear_first, np.ones(6)),
    (od.interop.rotation_to_quaternion, np.eye(3)),
    (od.interop.rpy_to_quaternion, (0.1, 0.2, 0.3)),
    (od.interop.quaternion_to_rpy, (1, 0, 0, 0)),
    (od.interop.rpy_rate_matrix, ca.SX.sym("rpy", 3)),
    (od.interop.rpy_rate, (0.1, 0.2, 0.3), V[[0, 1, 1]]),
    (oc_dyn.executors.checked, "processes:2"),
    (oc_dyn.executors.told, ValueError("text")),
    (od.identification.PeriodicMotion.sample, MOTION, [0.0, 0.5]),
    (od.identification.condition, ARM, MOTION, 10),
    (od.identification.is_physical, ARM.parameters),
    (od.identification.nearest_physical, ARM.parameters),
    (od.identification.pseudo_inertia, ARM.parameters[:10]),
    (od.design.changed, ARM, {DESIGN: 0.1}),
    (od.design.displacement, np.ones(6)),
    (od.design.from_parameters, ARM.parameters[:10]),
    (od.design.Parameter.__add__, DESIGN, DESIGN),
    (od.design.Parameter.changes, DESIGN, ARM),
    (od.sensitivity, ARM, "inverse_dynamics", DESIGN),
    (od.numpy_call, od.function(ARM, "inverse_dynamics")),
    (od.check_derivatives, od.function(ARM, "inverse_dynamics", derivatives="analytic"), 1),
    (od.function, ARM, "mass_matrix"),
    (od.function, SOFT, "elastic_flat_map"),
    (od.ports, ARM, "mass_matrix"),
    (od.quantities,),
    (od.methods, "mass_matrix"),
    (od.table,),
    (od.contact_points, ARM, ["tip"]),
    (od.contact_wrenches, ARM, ["tip"]),
    (od.base_parameters, ARM),
    *((getattr(type(BASE), x).fget, BASE) for x in ("rank", "gap", "values", "names")),
    (type(BASE).of, BASE, ARM.parameters),
    (type(BASE).regressor, BASE),
    (od.as_tensor, np.ones((4, 2))),
    (od.Limits.of, ARM),
    (partial(od.Limits.scaled, v=0.5), LIMITS),
    (od.Limits.without, LIMITS, "tau"),
    (od.Limits.updated, LIMITS, {"elbow": {"v": 1, "q": (-1, None)}}),
    (od.Limits.as_dict, LIMITS),
    (partial(od.inverse_kinematics, p=TIP, q_start=[0.1, 0.2]), ARM, "tip"),
    (od.simulate, ARM, Q, V, np.zeros((5, 2)), 0.01),
    (od.motion_report, ARM, np.linspace(0, 0.1, 11), *np.zeros((3, 11, 2))),
    (partial(od.tighten, within=1.0), lambda margins, before: 1, lambda result: {"v": [0.5]}, {"v": 1.0}),
    (od.rollout, RATE, [1, 2], np.zeros((5, 1)), 0.1),
    *((getattr(od.Trajectory, x).fget, MOVED) for x in ("duration", "derivatives", "q", "d3v", "tau", "dtau")),
    *((getattr(od.Trajectory, x), MOVED) for x in ("utilization", "jumps", "impulses", "check", "__len__")),
    (od.Trajectory.sample, MOVED, 0.5),
    (od.Trajectory.sample, MOVED, [0, 1]),
    (od.Trajectory.both_sides, MOVED, 0.5),
    (partial(od.plan_along_path, limits=LIMITS, nodes=10, check="off"), ARM, [[0, 0], [1, 1]]),
    (partial(od.plan_point_to_point, limits=LIMITS, nodes=10, check="off"), ARM, [0, 0], [1, 1]),
    *(of_problem(*x) for x in PROBLEM.items()),
    (type(FOUND).__getitem__, FOUND, "x"),
    (type(FOUND).duration.fget, FOUND),
    (type(FOUND).check, FOUND),
    (od.sweep, dict, {"a": [1, 2]}),
    (od.script, test_much_is_reached, MOVED),
    (partial(el.elastic_robot, motor_inertia=0.1), ARM, [100.0, 200.0]),
    *((getattr(el.ElasticRobot, x).fget, SOFT) for x, p in vars(el.ElasticRobot).items() if isinstance(p, property)),
    *((getattr(el.ElasticRobot, x), SOFT) for x in ("flat_order", "continuity", "linear_stiffness", "undamped")),
    (el.ElasticRobot.rotor_torque, SOFT, [1, 2]),
    (el.ElasticRobot.rotor_speed, SOFT, [1, 2]),
    (el.ElasticRobot.with_errors, SOFT, 0.1),
    *((f, SOFT) for f in (el.feedforward, el.plant, el.plant_rates)),
    *((f, SOFT, 10.0, {"elbow": 1.0, "shoulder": 2.0}) for f in (el.gravity_pd, el.computed_torque, el.feedforward_pd)),
    (el.feedback_linearization, SOFT, 20),
    (el.pole_gains, 20, 4, 2),
    (el.rest_to_rest, [0, 0], [1, 1], 1),
    (el.reference, SOFT, STEP),
    (el.Reference.at, el.reference(SOFT, STEP), [0.0, 0.5]),
    (el.motor_coupling, ARM, 1e-4, 50),
    (el.collocation_equations, el.plant_rates(SOFT)),
    (el.collocation_step, el.plant_rates(SOFT)),
    (partial(el.simulate, dt=0.5, rtol=1e-6), SOFT, el.feedforward(SOFT), el.reference(SOFT, STEP)),
    *((getattr(el.Run, x).fget, RUN) for x in ("error", "largest_error", "energy", "energy_balance")),
    (el.NonlinearSpring.reach.fget, HARD),
    (el.NonlinearSpring.refusal, HARD, 1.0),
    (el.NonlinearSpring.scaled, HARD, 2),
    (el.NonlinearSpring.torques, HARD, [0.1], 0),
    (el.NonlinearSpring.deflections, HARD, [1.0, 2.0], []),
    (el.LinearSpring.scaled, el.LinearSpring(2.0), 2.0),
    (el.LinearSpring.deflections, el.LinearSpring(2.0), [1.0, 2.0], []),
]


def plain(f):
    return f.func if isinstance(f, partial) else f


@pytest.mark.sample(10)
@pytest.mark.parametrize("call", CALLS, ids=[f"{k}-{plain(c[0]).__qualname__}" for k, c in enumerate(CALLS)])
def test_results_are_of_the_type_that_is_written(call):
    f, *arguments = call
    result = f(*arguments)
    hint = typing.get_type_hints(plain(f))["return"]
    assert is_a(result, hint), f"{type(result)}: {result!r}"


def test_fields_of_a_robot_are_of_the_types_that_are_written():
    for record in (BASE, LIMITS, SOFT, SOFT.joints[0], RUN, STEP, el.reference(SOFT, STEP), el.plant(SOFT)):
        for name, hint in typing.get_type_hints(type(record)).items():
            if typing.get_origin(hint) is not typing.ClassVar:
                assert is_a(getattr(record, name), hint), name
    for robot in (PANDA, QUADRUPED):
        for record in (robot, robot.bodies[-1], robot.bodies[-1].joint, next(iter(robot.frames.values()))):
            for name, hint in typing.get_type_hints(type(record)).items():
                value = getattr(record, name)
                assert is_a(value, hint), f"{type(record).__name__}.{name}: {value!r}"


def test_the_marker_for_type_checkers_comes_with_the_package():
    from importlib.resources import files

    assert files("oc_dyn").joinpath("py.typed").is_file()


STRICT = """
import numpy as np

import oc_dyn as od
from oc_dyn.types import Array


def arm() -> od.Robot:
    return od.load_urdf("arm.urdf")


def torques(robot: od.Robot, q: Array) -> Array:
    f: od.RobotFunction = od.function(robot, "inverse_dynamics", order=1, friction=True)
    return np.array(f(q, 0, 0, 0)[0])


def found(robot: od.Robot) -> od.elastic.Run:
    soft = od.elastic.elastic_robot(robot, {"elbow": 100.0}, motor_inertia=0.1)
    law = od.elastic.feedback_linearization(soft, 20.0)
    to_rest = od.elastic.rest_to_rest([0, 0], [1, 1], 1.0)
    return od.elastic.simulate(soft, law, od.elastic.reference(soft, to_rest), noise={"q": 1e-3})


base = od.base_parameters(arm())
rank: int = base.rank
spans: tuple[float, float] = base.gap
limits = od.Limits.of(arm()).scaled(v=0.5).without("tau")
with od.deadline(10.0):
    motion = od.plan_along_path(arm(), np.zeros((3, 2)), limits=limits)
worst: float = motion.check().worst
samples = motion.sample(0.01)
q: Array = samples.q
straight: od.Trajectory = od.plan_point_to_point(arm(), [0, 0], [1, 1], limits=limits, scale={"v": 0.5})
ocp = od.Problem(20, (0.5, 2.0))
x, u = ocp.state("x", 2, upper=[1, 2], guess=lambda s: [s, s]), ocp.control("u", 2)
ocp.rate(x, u)
ocp.limit(0, x, 1, name="range")
ocp.minimize(integral=u.T @ u)
found_x: Array = ocp.solve(method="collocation")[x]
out = od.sweep(od.inverse_kinematics, {"p": [[1, 0, 0]]}, executor="processes:2")
failed: list[int] = out.failed
written: str = od.animate(arm(), samples.t, samples.q, "motion.gif")
reveal_type(od.load_urdf)
od.load_udrf
od.base_parameters(arm(), tolerance="small")
"""


@pytest.mark.slow
def test_strict_programs_may_use_the_public_names(tmp_path):
    api = pytest.importorskip("mypy.api")
    (tmp_path / "program.py").write_text(STRICT)
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nmypy_path = {Path(oc_dyn.__file__).parents[1]}\n")
    words = ["--strict", "--follow-imports=silent", f"--cache-dir={tmp_path / 'cache'}"]
    out, err, _ = api.run([*words, f"--config-file={tmp_path / 'mypy.ini'}", str(tmp_path / "program.py")])
    assert not err
    shown, unknown, wrong, summary = out.splitlines()
    assert "-> oc_dyn.model.robot.Robot" in shown
    assert 'Module has no attribute "load_udrf"' in unknown
    assert 'incompatible type "str"; expected "float"' in wrong
    assert summary.startswith("Found 2 errors in 1 file")
