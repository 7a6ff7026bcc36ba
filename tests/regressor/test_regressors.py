"""Regressors: what they must satisfy, whatever method makes them."""

from dataclasses import replace
from math import comb

import numpy as np
import pytest
from samples import ROBOTS, functions_of, random_ports, relative, robot

import oc_dyn as od
from oc_dyn.errors import ShapeError, UnknownName
from oc_dyn.lie.jets import total
from oc_dyn.model.canonical import canonical
from oc_dyn.model.robot import assemble
from oc_dyn.working_axes.assembly import armatures

SOME = ["serial", "floating", "planar", "mimic", "transform"]


def rotors(r):
    return np.array(armatures(canonical(r)))


def test_parameter_names():
    r = robot("serial")
    assert len(set(r.parameter_names)) == r.parameters.size == 40
    assert r.parameter_names[:10] == tuple(
        f"link1.{x}" for x in ("mass", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
    )
    T, p = r.bodies[1].inertia.tensor, dict(zip(r.parameter_names, r.parameters, strict=True))
    assert (p["link2.Ixy"], p["link2.Iyy"], p["link2.Ixz"]) == (T[0, 1], T[1, 1], T[0, 2])
    assert p["link2.my"] == r.bodies[1].inertia.moment[1]
    rows = od.ports(r, "inverse_dynamics", parameters="symbolic")[0][-1].rows
    assert rows == r.parameter_names


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", list(ROBOTS))
def test_regressor_times_parameters_is_inverse_dynamics(name):
    r = robot(name)
    inverse = od.function(r, "inverse_dynamics", order=1)
    x = random_ports(inverse, r, 2)
    tau = inverse(**x)
    for method, f in functions_of(r, "joint_torque_regressor", 1):
        Y = f(**x)
        for y, t, a in (("Y", "tau", "dv"), ("dY", "dtau", "d2v")):
            assert relative(Y[y] @ r.parameters + rotors(r) * x[a], tau[t]) < 1e-12, (method, y)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", list(ROBOTS))
def test_slotine_li_regressor(name):
    """Ys p = M dvr + C vr + g, and its derivative; at vr = v the classic regressor."""
    r = robot(name)
    for method, f in functions_of(r, "slotine_li_regressor", 0):
        x = random_ports(f, r, 3)
        Ys = np.array(f(**x)["Ys"])
        M = np.array(od.function(r, "mass_matrix")(q=x["q"])["M"]) - np.diag(rotors(r).ravel())
        C = np.array(od.function(r, "coriolis_matrix")(q=x["q"], v=x["v"])["C"])
        g = np.array(od.function(r, "gravity")(q=x["q"])["g"])
        assert relative(Ys @ r.parameters, (M @ x["dvr"] + C @ x["vr"] + g).ravel()) < 1e-12, method
        Y = od.function(r, "joint_torque_regressor")(q=x["q"], v=x["v"], dv=x["dvr"])["Y"]
        assert relative(f(**{**x, "vr": x["v"]})["Ys"], Y) < 1e-12, method


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["serial", "floating", "transform"])
def test_derivatives_of_the_slotine_li_regressor(name):
    r, order = robot(name), 2
    f = od.function(r, "slotine_li_regressor", order=order)
    x = random_ports(f, r, 4)
    found = f(**x)
    state = {n: x[n] for n in x if "r" not in n}
    get = {
        q: [
            np.array(y)
            for y in od.function(r, q, order=order).call([state[n] for n in od.function(r, q, order=order).name_in()])
        ]
        for q in ("mass_matrix", "coriolis_matrix", "gravity")
    }
    vr = [x[n] for n in ("vr", "dvr", "d2vr", "d3vr")]
    for n, name in enumerate(f.name_out()):
        M, C, g = get["mass_matrix"], get["coriolis_matrix"], get["gravity"]
        want = g[n] + total(comb(n, k) * (M[n - k] @ vr[k + 1] + C[n - k] @ vr[k]) for k in range(n + 1))
        assert relative(found[name] @ r.parameters + rotors(r) * vr[n + 1], want) < 1e-11


