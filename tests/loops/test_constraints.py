"""Explicit constraints: all methods, partials by differences, Baumgarte's terms, moving ground, impacts, refusals."""

import numpy as np
import pytest
from loops.linkages import all_of, largest, linkage, state

import oc_dyn as od
from oc_dyn.errors import ShapeError, UnknownName

CONTACTS = {
    "panda": {"panda_link8": "point"},
    "quadruped": {"LF_foot": "point", "RH_foot": "point"},
    "humanoid": {"left_leg6": "surface"},
}
TOGETHER = ("knee_linkage_leg", "four_bar", "gough_stewart")


def constrained(name):
    """(robot, contacts, q, v, tau) at a seeded state, of loops a closed one."""
    rng = np.random.default_rng(2)
    if name in CONTACTS:
        robot = getattr(od.robots, name)()
        return robot, CONTACTS[name], robot.random_configuration(3), *rng.normal(size=(2, robot.nv))
    robot = linkage(name)
    q, V = state(robot, 0)
    x, v, _ = all_of(robot, q, V)
    return robot, {}, x, v[0], rng.normal(size=robot.tree.nv)


@pytest.mark.sample("proximal-panda", "kkt-four_bar", "ad-four_bar")
@pytest.mark.parametrize("name", [*CONTACTS, *TOGETHER])
@pytest.mark.parametrize("method", ["proximal", "kkt", "ad"])
def test_methods_agree(name, method):
    robot, contacts, *given = constrained(name)
    order = 1 if name in ("panda", "four_bar") else 0
    given += [given[-1][::-1]] * order
    f, g = (
        od.function(robot, "constrained_dynamics", order=order, method=m, contacts=contacts)
        for m in ("delassus", method)
    )
    tolerance = 1e-5 if method == "proximal" else 1e-8
    count = order + 1 if name == "gough_stewart" else None  # of redundant loops the forces are not unique
    pairs = list(zip(f(*given), g(*given), strict=True))[:count]
    assert max(largest(x, y) for x, y in pairs) < tolerance


@pytest.mark.few(6)
@pytest.mark.sample("partials-panda", "lagrangian_hessian-four_bar")
@pytest.mark.parametrize("name", [*CONTACTS, *TOGETHER])
@pytest.mark.parametrize("what", ["partials", "adjoint", "lagrangian_hessian"])
def test_derivatives_by_the_implicit_function_theorem_and_by_ad(name, what):
    if (name, what) in (("humanoid", "lagrangian_hessian"), ("gough_stewart", "lagrangian_hessian")):
        pytest.skip("its second derivatives by AD take minutes to build")
    robot, contacts, *given = constrained(name)
    rows = od.function(robot, "constrained_dynamics", contacts=contacts).size1_out(1)
    rng = np.random.default_rng(7)
    lams = [] if what == "partials" else [rng.normal(size=given[1].size), rng.normal(size=rows)]
    f, g = (od.function(robot, f"constrained_dynamics_{what}", method=m, contacts=contacts) for m in ("implicit", "ad"))
    found, twin = f.call([*given, *lams]), g.call([*given, *lams])
    assert max(largest(x, y) for x, y in zip(found, twin, strict=True)) < 1e-9


@pytest.mark.slow
def test_partials_are_those_of_differences():
    robot, contacts, q, v, tau = constrained("panda")
    f, step = od.function(robot, "constrained_dynamics", contacts=contacts), 1e-6

    def at(e):
        return np.concatenate([np.array(x).ravel() for x in f(robot.integrate(q, e), v, tau)])

    found = od.function(robot, "constrained_dynamics_partials", contacts=contacts)(q, v, tau)
    J = np.vstack([np.array(found[0]), np.array(found[3])])
    columns = [(at(step * e) - at(-step * e)) / (2 * step) for e in np.eye(robot.nv)]
    assert largest(np.stack(columns, 1), J) < 1e-6


def test_open_loops_are_closed_again_as_their_gains_say():
    robot = linkage("four_bar")
    q, V = state(robot, 0)
    x, v, _ = all_of(robot, q, V)
    f = od.function(robot, "constrained_dynamics", baumgarte=True)
    moved = x + [0.0, 0.01, -0.02]
    dv = np.array(f(moved, v[0], 0, [100.0, 20.0])[0]).ravel()
    from oc_dyn.model.closure import residual

    r, step = residual(robot), 1e-5

    def at(t):
        y = moved + t * v[0] + 0.5 * t**2 * dv
        return np.array(r(y)[0]).ravel()

    rate, second = (at(step) - at(-step)) / (2 * step), (at(step) - 2 * at(0) + at(-step)) / step**2
    assert largest(second + 20 * rate + 100 * at(0), np.zeros_like(rate)) < 1e-4


def test_moving_ground_is_followed():
    robot, contacts, q, v, tau = constrained("panda")
    f = od.function(robot, "constrained_dynamics", contacts=contacts, moving=True)
    wanted = np.array([0.3, -0.2, 0.5])
    dv = np.array(f(q, v, tau, wanted)[0]).ravel()
    J, dJ = (
        np.array(x)[3:]
        for x in od.function(robot, "frame_jacobian", order=1, frame="panda_link8", representation="hybrid")(q, v)
    )
    assert largest(J @ dv + dJ @ v, wanted) < 1e-10


@pytest.mark.sample(1)
@pytest.mark.parametrize("restitution", [0.0, 0.4])
def test_impacts_lose_the_energy_that_they_should(restitution):
    robot, contacts, q, v, _ = constrained("quadruped")
    f, g = (od.function(robot, "impact", method=m, contacts=contacts) for m in ("delassus", "kkt"))
    after, impulse = (np.array(x).ravel() for x in f(q, v, restitution))
    assert largest(after, np.array(g(q, v, restitution)[0]).ravel()) < 1e-9
    M = np.array(od.function(robot, "mass_matrix")(q))
    lost = 0.5 * v @ M @ v - 0.5 * after @ M @ after
    change = after - v
    assert lost == pytest.approx(0.5 * (1 - restitution) / (1 + restitution) * change @ M @ change)


def test_no_constraint_at_all_is_refused():
    with pytest.raises(ShapeError, match="there is no constraint"):
        od.function(od.robots.panda(), "constrained_dynamics")
    with pytest.raises(UnknownName, match="kind of contact"):
        od.function(od.robots.panda(), "constrained_dynamics", contacts={"panda_link8": "line"})
    with pytest.raises(UnknownName, match="frame of panda"):
        od.function(od.robots.panda(), "constrained_dynamics", contacts={"foot": "point"})
    with pytest.raises(ShapeError, match="is fixed to the ground"):
        od.function(od.robots.panda(), "constrained_dynamics", contacts={"panda_link0": "point"})
