"""The equation that od.describe shows of a quantity holds in numbers, and so does what it says of frames."""

import numpy as np
import pytest
from samples import build, relative, scene

import oc_dyn as od
from oc_dyn.friction import SMOOTHING
from oc_dyn.lie import se3
from oc_dyn.registry import get

STEP = 1e-6
CHECKS = {}


def check(*quantities):
    """Decorator of a function that gives pairs that are to be equal: what comes out, what the equation says."""

    def register(function):
        CHECKS.update(dict.fromkeys(quantities, function))
        return function

    return register


class Numbers:
    """A robot at a state, and what quantities give there."""

    def __init__(self):
        self.robot = r = build(["revolute", "prismatic"], seed=3, floating_base=True, armature=True)
        rng = np.random.default_rng(8)
        self.q = r.random_configuration(seed=2)
        self.v, self.dv, self.d2v, self.tau, self.lam, self.vr, self.dvr = rng.normal(size=(7, r.nv))
        self.w_ext = rng.normal(size=(6, len(r.bodies)))

    def __call__(self, quantity, order=0, ports=None, options=None):
        """Results by port, vectors flat; ports that are not given are those of this state."""
        f = od.function(self.robot, quantity, order=order, **(options or {}))
        here = {n: getattr(self, n) for n in f.name_in() if hasattr(self, n)}
        found = f(**{**here, **(ports or {})})
        return {n: x.full().ravel() if x.shape[1] == 1 else x.full() for n, x in found.items()}

    def moved(self, quantity, port, options=None, order=0):
        """Central differences of a result, flat in casadi's order, by steps of q (+) e, (entries, nv)."""

        def at(e):
            found = self(quantity, order, {"q": self.robot.integrate(self.q, e)}, options)
            return found[port].ravel(order="F")

        steps = STEP * np.eye(self.robot.nv)
        return np.column_stack([(at(e) - at(-e)) / (2 * STEP) for e in steps])

    def varied(self, quantity, port, name, options=None, order=0):
        """The same by the port `name`."""

        def at(e):
            return self(quantity, order, {name: getattr(self, name) + e}, options)[port].ravel(order="F")

        steps = STEP * np.eye(self.robot.nv)
        return np.column_stack([(at(e) - at(-e)) / (2 * STEP) for e in steps])

    def jacobian(self, body):
        return self("frame_jacobian", options={"frame": body, "representation": "body"})["J"]

    def pose(self, body):
        return self("frame_pose", options={"frame": body})["C"]

    def bodies(self):
        """(name, mass, centre in the body, 6 x 6 inertia in its axes at its origin, for [angular; linear] twists)."""
        for name, p in zip((b.name for b in self.robot.bodies), self.robot.parameters.reshape(-1, 10), strict=True):
            m, moment, (xx, xy, yy, xz, yz, zz) = p[0], p[1:4], p[4:]
            tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            cross = np.cross(np.eye(3), moment)
            yield name, m, moment / m, np.block([[tensor, cross], [cross.T, m * np.eye(3)]])

    def pushed(self):
        """sum_b J_b^T w_b."""
        return sum(self.jacobian(b.name).T @ w for b, w in zip(self.robot.bodies, self.w_ext.T, strict=True))

    def armature(self):
        return np.concatenate([np.full(j.nv, j.armature) for j in self.robot.joints])


@pytest.fixture(scope="module")
def x():
    return Numbers()


def hat(V):
    """4 x 4 matrix of a twist [angular; linear]."""
    w = np.cross(np.eye(3), V[:3])
    return np.block([[w, V[3:, None]], [np.zeros((1, 4))]])


WRENCHES = {"external_wrenches": True}


@check("inverse_dynamics")
def _(x):
    M, C, g = x("mass_matrix")["M"], x("coriolis_matrix")["C"], x("gravity")["g"]
    yield x("inverse_dynamics", options=WRENCHES)["tau"], M @ x.dv + C @ x.v + g - x.pushed()


@check("forward_dynamics")
def _(x):
    M, h = x("mass_matrix")["M"], x("bias")["h"]
    yield x("forward_dynamics", options=WRENCHES)["dv"], np.linalg.solve(M, x.tau - h + x.pushed())