@pytest.mark.parametrize("name", ["branching", "cylindrical", "floating"])
def test_regressor_does_not_depend_on_parameters(name):
    r = robot(name)
    heavy = r.with_payload("link2", od.Inertia.from_com(1.5, (0.1, 0.2, 0.3), np.diag([0.1, 0.2, 0.25])))
    f = od.function(r, "joint_torque_regressor")
    x = random_ports(f, r, 5)
    tau = od.function(heavy, "inverse_dynamics")(**x)["tau"]
    assert relative(f(**x)["Y"] @ heavy.parameters + rotors(r) * x["dv"], tau) < 1e-12
    assert np.abs(heavy.parameters - r.parameters).max() > 1


# -- payloads and symbolic parameters ----------------------------------------------------------------------------


def test_payload_at_rest_is_its_weight_through_the_transposed_jacobian():
    r = od.robots.panda()
    carrying = r.with_payload("panda_link8", od.Inertia.from_com(1.5, (0.02, 0, 0.08), 2e-3 * np.eye(3)))
    q, weight = r.random_configuration(3), np.array([0, 0, 1.5 * 9.81])
    R = od.function(r, "frame_pose", frame="panda_link8")(q=q)["R"].full()
    J = od.function(r, "frame_jacobian", frame="panda_link8", representation="hybrid")(q=q)["J"].full()
    with_, without = (od.function(x, "inverse_dynamics")(q, 0, 0).full().ravel() for x in (carrying, r))
    assert np.abs(with_ - without - J.T @ [*np.cross(R @ [0.02, 0, 0.08], weight), *weight]).max() < 1e-12


def test_payload_is_taken_off_exactly():
    r = od.robots.panda()
    load = od.Inertia.from_com(2.0, (0.0, 0.01, 0.05), np.eye(3) * 0.01)
    carrying = r.with_payload("panda_link8", load)
    back = carrying.without_payload()
    assert carrying.total_mass == pytest.approx(r.total_mass + 2)
    assert np.array_equal(back.parameters, r.parameters)
    assert back.coordinate_names == r.coordinate_names
    assert "payload" in carrying.frames
    assert "payload" not in back.frames
    with pytest.raises(od.ModelError, match="another"):
        carrying.with_payload("panda_link8", load)
    with pytest.raises(UnknownName):
        r.without_payload()
    with pytest.raises(UnknownName):
        r.with_payload("flange", load)


QUANTITIES = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "bias", "gravity")


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["serial", "floating", "cylindrical", "transform"])
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_symbolic_parameters(quantity, name):
    """With the robot's parameters the numeric Function, with those of a payload that of the robot that carries it."""
    r = robot(name)
    heavy = r.with_payload("link2", od.Inertia.from_com(1.5, (0.1, 0.2, 0.3), np.diag([0.1, 0.2, 0.25])))
    numeric, loaded = od.function(r, quantity), od.function(heavy, quantity)
    x = random_ports(numeric, r, 6)
    for method in od.methods(quantity):
        record = od.registry.get_method(quantity, method)
        if record.refusal(r, 0):
            continue
        if record.numeric_parameters:
            with pytest.raises(od.OrderError, match="symbolic"):
                od.function(r, quantity, method=method, parameters="symbolic")
            continue
        f = od.function(r, quantity, method=method, parameters="symbolic")
        for own, parameters in ((numeric, r.parameters), (loaded, heavy.parameters)):
            got, want = f(**x, params=parameters), own(**x)
            for port in f.name_out():
                assert relative(got[port], want[port]) < 1e-10, (method, port)


def test_symbolic_parameters_with_a_base_seen_from_the_root():
    r = robot("floating")
    options = {"order": 1, "representation": "spatial"}
    f = od.function(r, "inverse_dynamics", **options)
    x = random_ports(f, r)
    g = od.function(r, "inverse_dynamics", parameters="symbolic", **options)
    for port, value in g(**x, params=r.parameters).items():
        assert relative(value, f(**x)[port]) < 1e-11


def test_symbolic_parameters_must_be_given():
    r = robot("serial")
    f = od.function(r, "gravity", parameters="symbolic")
    with pytest.raises(ShapeError, match="robot.parameters"):
        f(q=np.zeros(4))
    with pytest.raises(ShapeError, match="symbolic"):
        od.function(r, "gravity", parameters="all")


