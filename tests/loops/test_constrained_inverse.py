"""Inverse dynamics with constraint forces: two methods, the way back by dynamics, least squares, refusals."""

import functools

import numpy as np
import pytest
from loops.linkages import all_of, largest, linkage, state

import oc_dyn as od
from oc_dyn.errors import ModelError, ShapeError, UnknownName

FEET = ("LF_foot", "RF_foot", "LH_foot", "RH_foot")
CASES = {  # robot, contacts, options
    "four feet": ("quadruped", dict.fromkeys(FEET, "point"), {}),
    "weighted": ("quadruped", dict.fromkeys(FEET, "point"), {"weighted": True}),
    "two feet": ("quadruped", dict.fromkeys(FEET[::3], "point"), {}),
    "pushed": ("quadruped", dict.fromkeys(FEET[::3], "point"), {"external_wrenches": True}),
    "soles": ("floating_humanoid", {"left_leg6": "surface", "right_leg6": "surface"}, {}),
    "drive of a loop": ("four_bar", {}, {}),
    "knee linkage": ("floating_leg", {"foot": "surface"}, {}),
    "platform": ("gough_stewart", {}, {"actuated": tuple(f"leg{k}" for k in range(1, 7))}),
}


def quantity(case, order, name="constrained_inverse_dynamics", **more):
    robot, contacts, options = CASES[case]
    return od.function(linkage(robot), name, order=order, contacts=contacts, **{**options, **more})


@functools.cache
def motion(case, order):
    """{port: value} of a motion that torques and forces make: what constrained_dynamics gives for seeded torques."""
    robot, contacts, options = CASES[case]
    rng, r = np.random.default_rng(4), linkage(robot)
    tree = getattr(r, "tree", r)
    wrenches = {"external_wrenches": options.get("external_wrenches", False)}
    if r is tree:
        q, v = r.random_configuration(3), rng.normal(size=r.nv)
    else:
        q, (v, *_), _ = all_of(r, *state(r, 0))
    if contacts:
        v = np.array(od.function(r, "impact", contacts=contacts)(q, v, 0)[0]).ravel()
    f = od.function(r, "constrained_dynamics", order=order, contacts=contacts, **wrenches)
    own = np.zeros(tree.nv, bool)
    own[rows(case)] = True
    ports = {"q": q, "v": v}
    ports |= {n: 10 * rng.normal(size=tree.nv) * own for n in f.name_in() if n.endswith("tau")}
    ports |= {n: rng.normal(size=f.size_in(n)) for n in f.name_in() if n.endswith("w_ext")}
    found = {n: np.array(x).ravel() for n, x in f(**ports).items() if n.endswith("v")}
    rows_of_f = f.size1_out("f")
    return {**ports, **found, "weights": rng.uniform(0.5, 2.0, rows_of_f)}


def rows(case):
    """Rows of the tree's velocities with motors."""
    robot, _, options = CASES[case]
    r = linkage(robot)
    tree = getattr(r, "tree", r)
    names = options.get("actuated") or [j.name for j in r.joints if j.kind != "free"]
    return [k for n in names for k in range(tree.joint(n).v_index, tree.joint(n).v_index + tree.joint(n).nv)]


def called(f, ports):
    return {n: np.array(x).reshape(f.size_out(n)) for n, x in f(**{n: ports[n] for n in f.name_in()}).items()}


@pytest.mark.few(5)
@pytest.mark.sample("drive of a loop")
@pytest.mark.parametrize("case", list(CASES))
def test_methods_agree(case):
    order = 1 if case in ("soles", "platform") else 2
    f, g = quantity(case, order), quantity(case, order, method="ad")
    ports = dict(motion(case, order))
    if case != "drive of a loop":  # a motion that the forces cannot make, too
        ports["dv"] = ports["dv"] + np.random.default_rng(1).normal(size=ports["dv"].size)
    found, twin = called(f, ports), called(g, ports)
    for k in range(order + 1):
        names = f.name_out()[k :: order + 1]
        assert largest(*(np.vstack([x[n] for n in names]) for x in (found, twin))) < 1e-9