@check("hybrid_dynamics")
def _(x):
    rows, others = [6], [0, 1, 2, 3, 4, 5, 7]
    ports = {"dv_p": x.dv[rows], "tau_f": x.tau[others]}
    y = x("hybrid_dynamics", ports=ports, options={**WRENCHES, "prescribed": ("joint1",)})
    yield x("mass_matrix")["M"] @ y["dv"] + x("bias")["h"], y["tau"] + x.pushed()
    yield y["dv"][rows], x.dv[rows]
    yield y["tau"][others], x.tau[others]
    yield y["dv_f"], y["dv"][others]
    yield y["tau_p"], y["tau"][rows]


@check("frame_pose")
def _(x):
    y = x("frame_pose", options={"frame": "link2"})
    yield y["C"], np.block([[y["R"], y["p"][:, None]], [np.zeros(3), 1]])
    yield y["R"].T @ y["R"], np.eye(3)


@check("frame_twist", "frame_jacobian")
def _(x):
    y = x("frame_pose", 1, options={"frame": "link2"})
    C, dC = y["C"], y["dC"]
    V = {
        name: x("frame_twist", options={"frame": "link2", "representation": name})["V"]
        for name in ("body", "spatial", "hybrid")
    }
    yield hat(V["body"]), np.linalg.solve(C, dC)
    yield hat(V["spatial"]), dC @ np.linalg.inv(C)
    yield V["hybrid"], np.concatenate([y["R"] @ V["body"][:3], y["R"] @ V["body"][3:]])
    yield V["hybrid"][3:], y["dp"]
    for name, twist in V.items():
        yield x("frame_jacobian", options={"frame": "link2", "representation": name})["J"] @ x.v, twist


@check("frame_velocity_partials", "frame_acceleration_partials")
def _(x):
    for name in ("body", "spatial", "hybrid"):
        options = {"frame": "link2", "representation": name}
        first, second = (
            x("frame_velocity_partials", 1, options=options),
            x("frame_acceleration_partials", options=options),
        )
        yield first["dV_dq"], x.moved("frame_twist", "V", options)
        yield first["dV_dv"], x("frame_jacobian", options=options)["J"]
        assert set(second) == {"ddV_dq", "ddV_dv", "ddV_ddv"}
        for port, value in second.items():
            yield value, first[port]
        yield second["ddV_dq"], x.moved("frame_twist", "dV", options, order=1)
        yield second["ddV_dv"], x.varied("frame_twist", "dV", "v", options, order=1)
        yield second["ddV_ddv"], first["dV_dv"]


@check("mass_matrix")
def _(x):
    M = x("mass_matrix")["M"]
    yield M, sum(x.jacobian(b).T @ I @ x.jacobian(b) for b, _, _, I in x.bodies()) + np.diag(x.armature())
    yield x.v @ M @ x.v / 2, x("kinetic_energy")["T"]


@check("coriolis_matrix", "bias")
def _(x):
    h, g = x("bias")["h"], x("gravity")["g"]
    for name in ("christoffel", "garofalo", "kumar_mueller"):
        C = x("coriolis_matrix", options={"coriolis": name})["C"]
        yield C @ x.v, h - g
        rate = x("mass_matrix", 1)["dM"]
        assert (relative(C + C.T, rate) < 1e-10) == (name != "kumar_mueller")
    yield h, x("inverse_dynamics", ports={"dv": 0 * x.dv})["tau"]


@check("gravity", "potential_energy")
def _(x):
    yield x("gravity")["g"], x.moved("potential_energy", "U").ravel()
    mass = sum(m for _, m, _, _ in x.bodies())
    yield x("potential_energy")["U"], -mass * x.robot.gravity @ x("com")["c"]


@check("eom_coefficients")
def _(x):
    y = x("eom_coefficients", 1)
    rate = x("inverse_dynamics", 1)["dtau"] - x("gravity", 1)["dg"]
    yield y["P1"] @ x.v + y["P2"] @ x.dv + y["P3"] @ x.d2v, rate
    yield y["P3"], x("mass_matrix")["M"]
    yield y["P1"], x("coriolis_matrix", 1)["dC"]
    first = x("eom_coefficients")
    yield first["P1"], x("coriolis_matrix")["C"]
    yield first["P2"], x("mass_matrix")["M"]


@check("dynamic_matrices")
def _(x):
    y = x("dynamic_matrices")
    yield y["M"] @ x.dv + y["C"] @ x.v + y["g"], x("inverse_dynamics")["tau"]
    yield y["C"] + y["C"].T, x("mass_matrix", 1)["dM"]