# -- partial derivatives of the matrices -------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", SOME)
def test_matrix_partials_by_differences(name):
    r, h = robot(name), 1e-6
    f = od.function(r, "matrix_partials")
    x = random_ports(f, r, 7)
    found = {port: np.array(value) for port, value in f(**x).items()}

    def matrices(q, v):
        M = od.function(r, "mass_matrix")(q=q)["M"]
        C = od.function(r, "coriolis_matrix")(q=q, v=v)["C"]
        g = od.function(r, "gravity")(q=q)["g"]
        return [np.array(y).ravel(order="F") for y in (M, C, g)]

    def slopes(move):
        steps = [(matrices(*move(h * e)), matrices(*move(-h * e))) for e in np.eye(r.nv)]
        return [np.column_stack([(a[k] - b[k]) / (2 * h) for a, b in steps]) for k in range(3)]

    by_q = slopes(lambda e: (r.integrate(x["q"], e), x["v"].ravel()))
    by_v = slopes(lambda e: (x["q"], x["v"].ravel() + e))
    for port, want in (("dM_dq", by_q[0]), ("dC_dq", by_q[1]), ("dg_dq", by_q[2]), ("dC_dv", by_v[1])):
        assert relative(found[port], want) < 1e-7, port


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", SOME)
def test_matrices_are_linear_in_parameters(name):
    r = robot(name)
    f = od.function(r, "matrix_parameter_partials")
    x = random_ports(f, r, 8)
    found = f(**x)
    n = r.nv
    M = np.array(od.function(r, "mass_matrix")(q=x["q"])["M"]) - np.diag(rotors(r).ravel())
    C = np.array(od.function(r, "coriolis_matrix")(**x)["C"])
    g = np.array(od.function(r, "gravity")(q=x["q"])["g"])
    for port, want in (("dM_dparams", M), ("dC_dparams", C)):
        assert relative(np.array(found[port] @ r.parameters).reshape(n, n, order="F"), want) < 1e-12
    assert relative(found["dg_dparams"] @ r.parameters, g) < 1e-12


# -- armature and viscous friction as parameters -----------------------------------------------------------------

PARTS = ("inertia", "armature", "viscous")


def driven(name, armature, damping):
    """The robot `name` built anew with these at every joint, times 1, 2, ...; Coulomb friction at the first one."""
    r = robot(name)
    links, joints, floating, held = r.description
    new = [
        replace(j, armature=armature * k, damping=damping * k, friction=0.3 if k == 1 else 0.0)
        for k, j in enumerate(joints, 1)
    ]
    return assemble(r.name, links, new, gravity=r.gravity, floating_base=floating, lock=held)


def with_option(quantity):
    known = od.registry.get(quantity).options
    return {"friction": True} if "friction" in known else {}, PARTS if "friction" in known else PARTS[:2]


TAKING = [q for q in od.quantities("robot") if "parameters" in od.registry.get(q).options]


