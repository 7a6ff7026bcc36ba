"""Wrong arguments of every kind in every place: a result, or one of our errors, never one from inside."""

import warnings
from functools import cache

import casadi as ca
import numpy as np
import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

import oc_dyn as od
from oc_dyn.errors import ModelWarning

OURS = od.errors.ALL
Limits, RobotBuilder = od.Limits, od.RobotBuilder


class Odd:
    """A thing of no use."""

    def __repr__(self):
        return "Odd()"


NAMES = [
    "joint1",
    "link1",
    "tip",
    "joint2",
    "",
    "q",
    "taylor",
    "inverse_dynamics",
    "symbolic",
    "body",
    "é\u0000",
    "x" * 3000,
]
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 30),
    st.sampled_from([10**400, -(10**400), np.float32(2), np.int8(-1), 1j, b"x", Odd(), Odd, len, ...]),
    st.floats(),
    st.sampled_from(NAMES),
    st.text(max_size=5),
    st.lists(st.one_of(st.floats(), st.sampled_from(NAMES), st.none()), max_size=8),
    st.tuples(st.floats(), st.floats(), st.floats()),
    st.dictionaries(st.sampled_from([*NAMES, 3]), st.one_of(st.floats(), st.none(), st.text()), max_size=2),
    st.sets(st.integers(), max_size=2),
    st.lists(st.integers(0, 4), max_size=3).map(lambda shape: np.full(shape, 0.3)),
    st.tuples(st.integers(0, 5), st.integers(0, 4)).map(lambda shape: ca.DM.ones(*shape)),
    st.tuples(st.integers(1, 4), st.integers(1, 2)).map(lambda shape: ca.SX.sym("x", *shape)),
    st.tuples(st.integers(1, 4), st.integers(1, 2)).map(lambda shape: ca.MX.sym("x", *shape)),
    st.just(np.array(["a", "b"])),
    st.just(np.array([None, 1.0, 2.0])),
)  # fmt: skip


@cache
def robot():
    return od.robots.chain(3)