@check("inverse_dynamics_partials")
def _(x):
    y = x("inverse_dynamics_partials")
    yield y["dtau_dq"], x.moved("inverse_dynamics", "tau")
    yield y["dtau_dv"], x.varied("inverse_dynamics", "tau", "v")
    yield y["dtau_ddv"], x("mass_matrix")["M"]


@check("forward_dynamics_partials")
def _(x):
    y = x("forward_dynamics_partials")
    inverse = x("inverse_dynamics_partials", ports={"dv": x("forward_dynamics")["dv"]})
    M = x("mass_matrix")["M"]
    yield y["ddv_dq"], x.moved("forward_dynamics", "dv")
    yield y["ddv_dq"], -np.linalg.solve(M, inverse["dtau_dq"])
    yield y["ddv_dv"], -np.linalg.solve(M, inverse["dtau_dv"])
    yield y["ddv_dtau"], np.linalg.inv(M)


@check("hybrid_dynamics_partials")
def _(x):
    rows, others = [6], [0, 1, 2, 3, 4, 5, 7]
    x.dv_p, x.tau_f = x.dv[rows], x.tau[others]
    options = {"prescribed": ("joint1",)}
    y = x("hybrid_dynamics_partials", options=options)
    for out in ("tau_p", "dv_f"):
        yield y[f"d{out}_dq"].reshape(-1, x.robot.nv), x.moved("hybrid_dynamics", out, options)
        yield y[f"d{out}_dv"].reshape(-1, x.robot.nv), x.varied("hybrid_dynamics", out, "v", options)


@check("inverse_dynamics_wrench_partials", "forward_dynamics_wrench_partials")
def _(x):
    transposed = np.hstack([x.jacobian(b.name).T for b in x.robot.bodies])
    y = x("inverse_dynamics_wrench_partials", 1)
    yield y["dtau_dw_ext"], -transposed
    yield y["ddtau_ddw_ext"], -transposed
    assert set(y) == {"dtau_dw_ext", "ddtau_dw_ext", "ddtau_ddw_ext"}
    rate = [x("frame_jacobian", 1, options={"frame": b.name, "representation": "body"})["dJ"].T for b in x.robot.bodies]
    yield y["ddtau_dw_ext"], -np.hstack(rate)
    yield x("forward_dynamics_wrench_partials")["ddv_dw_ext"], np.linalg.solve(x("mass_matrix")["M"], transposed)


@check("mass_matrix_inverse")
def _(x):
    yield x("mass_matrix_inverse")["Minv"] @ x("mass_matrix")["M"], np.eye(x.robot.nv)


@check("inverse_dynamics_adjoint")
def _(x):
    x.lam_dtau = x.dvr
    y, J = x("inverse_dynamics_adjoint", 1), x("inverse_dynamics_partials", 1)
    for name in ("q", "v", "dv"):
        yield y[f"adj_{name}"], J[f"dtau_d{name}"].T @ x.lam + J[f"ddtau_d{name}"].T @ x.lam_dtau
    yield y["adj_d2v"], J["ddtau_dd2v"].T @ x.lam_dtau


@check("forward_dynamics_adjoint")
def _(x):
    x.lam_d2v, x.dtau = x.dvr, x.vr
    y, J = x("forward_dynamics_adjoint", 1), x("forward_dynamics_partials", 1)
    for name in ("q", "v", "tau"):
        yield y[f"adj_{name}"], J[f"ddv_d{name}"].T @ x.lam + J[f"dd2v_d{name}"].T @ x.lam_d2v
    yield y["adj_dtau"], J["dd2v_ddtau"].T @ x.lam_d2v


@check("inverse_dynamics_lagrangian_hessian_product", "forward_dynamics_lagrangian_hessian_product")
def _(x):
    x.z = np.concatenate([x.dvr, x.lam, x.vr])
    for name in ("inverse", "forward"):
        H = x(f"{name}_dynamics_lagrangian_hessian")["H"]
        yield x(f"{name}_dynamics_lagrangian_hessian_product")["Hz"], H @ x.z


ROWS, OTHERS = [6], [0, 1, 2, 3, 4, 5, 7]  # of joint1, and of the others
HYBRID = {"prescribed": ("joint1",)}