@pytest.mark.few(20)
@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["serial", "floating", "spherical", "cylindrical", "mimic", "transform"])
@pytest.mark.parametrize("quantity", TAKING)
def test_armature_and_damping_as_parameters(quantity, name):
    """One Function with the values of a robot is the Function of the robot that has them."""
    one, two = driven(name, 0.05, 0.4), driven(name, 0.3, 0.1)
    options, parts = with_option(quantity)
    plain = {r: od.function(r, quantity, **options) for r in (one, two)}
    x = random_ports(plain[one], one, 3)
    assert len(one.parameter_rows(parts)) == one.parameter_values(parts).size
    for some in (parts, parts[1:]):
        for method in od.methods(quantity):
            record = od.registry.get_method(quantity, method)
            if record.refusal(one, 0) or record.numeric_parameters:
                continue
            f = od.function(one, quantity, method=method, parameters=some, **options)
            for r in (one, two):
                for port, want in plain[r](**x).items():
                    got = f(**x, params=r.parameter_values(some))[port]
                    assert relative(got, want) < 1e-10, (method, port, some)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["serial", "floating", "spherical", "mimic"])
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics", "mass_matrix"])
def test_slopes_by_parameters(quantity, name):
    """AD by the port params equals differences of robots built anew, to the accuracy of those."""
    r, h = driven(name, 0.2, 0.4), 1e-5
    options, parts = with_option(quantity)
    f = od.function(r, quantity, parameters=parts, **options)
    x = random_ports(f, r, 4)
    x["params"] = r.parameter_values(parts)
    column = f.name_in().index("params")
    slope = np.array(f.jacobian()(*x.values(), *(0 for _ in range(f.n_out())))[column])
    rows = r.parameter_rows(parts)
    for part, field in (("armature", {"armature": h}), ("viscous", {"damping": h}))[: len(parts) - 1]:
        joint = r.joints[-1]
        ends = [np.array(od.function(moved(r, joint.name, field, s), quantity, **options)(*list(x.values())[:-1]))
                for s in (1, -1)]  # fmt: skip
        which = [k for k, n in enumerate(rows) if n.startswith(joint.name) and n.endswith(part)]
        assert len(which) == joint.nv
        difference = (ends[0] - ends[1]).ravel(order="F") / (2 * h)
        assert relative(slope[:, which].sum(axis=1), difference) < 1e-8


def moved(r, name, field, sign):
    links, joints, floating, held = r.description
    new = [
        replace(j, **{k: getattr(j, k) + sign * h for k, h in field.items()}) if j.name == name else j for j in joints
    ]
    return assemble(r.name, links, new, gravity=r.gravity, floating_base=floating, lock=held)


@pytest.mark.slow
def test_derivatives_with_all_parts_and_a_base_seen_from_the_root():
    one, two = driven("floating", 0.05, 0.4), driven("floating", 0.3, 0.1)
    options = {"order": 2, "representation": "spatial", "friction": True}
    f = od.function(one, "inverse_dynamics", parameters=PARTS, **options)
    g = od.function(two, "inverse_dynamics", **options)
    x = random_ports(g, two, 8)
    for port, want in g(**x).items():
        assert relative(f(**x, params=two.parameter_values(PARTS))[port], want) < 1e-11


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["serial", "floating", "spherical", "mimic"])
def test_regressor_with_armature_and_damping(name):
    r = driven(name, 0.05, 0.4)
    still = assemble(r.name, r.description[0], [replace(j, friction=0.0) for j in r.description[1]],
                     gravity=r.gravity, floating_base=r.description[2], lock=r.description[3])  # fmt: skip
    inverse = od.function(still, "inverse_dynamics", order=2, friction=True)
    x = random_ports(inverse, r, 5)
    tau = inverse(**x)
    for method in od.methods("joint_torque_regressor"):
        Y = od.function(r, "joint_torque_regressor", order=2, method=method, columns=PARTS)(**x)
        for y, t in zip(("Y", "dY", "d2Y"), ("tau", "dtau", "d2tau"), strict=True):
            assert relative(Y[y] @ r.parameter_values(PARTS), tau[t]) < 1e-11
    drives = od.function(r, "joint_torque_regressor", columns=("viscous",))
    assert np.array_equal(np.array(drives(**{k: x[k] for k in drives.name_in()})["Y"]), np.diag(x["v"].ravel()))


def test_parts_that_make_no_sense():
    r = robot("serial")
    with pytest.raises(ShapeError, match="friction=True"):
        od.function(r, "inverse_dynamics", parameters=PARTS)
    with pytest.raises(ShapeError, match="leave it out"):
        od.function(r, "mass_matrix", parameters=PARTS)
    with pytest.raises(ShapeError, match="'viscous'"):
        r.parameter_values(("inertia", "friction"))
    with pytest.raises(ShapeError, match="columns"):
        od.function(r, "joint_torque_regressor", columns=("mass",))
    assert np.array_equal(r.parameter_values(), r.parameters)
    assert r.parameter_rows() == r.parameter_names
    assert r.parameter_rows(("armature", "viscous"))[:5] == (
        "joint1.armature", "joint2.armature", "joint3.armature", "joint4.armature", "joint1.viscous"
    )  # fmt: skip