def sane(call, *more):
    """Call it; errors other than ours, and TypeErrors or FileNotFoundErrors where `more` has them, get through."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ModelWarning)
        try:
            return call()
        except (*OURS, *more) as error:
            assert str(error)
            assert len(str(error)) < 100_000


PLACES = {
    "robot": lambda x: od.function(x, "inverse_dynamics"),
    "quantity": lambda x: od.function(robot(), x),
    "order": lambda x: od.function(robot(), "gravity", order=x if not isinstance(x, int) or x < 3 else 1),
    "method": lambda x: od.function(robot(), "inverse_dynamics", method=x),
    "methods": od.methods,
    "name": lambda x: od.function(robot(), "gravity", name=x),
    "ports": lambda x: od.ports(robot(), "gravity", x if not isinstance(x, int) or x < 3 else 1),
    "external_wrenches": lambda x: od.function(robot(), "inverse_dynamics", external_wrenches=x),
    "friction": lambda x: od.function(robot(), "inverse_dynamics", friction=x),
    "option frame": lambda x: od.function(robot(), "frame_pose", frame=x),
    "representation": lambda x: od.function(robot(), "frame_twist", frame="link1", representation=x),
    "representation of a base": lambda x: od.function(robot(), "inverse_dynamics", representation=x),
    "prescribed": lambda x: od.function(robot(), "hybrid_dynamics", prescribed=x),
    "parameters": lambda x: od.function(robot(), "inverse_dynamics", parameters=x),
    "columns": lambda x: od.function(robot(), "joint_torque_regressor", columns=x),
    "joint": lambda x: robot().joint(x),
    "frame": lambda x: robot().frame(x),
    "body": lambda x: robot().body(x),
    "limit": lambda x: robot().limit(x),
    "integrate q": lambda x: robot().integrate(x, np.zeros(3)),
    "integrate dv": lambda x: robot().integrate(np.zeros(3), x),
    "difference": lambda x: robot().difference(np.zeros(3), x),
    "configuration_rate": lambda x: robot().configuration_rate(np.zeros(3), x),
    "locked": lambda x: robot().locked(x),
    "locked value": lambda x: robot().locked({"joint1": x}),
    "with_gravity": lambda x: robot().with_gravity(x),
    "with_payload frame": lambda x: robot().with_payload(x, od.Inertia.zero()),
    "with_payload inertia": lambda x: robot().with_payload("link1", x),
    "with_payload name": lambda x: robot().with_payload("link1", od.Inertia.zero(), x),
    "without_payload": lambda x: robot().without_payload(x),
    "with_snapped_angles": lambda x: robot().with_snapped_angles(x),
    "parameter_values": lambda x: robot().parameter_values(x),
    "parameter_rows": lambda x: robot().parameter_rows(x),
    "Inertia mass": lambda x: od.Inertia.from_com(x),
    "Inertia com": lambda x: od.Inertia.from_com(1.0, x),
    "Inertia tensor": lambda x: od.Inertia.from_com(1.0, (0, 0, 0), x),
    "chain": lambda x: od.robots.chain(x),
    "tree": lambda x: od.robots.tree(3, x),
    "robots.by_name": od.robots.by_name,
    "gravity of a builder": lambda x: RobotBuilder("r", gravity=x),
    "link": lambda x: RobotBuilder("r").add_link(x),
    "link mass": lambda x: RobotBuilder("r").add_link("l", mass=x),
    "link com": lambda x: RobotBuilder("r").add_link("l", mass=1.0, com=x),
    "link inertia": lambda x: RobotBuilder("r").add_link("l", mass=1.0, inertia=x),
    **{
        f"joint {key}": lambda x, key=key: RobotBuilder("r").add_joint(
            **{"name": "j", "kind": "revolute", "parent": "a", "child": "b", key: x}
        )
        for key in (
            "name", "kind", "parent", "child", "transform", "coordinates", "xyz", "rpy", "rotation", "axis", "pitch",
            "lower",
            "upper", "velocity", "effort", "armature", "rotor_inertia", "gear_ratio", "damping", "friction", "mimic",
        )
    },
    "build lock": lambda x: _two_links().build(lock=x),
    "limits updated": lambda x: Limits.of(robot()).updated(x),
    "limits updated value": lambda x: Limits.of(robot()).updated({"joint1": {"v": x}}),
    "limits without": lambda x: Limits.of(robot()).without(x),
    "limits scaled": lambda x: Limits.of(robot()).scaled(v=x),
    "limits v": lambda x: Limits(("a", "b", "c"), v=x),
    "limits q": lambda x: Limits(("a", "b", "c"), q=x),
    "load lock": lambda x: od.load_urdf(_TEXT, lock=x),
    "load gravity": lambda x: od.load_urdf(_TEXT, gravity=x),
    "load snap_angles": lambda x: od.load_urdf(_TEXT, snap_angles=x),
}  # fmt: skip
_TEXT = (
    '<robot name="r"><link name="a"/><link name="b"/><joint name="joint1" type="continuous"><parent link="a"/>'
    '<child link="b"/><axis xyz="0 0 1"/></joint></robot>'
)
CALLS = [("inverse_dynamics", {}), ("inverse_dynamics", {"external_wrenches": True}), ("mass_matrix", {})]
CALLS += [("hybrid_dynamics", {"prescribed": ("joint2",)}), ("inverse_dynamics", {"parameters": "symbolic"})]


def _two_links():
    b = RobotBuilder("r")
    b.add_link("a")
    b.add_body("b", "revolute", "a", joint="joint1", mass=1.0)
    return b


@examples(1200)
@given(st.sampled_from(sorted(PLACES)), ODD)
def test_one_wrong_argument(place, x):
    sane(lambda: PLACES[place](x))


@pytest.mark.slow
@examples(300)
@given(st.sampled_from(range(len(CALLS))), st.data())
def test_functions_called_with_anything(which, data):
    quantity, options = CALLS[which]
    f = od.function(robot(), quantity, **options)
    names = st.one_of(st.sampled_from(f.name_in()), st.sampled_from(NAMES))
    if data.draw(st.booleans()):
        given_ = data.draw(st.dictionaries(names, ODD, max_size=4))
        found = sane(lambda: f(**given_))
    else:
        given_ = data.draw(st.lists(ODD, max_size=f.n_in() + 1))
        found = sane(lambda: f(*given_))
    assert found is None or isinstance(found, (dict, tuple, ca.DM, ca.SX, ca.MX))


@examples(150)
@given(st.sampled_from(["q", "v", "dv"]), st.lists(st.integers(0, 4), min_size=1, max_size=3), st.floats())
def test_arrays_of_any_shape_and_number(port, shape, number):
    f = od.function(robot(), "inverse_dynamics")
    found = sane(lambda: f(**{port: np.full(shape, number)}))
    if np.isnan(number) and found is not None and np.prod(shape):
        assert np.isnan(found["tau"].full()).any()  # what is no number is not hidden


@examples(150)
@given(ODD)
def test_load_urdf_of_anything(x):
    sane(lambda: od.load_urdf(x), TypeError, FileNotFoundError)
