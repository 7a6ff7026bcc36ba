"""The engine of the composite methods against plain spatial algebra: 6 x 6 matrices and twists in root axes."""

import casadi as ca
import numpy as np
import pytest
from samples import ROBOTS, relative, rotation

import oc_dyn as od
from oc_dyn.kinematics.recursive_body import body_poses
from oc_dyn.lie import se3, so3
from oc_dyn.model.canonical import canonical
from oc_dyn.partials.virtual_motion import VirtualTree
from oc_dyn.second_partials.ground_motion import GroundTree
from oc_dyn.working_axes.assembly import assembled
from oc_dyn.working_axes.fields import acceleration_matrix, newton_euler
from oc_dyn.working_axes.frames import WorkingFrame, body_placements, working_frames
from oc_dyn.working_axes.rotations import PlaneRotation, cross, crossed
from oc_dyn.working_axes.sums import Flow, rigid_flow
from oc_dyn.working_axes.tree import Carried

EXACT = 1e-11
NAMES = ("panda", "planar_2r", "branching", "prismatic", "floating", "spherical", "planar", "helical", "turned over")


def load(name):
    if name == "turned over":  # axes that are parallel and point both ways, in a chain and in a branch
        b = od.RobotBuilder("turned over")
        b.add_link("link0")
        for k, (parent, axis) in enumerate([(0, 1), (1, -1), (2, -1), (2, 1)], 1):
            own = {"mass": 1.0 + k, "com": (0.1 * k, -0.2, 0.3), "inertia": (0.3, 0.01, 0.02, 0.4, 0.03, 0.5)}
            xyz = (0.3 * k, 0.1, -0.2)
            b.add_body(f"link{k}", "revolute", f"link{parent}", joint=f"joint{k}", axis=(0, 0, axis), xyz=xyz, **own)
        return b.build()
    return ROBOTS[name]() if name in ROBOTS else od.robots.by_name(name)


def number(x):
    """A casadi value without symbols as a numpy array."""
    return ca.evalf(ca.SX(x)).full()


def pair(x):
    """(angular, linear) or (moment, force) as one array (6, columns)."""
    return np.vstack([number(part) for part in x])


def force_cross(f):
    """V -> V x* f."""
    return -np.block([[hat(f[:3]), hat(f[3:])], [hat(f[3:]), np.zeros((3, 3))]])


def hat(x):
    return ca.skew(ca.DM(x)).full()


def ad(V):
    return se3.ad(ca.DM(V)).full()


def inertia_matrix(m, h, T):
    H = hat(h)
    return np.block([[T, H], [-H, m * np.eye(3)]])


class Reference:
    """A robot at a random state by 6 x 6 matrices in root axes, about the root's origin: twists V, accelerations A with
    gravity, virtual twists Y, screws S, inertias I, applied wrenches F."""

    def __init__(self, robot, seed=0):
        rng = np.random.default_rng(seed)
        model = self.model = canonical(robot)
        self.q = ca.DM(robot.integrate(robot.neutral(), rng.uniform(-1, 1, robot.nv)))
        self.v, self.dv, self.lam = (ca.DM(rng.uniform(-1, 1, robot.nv)) for _ in range(3))
        self.W = ca.DM(rng.uniform(-1, 1, (6, len(robot.bodies))))
        self.poses = body_poses(model, self.q)
        v, dv, lam = (model.joint_v(x) for x in (self.v, self.dv, self.lam))
        applied = model.wrenches(self.W)
        zero = np.zeros((6, 1))
        self.V, self.A, self.Y = {0: zero}, {0: np.vstack([zero[:3], -model.gravity.full()])}, {0: zero}
        self.S, self.I, self.F, self.psi, self.psi2, self.rate = {}, {}, {}, {}, {}, {}
        for i in model.bodies:
            p, C = model.parent[i], self.poses[i]
            S = self.S[i] = (se3.Ad(C) @ model.S[i]).full()
            joint = S @ v[i].full()
            self.V[i] = self.V[p] + joint
            self.A[i] = self.A[p] + S @ dv[i].full() + ad(self.V[i]) @ joint
            self.Y[i] = self.Y[p] + S @ lam[i].full()
            inward = se3.Ad_inv(C).full()
            self.I[i], self.F[i] = inward.T @ model.M[i].full() @ inward, inward.T @ applied[i].full()
            self.psi[i] = ad(self.V[p]) @ S
            self.psi2[i] = ad(self.A[p]) @ S + ad(self.V[p]) @ self.psi[i]
            self.rate[i] = self.psi[i] + ad(self.V[i]) @ S

    def axes(self, frames, i):
        """Ad (6, 6) of the working axes of body i in root axes."""
        R, p = self.poses[i]
        frame = frames[i]
        return se3.Ad((R @ frame.turn.inward(ca.DM.eye(3)), p)).full()

    def below(self, i):
        return [j for j in self.model.bodies if i in self.model.support(j)]


