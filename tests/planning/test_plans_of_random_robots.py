"""Plans of random robots keep all limits at 10 kHz by a recursion of Newton and Euler, followers and friction too."""

import numpy as np
import pytest
from samples import rotation

import oc_dyn as od

LOOSE = 1.001 + 1e-6  # what a plan may be over a limit without a word


def random_robot(seed):
    """Two or three joints that own coordinates, prismatic ones among them, and one or two that follow."""
    rng = np.random.default_rng(seed)
    b = od.RobotBuilder(f"random{seed}")
    b.add_link("link0")
    owners, count = [], int(rng.integers(3, 5))
    for k in range(1, count + 1):
        follows = k > 1 and (k == count or rng.random() < 0.3)
        kind = "prismatic" if rng.random() < 0.3 else "revolute"
        reach = 0.4 if kind == "prismatic" else 2.0
        limits = {"lower": -reach * rng.uniform(0.3, 1), "upper": reach * rng.uniform(0.3, 1)}
        limits |= {"velocity": rng.uniform(0.5, 2) * reach, "acceleration": rng.uniform(4, 15) * reach}
        drag = {"damping": rng.uniform(0, 3), "friction": rng.choice([0, 1]) * rng.uniform(0, 2)}
        mimic = None
        if follows:
            mimic = (rng.choice(owners), rng.choice([-2.0, -0.5, 0.5, 3.0]), 0.1 * reach * rng.uniform(-1, 1))
        else:
            owners.append(f"joint{k}")
            limits["effort"] = 1e3  # the test finds out what it takes
        half = rng.uniform(0.05, 0.15, 3)
        R, mass = rotation(rng), rng.uniform(0.3, 1.5)
        tensor = mass * R @ np.diag(np.sum(half**2) - half**2) @ R.T
        b.add_body(
            f"link{k}", kind, f"link{rng.integers(0, k)}", joint=f"joint{k}", axis=rng.normal(size=3),
            xyz=rng.uniform(-0.3, 0.3, 3), rotation=rotation(rng), mass=mass, com=rng.uniform(-0.15, 0.15, 3),
            inertia=tensor, armature=rng.uniform(0, 0.2), mimic=mimic, **limits, **drag,
        )  # fmt: skip
    return b.build()


def expanded(robot, rates):
    """[(joint, its q, v, dv (K,))] of all joints from those of coordinates."""
    out = []
    for body in robot.bodies:
        j = body.joint
        m, b = (1.0, 0.0) if j.mimic is None else (j.mimic.multiplier, j.mimic.offset)
        out.append((j, m * rates[0][:, j.q_index] + b, *(m * x[:, j.q_index] for x in rates[1:])))
    return out


def torques(robot, rates):
    """(smooth (K, n), Coulomb (K, n)) by Newton and Euler in axes of the root; Coulomb by the signs of velocities."""
    K, g = len(rates[0]), np.array(robot.gravity)
    zero = np.zeros((K, 3))
    world = {0: (np.broadcast_to(np.eye(3), (K, 3, 3)), zero, zero, zero, np.broadcast_to(-g, (K, 3)))}
    forces, axes, joints = {}, {}, expanded(robot, rates)
    for body, (j, q, v, dv) in zip(robot.bodies, joints, strict=True):
        R, p, w, dw, a = world[body.parent]
        z = np.asarray(j.axis, float) / np.linalg.norm(j.axis)
        R0 = R @ body.rotation
        r = np.einsum("kij,j->ki", R, body.translation)
        axis = np.einsum("kij,j->ki", R0, z)
        a = a + np.cross(dw, r) + np.cross(w, np.cross(w, r))
        p = p + r
        if j.kind == "prismatic":
            slide = axis * q[:, None]
            a = a + np.cross(dw, slide) + np.cross(w, np.cross(w, slide))
            a = a + axis * dv[:, None] + 2 * np.cross(w, axis * v[:, None])
            p, R1 = p + slide, R0
        else:
            S = np.array([[0, -z[2], z[1]], [z[2], 0, -z[0]], [-z[1], z[0], 0]])
            turn = np.eye(3) + np.sin(q)[:, None, None] * S + (1 - np.cos(q))[:, None, None] * S @ S
            dw = dw + axis * dv[:, None] + np.cross(w, axis * v[:, None])
            w, R1 = w + axis * v[:, None], R0 @ turn
        world[body.index], axes[body.index] = (R1, p, w, dw, a), axis
        x = body.inertia
        c = np.einsum("kij,j->ki", R1, x.com)
        about = np.array(x.parameters[4:])[[0, 1, 3, 1, 2, 4, 3, 4, 5]].reshape(3, 3)
        about = about - x.mass * (np.dot(x.com, x.com) * np.eye(3) - np.outer(x.com, x.com))
        tensor = R1 @ about @ np.swapaxes(R1, 1, 2)
        f = x.mass * (a + np.cross(dw, c) + np.cross(w, np.cross(w, c)))
        spin = np.einsum("kij,kj->ki", tensor, w)
        n = np.einsum("kij,kj->ki", tensor, dw) + np.cross(w, spin) + np.cross(p + c, f)
        forces[body.index] = (f, n)  # moments about the root's origin
    smooth, coulomb = np.zeros((K, robot.nv)), np.zeros((K, robot.nv))
    for body, (j, _, v, dv) in reversed(list(zip(robot.bodies, joints, strict=True))):
        f, n = forces[body.index]
        axis, p = axes[body.index], world[body.index][1]
        effort = np.sum(axis * (f if j.kind == "prismatic" else n - np.cross(p, f)), axis=1)
        m = 1.0 if j.mimic is None else j.mimic.multiplier
        smooth[:, j.v_index] += m * (effort + j.armature * dv + j.damping * v)
        coulomb[:, j.v_index] += m * j.friction * np.sign(np.where(np.abs(v) < 1e-9, 0, v))
        if body.parent:
            parent = forces[body.parent]
            forces[body.parent] = (parent[0] + f, parent[1] + n)
    return smooth, coulomb