@pytest.mark.sample("drive of a loop")
@pytest.mark.parametrize("case", list(CASES))
def test_torques_and_forces_make_the_motion(case):
    order = 1
    ports, f = motion(case, order), quantity(case, order)
    found = called(f, ports)
    for k in ("residual", "dresidual"):
        assert np.abs(found[k]).max() < 1e-8 * max(1.0, np.abs(found["tau"]).max())
    robot, contacts, options = CASES[case]
    r = linkage(robot)
    wrenches = {"external_wrenches": options.get("external_wrenches", False)}
    back = od.function(r, "constrained_dynamics", order=order, contacts=contacts, **wrenches)
    given = dict(ports)
    for name in ("tau", "dtau"):
        given[name] = np.zeros(ports["v"].size)
        given[name][rows(case)] = found[name].ravel()
    again = called(back, given)
    for name in ("dv", "d2v"):
        assert largest(again[name].ravel(), ports[name]) < 1e-8
    if contacts and robot != "floating_leg":  # where no constraint says the same again
        for name in ("f", "df"):
            assert largest(again[name], found[name]) < 1e-8


@pytest.mark.slow
def test_forces_are_the_least_ones():
    f, ports = quantity("weighted", 0), motion("weighted", 0)
    found = called(f, ports)["f"].ravel()
    r, A = linkage("quadruped"), []
    for foot in FEET:
        J = od.function(r, "frame_jacobian", frame=foot, representation="hybrid")(ports["q"])
        A.append(np.array(J)[3:, :6].T)
    A = np.hstack(A)
    open_ = np.linalg.svd(A)[2][6:]  # forces that press against each other
    assert np.abs(open_ @ (ports["weights"] * found)).max() < 1e-9 * np.abs(found).max()
    plain = called(quantity("four feet", 0), ports)["f"].ravel()
    assert largest(A @ plain, A @ found) < 1e-9
    assert np.linalg.norm(plain) < np.linalg.norm(found)
    assert largest(plain, np.linalg.pinv(A) @ A @ found) < 1e-9


@pytest.mark.slow
def test_what_forces_cannot_make_is_the_least_residual():
    f, ports = quantity("two feet", 0), dict(motion("two feet", 0))
    ports["dv"] = ports["dv"] + 1.0
    found, r = called(f, ports), linkage("quadruped")
    A = []
    for foot in FEET[::3]:
        J = od.function(r, "frame_jacobian", frame=foot, representation="hybrid")(ports["q"])
        A.append(np.array(J)[3:, :6].T)
    A = np.hstack(A)
    tau = np.array(od.function(r, "inverse_dynamics")(ports["q"], ports["v"], ports["dv"])).ravel()
    assert largest(found["f"].ravel(), np.linalg.pinv(A, rcond=1e-9) @ tau[:6]) < 1e-8
    assert largest(found["residual"].ravel(), tau[:6] - A @ found["f"].ravel()) < 1e-9
    assert np.abs(found["residual"]).max() > 1.0


def test_a_stand_carries_the_weight():
    r = linkage("quadruped")
    q = r.neutral() + np.r_[np.zeros(7), np.tile([0.0, 0.6, -1.2], 2), np.tile([0.0, -0.6, 1.2], 2)]
    f = od.function(r, "constrained_inverse_dynamics", contacts=dict.fromkeys(FEET, "point"))
    found = called(f, {"q": q, "v": np.zeros(r.nv), "dv": np.zeros(r.nv)})["f"].reshape(4, 3)
    assert found[:, 2].sum() == pytest.approx(9.81 * r.total_mass)
    assert found[:, :2].sum(0) == pytest.approx([0.0, 0.0], abs=1e-9)


def test_refusals():
    panda, quadruped = od.robots.panda(), linkage("quadruped")
    with pytest.raises(ShapeError, match="all joints have motors"):
        od.function(panda, "constrained_inverse_dynamics", contacts={"panda_link8": "point"})
    with pytest.raises(ShapeError, match="no joint has a motor"):
        od.function(linkage("gough_stewart"), "constrained_inverse_dynamics")
    with pytest.raises(ShapeError, match="there is no constraint"):
        od.function(quadruped, "constrained_inverse_dynamics")
    with pytest.raises(ShapeError, match="each once"):
        od.function(linkage("four_bar"), "constrained_inverse_dynamics", actuated=("crank", "crank"))
    with pytest.raises(UnknownName, match="joint of actuated"):
        od.function(linkage("four_bar"), "constrained_inverse_dynamics", actuated="cranc")
    with pytest.raises(ModelError, match="push no joint without a motor"):
        contacts = {"panda_link1": "surface"}
        od.function(panda, "constrained_inverse_dynamics", contacts=contacts, actuated=("panda_joint1", "panda_joint2"))