@pytest.fixture(params=NAMES)
def reference(request):
    return Reference(load(request.param))


def test_rotations_are_those_of_so3():
    rng = np.random.default_rng(1)
    turn, R = PlaneRotation(ca.DM(0.7)), so3.rot_z(0.7)
    X, H = ca.DM(rng.normal(size=(3, 4))), ca.DM(rng.normal(size=(3, 3)))
    assert relative(turn.outward(X), R @ X) < EXACT
    assert relative(turn.inward(X), R.T @ X) < EXACT
    assert relative(turn.square(H), R @ H @ R.T) < EXACT
    assert relative(turn.symmetric(H + H.T), R @ (H + H.T) @ R.T) < EXACT


def test_no_angle_is_no_rotation():
    X, turn = ca.DM(np.arange(9.0).reshape(3, 3)), PlaneRotation()
    assert all(f(X) is X for f in (turn.outward, turn.inward, turn.square, turn.symmetric))


@pytest.mark.parametrize("columns", [1, 3])
def test_cross_products_by_columns(columns):
    rng = np.random.default_rng(2)
    a, B = ca.DM(rng.normal(size=3)), ca.DM(rng.normal(size=(3, columns)))
    expected = so3.skew(a) @ B
    assert relative(cross(a, B), expected) < EXACT
    assert relative(crossed(B, a), -expected) < EXACT


def test_newton_euler_is_that_of_the_inertia_matrix():
    """f = I A - ad(V)^T I V, with A = (wd, a - w x u)."""
    rng = np.random.default_rng(3)
    m, h, G = 1.7, rng.normal(size=3), rng.normal(size=(3, 3))
    P = G @ G.T
    w, u, wd, a = rng.normal(size=(4, 3))
    I = inertia_matrix(m, h, np.trace(P) * np.eye(3) - P)
    V, A = np.hstack([w, u]), np.hstack([wd, a - np.cross(w, u)])
    f, n = newton_euler(m, ca.DM(h), ca.DM(P), ca.DM(a), acceleration_matrix(ca.DM(w), ca.DM(wd)))
    assert relative(pair((n, f))[:, 0], I @ A - ad(V).T @ I @ V) < EXACT


def test_working_axes_lead_to_the_poses_of_the_bodies(reference):
    model = reference.model
    frames = working_frames(model, model.joint_q(reference.q))
    working, body = {}, {0: (ca.DM.eye(3), ca.DM.zeros(3))}
    for i in model.bodies:
        above = (working if frames[i].parallel else body)[model.parent[i]]
        working[i] = se3.compose(above, (frames[i].R, frames[i].p))
        body[i] = working[i][0] @ frames[i].turn.outward(ca.DM.eye(3)), working[i][1]
        assert relative(number(body[i][0]), reference.poses[i][0]) < EXACT
        assert relative(number(body[i][1]), reference.poses[i][1]) < EXACT


@pytest.mark.parametrize("name, count", [("planar_2r", 1), ("turned over", 3), ("branching", 0)])
def test_parallel_axes_are_not_turned_against_each_other(name, count):
    model = canonical(load(name))
    q = model.joint_q(ca.SX.sym("q", model.robot.nq))
    hung = [x for x in working_frames(model, q).values() if x.parallel]
    assert len(hung) == count
    assert all(x.R.is_constant() and np.abs(ca.DM(x.R).full()).tolist() == np.eye(3).tolist() for x in hung)


@pytest.mark.sample(1)
def test_screws_and_what_moves_them(reference):
    r = reference
    tree = GroundTree(r.model, r.q, r.v, r.dv)
    for i in r.model.bodies:
        inward = np.linalg.inv(r.axes(tree.frames, i))
        for name in ("s", "psi", "psi2", "rate"):
            expected = inward @ getattr(r, "S" if name == "s" else name)[i]
            assert relative(pair(getattr(tree.screws[i], name)), expected) < EXACT, name