@check("hybrid_dynamics_adjoint", "hybrid_dynamics_lagrangian_hessian")
def _(x):
    x.dv_p, x.tau_f, x.lam_tau_p, x.lam_dv_f = x.dv[ROWS], x.tau[OTHERS], x.lam[ROWS], x.vr[OTHERS]
    y, J = x("hybrid_dynamics_adjoint", options=HYBRID), x("hybrid_dynamics_partials", options=HYBRID)
    for name in ("q", "v", "dv_p", "tau_f"):
        of_tau, of_dv = J[f"dtau_p_d{name}"].reshape(len(ROWS), -1), J[f"ddv_f_d{name}"].reshape(len(OTHERS), -1)
        yield y[f"adj_{name}"], of_tau.T @ x.lam_tau_p + of_dv.T @ x.lam_dv_f
    H, nv = x("hybrid_dynamics_lagrangian_hessian", options=HYBRID)["H"], x.robot.nv
    by_q = x.moved("hybrid_dynamics_adjoint", "adj_q", HYBRID)
    yield H[:nv, :nv], (by_q + by_q.T) / 2
    yield H[nv : 2 * nv, :nv], x.moved("hybrid_dynamics_adjoint", "adj_v", HYBRID)
    yield H[:nv, nv : 2 * nv], x.varied("hybrid_dynamics_adjoint", "adj_q", "v", HYBRID)
    for k, name in ((2 * nv, "dv_p"), (2 * nv + 1, "tau_f")):
        yield H[k : k + getattr(x, name).size, :nv], x.moved("hybrid_dynamics_adjoint", f"adj_{name}", HYBRID)
    yield H, H.T


@check("inverse_dynamics_lagrangian_hessian", "forward_dynamics_lagrangian_hessian")
def _(x):
    nv = x.robot.nv
    for what, last in (("inverse_dynamics", "dv"), ("forward_dynamics", "tau")):
        H = x(f"{what}_lagrangian_hessian")["H"]
        adjoint = f"{what}_adjoint"
        by_q = x.moved(adjoint, "adj_q")
        yield H[:nv, :nv], (by_q + by_q.T) / 2
        yield H[nv : 2 * nv, :nv], x.moved(adjoint, "adj_v")
        yield H[nv : 2 * nv, nv : 2 * nv], x.varied(adjoint, "adj_v", "v")
        yield H[:nv, 2 * nv :], x.varied(adjoint, "adj_q", last)
        yield H, H.T


@check("inverse_dynamics_second_partials", "forward_dynamics_second_partials")
def _(x):
    for what, y, last in (("inverse_dynamics", "tau", "dv"), ("forward_dynamics", "dv", "tau")):
        second, partials = x(f"{what}_second_partials"), f"{what}_partials"
        yield second[f"d2{y}_dqdq"], x.moved(partials, f"d{y}_dq")
        yield second[f"d2{y}_dvdv"], x.varied(partials, f"d{y}_dv", "v")
        yield second[f"d2{y}_dqdv"], x.varied(partials, f"d{y}_dq", "v")
        yield second["dM_dq" if y == "tau" else "dMinv_dq"], x.moved(partials, f"d{y}_d{last}")


@check("hybrid_dynamics_second_partials")
def _(x):
    x.dv_p, x.tau_f = x.dv[ROWS], x.tau[OTHERS]
    second = x("hybrid_dynamics_second_partials", options=HYBRID)
    first = "hybrid_dynamics_partials"
    for y in ("tau_p", "dv_f"):
        for by in ("q", "dv_p", "tau_f"):
            found = second[f"d2{y}_d{by}dq"].reshape(-1, x.robot.nv)
            yield found, x.moved(first, f"d{y}_d{by}", HYBRID).reshape(-1, x.robot.nv)
        yield second[f"d2{y}_dvdv"], x.varied(first, f"d{y}_dv", "v", HYBRID)
        yield second[f"d2{y}_dqdv"], x.varied(first, f"d{y}_dq", "v", HYBRID)


@check("matrix_partials")
def _(x):
    y = x("matrix_partials")
    yield y["dM_dq"], x.moved("mass_matrix", "M")
    yield y["dC_dq"], x.moved("coriolis_matrix", "C")
    yield y["dC_dv"], x.varied("coriolis_matrix", "C", "v")
    yield y["dg_dq"], x.moved("gravity", "g")