def limited(robot, seed):
    """(limits, start, goal): torques a little more than it takes to hold and to start."""
    rng = np.random.default_rng(seed)
    ends = [robot.random_configuration(seed), robot.random_configuration(seed + 1000)]
    middle = (robot.limit("lower") + robot.limit("upper")) / 2
    ends = [middle + 0.9 * (q - middle) for q in ends]
    way = np.array([ends[0] + x * (ends[1] - ends[0]) for x in np.linspace(0, 1, 20)])
    holding = np.abs(torques(robot, [way, 0 * way, 0 * way])[0]).max(axis=0)
    rubbing = np.abs(torques(robot, [way, 0 * way + 1, 0 * way])[1]).max(axis=0)
    effort = (holding + 0.5) * rng.uniform(1.2, 2.5, robot.nv) + 2 * rubbing
    jerk = rng.uniform(10, 40, robot.nv) * robot.limit("acceleration")
    rows = zip(robot.coordinate_names, effort, jerk, strict=True)
    return od.Limits.of(robot).updated({n: {"tau": float(e), "d2v": float(j)} for n, e, j in rows}), *ends


def used(robot, limits, samples):
    """{(limit, joint): largest share} at samples, of all joints by themselves."""
    rates, out = [samples.q, samples.v, samples.dv], {}
    for j, q, v, dv in expanded(robot, rates):
        middle, half = (j.lower + j.upper) / 2, (j.upper - j.lower) / 2
        out |= {("q", j.name): np.abs(q - middle).max() / half, ("v", j.name): np.abs(v).max() / j.velocity}
        out["dv", j.name] = np.abs(dv).max() / j.acceleration
    tau = np.sum(torques(robot, rates), axis=0)
    out |= {("tau", name): np.abs(tau[:, i]).max() / limits.tau[i] for i, name in enumerate(limits.joints)}
    out |= {("d2v", n): np.abs(samples.d2v[:, i]).max() / limits.d2v[i] for i, n in enumerate(limits.joints)}
    return out


def kept(seed, planned):
    """Shares of a plan, or None if it is refused, by name."""
    robot = random_robot(seed)
    limits, start, goal = limited(robot, seed)
    try:
        motion = planned(robot, start, goal, limits)
    except (od.LimitError, od.SolveError):
        return None
    shares = used(robot, limits, motion.sample(1e-4))
    assert max(shares.values()) < LOOSE, (seed, max(shares, key=shares.get), max(shares.values()))
    return shares


def by_points(robot, start, goal, limits):
    return od.plan_point_to_point(robot, start, goal, limits=limits, nodes=16, continuity=2, check="raise")


def along(robot, start, goal, limits):
    via = (start + goal) / 2 + 0.05 * (goal - start)[::-1]
    return od.plan_along_path(robot, [start, via, goal], limits=limits, nodes=24, check="raise")


def test_the_recursion_is_right():
    """Against a method of the toolkit, at velocities at which smoothed Coulomb friction is that of the sign."""
    for seed in range(4):
        robot = random_robot(seed)
        rng = np.random.default_rng(seed)
        rates = [rng.normal(size=(5, robot.nv)) for _ in range(3)]
        rates[1] = rates[1] + np.sign(rates[1])
        f = od.function(robot, "inverse_dynamics", method="recursive_body", friction=True)
        smooth, coulomb = torques(robot, rates)
        assert np.abs(f(*(x.T for x in rates)).full().T - smooth - coulomb).max() < 1e-9


@pytest.mark.sample("along")
@pytest.mark.parametrize("planned", [by_points, along])
def test_plans_keep_all_limits(planned):
    found = [kept(seed, planned) for seed in range(5)]
    assert sum(x is not None for x in found) == 5


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("planned", [by_points, along])
def test_plans_of_fifty_robots_keep_all_limits(planned):
    found = [kept(seed, planned) for seed in range(50)]
    assert sum(x is not None for x in found) >= 48
    binding = {k[0] for x in found if x for k, share in x.items() if share > 0.98}
    assert {"v", "dv", "tau"} <= binding