@pytest.mark.sample(1)
def test_sums_of_the_motion_seen_from_the_ground(reference):
    r, rng = reference, np.random.default_rng(5)
    tree = GroundTree(r.model, r.q, r.v, r.dv, r.W)
    for i in r.model.reversed_bodies:
        sums, X, below = tree.sum(i), r.axes(tree.frames, i), r.below(i)
        w, s, x = (rng.normal(size=(k, 1)) for k in (3, 6, 6))
        I = X.T @ sum(r.I[j] for j in below) @ X
        B = X.T @ sum(twice_coriolis(r.I[j], r.V[j]) for j in below) @ X
        force = X.T @ sum(r.I[j] @ r.A[j] - ad(r.V[j]).T @ r.I[j] @ r.V[j] - r.F[j] for j in below)
        change = sum(-ad(r.V[j]).T @ r.I[j] - r.I[j] @ ad(r.V[j]) for j in below)
        momentum = X.T @ sum(r.I[j] @ r.V[j] for j in below)
        split = [ca.DM(part) for part in (s[:3], s[3:])]
        a = [ca.DM(part) for part in (x[:3], x[3:])]
        assert relative(pair(sums.inertia(a)), I @ x) < EXACT
        assert relative(pair((sums.n, sums.f)), force) < EXACT
        assert relative(pair(sums.flow.momentum()), 2 * momentum) < EXACT
        assert relative(pair(sums.flow.coriolis(ca.DM(w))), B[:, :3] @ w) < EXACT
        assert relative(number(sums.flow.coriolis_transposed(split)), B[:, :3].T @ s) < EXACT
        assert relative(pair(sums.flow.inertia_change(a)), X.T @ change @ X @ x) < EXACT
        assert relative(pair(sums.rigid_flow(split).momentum()), 2 * I @ s) < EXACT


def twice_coriolis(I, V):
    """2 B(I, V) of Singh et al. 2023, eq. 14."""
    return -ad(V).T @ I - I @ ad(V) + force_cross(I @ V)


@pytest.mark.sample(1)
def test_sums_of_the_motion_and_the_virtual_motion_seen_by_each_joint(reference):
    r, rng = reference, np.random.default_rng(6)
    tree = VirtualTree(r.model, r.q, r.v, r.dv, r.W, r.lam)
    for i in r.model.reversed_bodies:
        sums, X, below = tree.sum(i), r.axes(tree.frames, i), r.below(i)
        w, x = rng.normal(size=(3, 1)), rng.normal(size=(6, 1))
        travelled = X @ np.vstack([np.zeros((3, 1)), (np.linalg.inv(X) @ r.V[r.model.parent[i]])[3:]])
        B = X.T @ sum(twice_coriolis(r.I[j], r.V[j] - travelled) for j in below) @ X
        G = X.T @ sum(twice_coriolis(r.I[j], r.V[j] - travelled).T @ r.Y[j] for j in below)
        virtual = X.T @ sum(r.I[j] @ r.Y[j] for j in below)
        moment = X.T @ sum(twice_coriolis(r.I[j], r.Y[j]) for j in below) @ X
        force = X.T @ sum(r.I[j] @ r.A[j] - ad(r.V[j]).T @ r.I[j] @ r.V[j] - r.F[j] for j in below)
        inertia = X.T @ sum(r.I[j] for j in below) @ X
        assert relative(pair(sums.inertia([ca.DM(x[:3]), ca.DM(x[3:])])), inertia @ x) < EXACT
        assert relative(pair((sums.n, sums.f)), force) < EXACT
        assert relative(pair(sums.flow.coriolis(ca.DM(w))), B[:, :3] @ w) < EXACT
        assert relative(number(sums.g), G[:3]) < EXACT
        assert relative(pair((sums.k, sums.L)), virtual) < EXACT
        assert relative(pair(sums.virtual_flow.momentum()), virtual) < EXACT
        assert relative(2 * number(sums.virtual_flow.coriolis(ca.DM(w))[0]), (moment[:, :3] @ w)[:3]) < EXACT


def test_a_rigid_flow_is_that_of_its_points():
    rng = np.random.default_rng(7)
    points, masses = rng.normal(size=(5, 3)), rng.uniform(1, 2, 5)
    w, u = rng.normal(size=(2, 3))
    y = u + np.cross(w, points)
    P = np.einsum("k,ki,kj", masses, points, points)
    K, l = rigid_flow((ca.DM(w), ca.DM(u)), masses.sum(), ca.DM(masses @ points), ca.DM(P))
    assert relative(K, np.einsum("k,ki,kj", masses, y, points)) < EXACT
    assert relative(l, ca.DM(masses @ y)) < EXACT