@check("matrix_parameter_partials")
def _(x):
    y, params = x("matrix_parameter_partials"), x.robot.parameters
    M = x("mass_matrix")["M"] - np.diag(x.armature())
    yield y["dM_dparams"] @ params, M.ravel(order="F")
    yield y["dC_dparams"] @ params, x("coriolis_matrix")["C"].ravel(order="F")
    yield y["dg_dparams"] @ params, x("gravity")["g"]


@check("joint_torque_regressor")
def _(x):
    parts = ("inertia", "armature", "viscous")
    Y = x("joint_torque_regressor", options={"columns": parts})["Y"]
    n, nv = x.robot.parameters.size, x.robot.nv
    yield Y[:, :n] @ x.robot.parameters, x("inverse_dynamics")["tau"] - x.armature() * x.dv
    yield Y[:, n : n + nv], np.diag(x.dv)
    yield Y[:, n + nv :], np.diag(x.v)
    yield x("joint_torque_regressor")["Y"], Y[:, :n]


@check("slotine_li_regressor")
def _(x):
    M = x("mass_matrix")["M"] - np.diag(x.armature())
    C, g = x("coriolis_matrix")["C"], x("gravity")["g"]
    yield x("slotine_li_regressor")["Ys"] @ x.robot.parameters, M @ x.dvr + C @ x.vr + g


@check("slotine_li_torque")
def _(x):
    M, g = x("mass_matrix")["M"], x("gravity")["g"]
    for name in ("christoffel", "garofalo"):
        C = x("coriolis_matrix", options={"coriolis": name})["C"]
        options = {**WRENCHES, "coriolis": name}
        yield x("slotine_li_torque", options=options)["tau"], M @ x.dvr + C @ x.vr + g - x.pushed()


@check("kinetic_energy", "momentum")
def _(x):
    yield x("kinetic_energy")["T"], x.v @ x("mass_matrix")["M"] @ x.v / 2
    h = np.zeros(6)
    for body, _, _, inertia in x.bodies():
        h += np.linalg.solve(
            se3.Ad((x.pose(body)[:3, :3], x.pose(body)[:3, 3])).full().T, inertia @ x.jacobian(body) @ x.v
        )
    yield x("momentum")["h"], h


@check("com", "com_jacobian")
def _(x):
    y = x("com", 1)
    total = sum(m for _, m, _, _ in x.bodies())
    centres = [m * (x.pose(b) @ np.append(c, 1))[:3] for b, m, c, _ in x.bodies()]
    yield y["c"], sum(centres) / total
    yield y["dc"], x("com_jacobian")["J"] @ x.v


@check("centroidal_momentum_matrix", "centroidal_momentum_matrix_partials")
def _(x):
    A, com = x("centroidal_momentum_matrix", 1), x("com")["c"]
    h = np.zeros(6)
    for body, _, _, inertia in x.bodies():
        C = x.pose(body)
        h += np.linalg.solve(se3.Ad((C[:3, :3], C[:3, 3] - com)).full().T, inertia @ x.jacobian(body) @ x.v)
    yield A["A"] @ x.v, h
    about_root = x("momentum", 1)["dh"]
    weight = np.cross(com, about_root[3:])
    yield A["A"] @ x.dv + A["dA"] @ x.v, about_root - np.concatenate([weight, np.zeros(3)])
    y, nv = x("centroidal_momentum_matrix_partials", 1), x.robot.nv
    of_A = x.moved("centroidal_momentum_matrix", "A").reshape(nv, 6, nv)
    yield y["dh_dq"], np.einsum("jik,j->ik", of_A, x.v)
    yield y["dh_dv"], A["A"]
    yield y["ddh_ddv"], A["A"]
    yield y["ddh_dv"], y["dh_dq"] + A["dA"]


SCENE = {"scene": scene()}


@check("distances")
def _(x):
    y = x("distances", options={**SCENE, "witnesses": True})
    gaps = (y["p_b"] - y["p_a"]).reshape(3, -1)
    yield y["d"], np.linalg.norm(gaps, axis=0)
    one, two = (x.pose(link)[:3, 3] + x.pose(link)[:3, :3] @ SCENE["scene"][name].matrix[:3, 3] for name, link in LINKS)
    assert SCENE["scene"].pairs[0] == ("one", "two")
    yield y["d"][0], np.linalg.norm(two - one) - 0.15