def test_a_flow_is_moved_and_turned_with_its_points():
    rng = np.random.default_rng(8)
    points, y, masses = rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), rng.uniform(1, 2, 5)
    R, p, turn = rotation(rng), rng.normal(size=3), PlaneRotation(ca.DM(0.4))

    def flow(y, points):
        return np.einsum("k,ki,kj", masses, y, points), masses @ y

    moved = Flow(*map(ca.DM, flow(y, points))).moved(WorkingFrame(ca.DM(R), ca.DM(p), turn))
    K, l = flow(y @ R.T, points @ R.T + p)
    assert relative(moved.K, K) < EXACT
    assert relative(moved.l, ca.DM(l)) < EXACT
    turned, Rz = Flow(*map(ca.DM, flow(y, points))).turned(turn), so3.rot_z(0.4).full()
    K, l = flow(y @ Rz.T, points @ Rz.T)
    assert relative(turned.K, K) < EXACT
    assert relative(turned.l, ca.DM(l)) < EXACT


def test_wrenches_are_carried_to_the_root(reference):
    r, rng = reference, np.random.default_rng(9)
    tree = GroundTree(r.model, r.q, r.v, r.dv)
    for i in r.model.bodies:
        wrench = rng.normal(size=(6, 2))
        at_root = np.linalg.inv(r.axes(tree.frames, i)).T @ wrench
        visited = []
        for j, carried, working in tree.climb(i, Carried([(ca.DM(wrench[:3]), ca.DM(wrench[3:]))])):
            axes = r.axes(tree.frames, j) if working else se3.Ad(r.poses[j]).full()
            assert relative(pair(carried.wrenches[0]), axes.T @ at_root) < EXACT
            visited.append(j)
        assert visited == r.model.support(i)[-2::-1]


def test_placements_of_bodies(reference):
    r, rng = reference, np.random.default_rng(10)
    q = r.model.joint_q(r.q)
    G = rng.normal(size=(6, 6))
    M, x, W = G @ G.T, rng.normal(size=(6, 2)), rng.normal(size=(6, 1))
    for i, frame in body_placements(r.model, q).items():
        X = se3.Ad_inv(r.model.placement(i, q[i])).full()
        assert relative(pair(frame.twist(ca.DM(x[:3]), ca.DM(x[3:]))), X @ x) < EXACT
        assert relative(pair(frame.wrench(ca.DM(W[:3]), ca.DM(W[3:]))), X.T @ W) < EXACT
        A, H, B = map(number, frame.articulated(*(ca.DM(M[a, b]) for a, b in BLOCKS)))
        assert relative(np.block([[A, H], [H.T, B]]), X.T @ M @ X) < EXACT


BLOCKS = (np.s_[:3], np.s_[:3]), (np.s_[:3], np.s_[3:]), (np.s_[3:], np.s_[3:])


@pytest.mark.parametrize("name", ["mimic", "spherical", "branching"])
def test_blocks_are_put_where_their_velocities_are(name):
    """E_j^T block E_i summed over the pairs, joint velocities E_i v."""
    model, rng = canonical(ROBOTS[name]()), np.random.default_rng(11)
    E = [model.joint_v(ca.DM(e)) for e in np.eye(model.robot.nv)]
    E = {i: np.hstack([e[i].full() for e in E]) for i in model.bodies}
    blocks = {}
    for i in model.bodies:
        for j in model.support(i):
            G = rng.normal(size=(E[j].shape[0], E[i].shape[0]))
            blocks[j, i] = G + G.T if i == j else G
    casadi_blocks = {pair: ca.SX(ca.DM(x)) for pair, x in blocks.items()}
    expected = sum(E[j].T @ x @ E[i] for (j, i), x in blocks.items())
    assert relative(number(assembled(model, casadi_blocks)), expected) < EXACT
    expected = expected + sum(E[i].T @ x.T @ E[j] for (j, i), x in blocks.items() if i != j)
    assert relative(number(assembled(model, casadi_blocks, mirrored=True)), expected) < EXACT


def test_pairs_without_a_path_are_structural_zeros():
    model = canonical(ROBOTS["branching"]())
    blocks = {(j, i): ca.SX.sym("x") for i in model.bodies for j in model.support(i)}
    zeros = model.robot.nv**2 - sum(1 if i == j else 2 for j, i in blocks)
    matrix = assembled(model, blocks, mirrored=True)
    assert zeros > 0
    assert matrix.nnz() == model.robot.nv**2 - zeros