LINKS = (("one", "link1"), ("two", "link2"))


@check("distances_partials")
def _(x):
    yield x("distances_partials", options=SCENE)["dd_dq"], x.moved("distances", "d", SCENE)


@check("distances_adjoint")
def _(x):
    x.lam_d = x.lam[: len(SCENE["scene"].pairs)]
    yield x("distances_adjoint", options=SCENE)["adj_q"], x("distances_partials", options=SCENE)["dd_dq"].T @ x.lam_d


@check("distances_lagrangian_hessian")
def _(x):
    x.lam_d = x.lam[: len(SCENE["scene"].pairs)]
    H = x("distances_lagrangian_hessian", options=SCENE)["H"]
    by_q = x.moved("distances_adjoint", "adj_q", SCENE)
    yield H, (by_q + by_q.T) / 2


@pytest.mark.sample(3)
def test_equations_of_constraints_hold(x):
    for found, expected in _constraints(x):
        assert relative(np.squeeze(found), np.squeeze(expected)) < 1e-6


def _constraints(x):
    contacts = {"contacts": {list(x.robot.frames)[-1]: "point"}}
    given = {"frame": list(x.robot.frames)[-1], "representation": "hybrid"}
    J, dJ = (y[3:] for y in x("frame_jacobian", order=1, options=given).values())
    M, h = x("mass_matrix")["M"], x("bias")["h"]
    found = x("constrained_dynamics", options=contacts)
    yield M @ found["dv"] + h, x.tau + J.T @ found["f"]
    yield J @ found["dv"] + dJ @ x.v, np.zeros(3)
    hit = x("impact", ports={"restitution": 0.3}, options=contacts)
    yield M @ (hit["v_after"] - x.v), J.T @ hit["impulse"]
    yield J @ hit["v_after"], -0.3 * J @ x.v


@pytest.mark.parametrize("quantity", od.quantities("robot"))
def test_equation_holds(x, quantity):
    pairs = list(CHECKS[quantity](x))
    assert pairs
    for found, expected in pairs:
        assert np.shape(np.squeeze(found)) == np.shape(np.squeeze(expected))
        assert relative(np.squeeze(found), np.squeeze(expected)) < 1e-6


def test_every_quantity_is_checked():
    assert set(CHECKS) == set(od.quantities("robot"))
    assert all(get(q).equation for q in od.quantities())


def test_friction_is_what_the_option_says():
    b = od.RobotBuilder("rough")
    b.add_link("base")
    b.add_body("link", "revolute", "base", axis=(0, 0, 1), mass=1.0, com=(1, 0, 0), damping=0.7, friction=0.4)
    r, v = b.build(), 0.03
    with_it, without = (od.function(r, "inverse_dynamics", friction=x)(q=0.3, v=v, dv=1)["tau"] for x in (True, False))
    assert float(with_it - without) == pytest.approx(0.7 * v + 0.4 * np.tanh(v / SMOOTHING))


def test_elastic_equations_hold():
    arm = od.robots.chain(3)
    soft = od.elastic.elastic_robot(arm, {"joint1": 100.0, "joint2": 50.0, "joint3": 80.0}, motor_inertia=0.1)
    rng = np.random.default_rng(1)
    f = od.function(soft, "elastic_flat_map")
    motion = {n: rng.normal(size=3) for n in f.name_in()}
    y = {n: z.full().ravel() for n, z in f(**motion).items()}
    K, q = np.array([100.0, 50.0, 80.0]), motion["q"]
    tau = od.function(soft.links, "inverse_dynamics")(**{n: motion[n] for n in ("q", "v", "dv")})["tau"].full().ravel()
    assert K * (y["theta"] - q) == pytest.approx(tau)
    assert y["tau_m"] == pytest.approx(0.1 * y["d2theta"] + tau)
    state = {"q": q, "v": motion["v"], "theta": y["theta"], "dtheta": y["dtheta"]}
    dv = od.function(soft, "elastic_link_motion")(**state)["dv"].full().ravel()
    assert dv == pytest.approx(motion["dv"])
    both = od.function(soft, "elastic_forward_dynamics")(**state, tau_m=y["tau_m"])
    assert both["dv"].full().ravel() == pytest.approx(motion["dv"])
    assert both["d2theta"].full().ravel() == pytest.approx(y["d2theta"])
