"""Collisions of less than 2 ms, planted between the samples of a motion: the certificate finds every one.

A small sphere on a link moves fast; at a random time t0 a thin obstacle is put in its way, at right angles to its
velocity and a known depth inside it, so that the truth is known: the deepest point, when, and for how long. What the
rest of the motion does is looked at by samples, and planted again where it hits elsewhere.
"""

import casadi as ca
import numpy as np
import pytest
from among_shapes import place, poses, random_motion
from samples import build

import oc_dyn as od
from oc_dyn.planning.certificate import certify
from oc_dyn.scene.shapes import Box, Capsule, Sphere

LONGEST = 2e-3  # [s] of a collision
KINDS = ("sphere", "rod", "plate", "moving sphere", "moving rod")
ROBOTS = {
    "panda": od.robots.panda,
    "arm": lambda: build(["revolute"] * 5, seed=31),
    "slides": lambda: build(["prismatic", "revolute", "prismatic", "revolute"], seed=32),
    "follower": lambda: build(["revolute", "revolute", "revolute", "prismatic"], seed=33,
                              mimic={2: ("joint1", -3.0, 0.2), 3: ("joint2", 0.7, 0.1)}),
    "floating": lambda: build(["revolute", "universal", "revolute"], seed=34, floating_base=True),
    "screws": lambda: build(["helical", "cylindrical", "spherical", "revolute"], seed=35),
}  # fmt: skip


class Planted:
    """motion, scene; time, depth [m], lasting [s] of the collision; by_samples: smallest distance every ms."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        kind, name = KINDS[seed % len(KINDS)], list(ROBOTS)[seed % len(ROBOTS)]
        self.robot, self.what = ROBOTS[name](), f"{kind} in the way of {name}"
        for again in range(100):
            self.motion = random_motion(self.robot, 1000 * seed + again, M=8, duration=1.5, size=4.0)
            if self._plant(rng, kind):
                return
        raise AssertionError("nothing planted")

    def _plant(self, rng, kind):
        """Put an obstacle in the way; False where it would hit elsewhere, too, or for longer."""
        self.frame, self.own = self.robot.bodies[-1].name, rng.uniform(-0.1, 0.1, 3)
        self.probe = 10 ** rng.uniform(-4, -2)  # its radius
        # in the middle between the samples that are taken every ms
        self.time = 1e-3 * (rng.integers(50, 1450) + 0.5)
        x0, v = self._way([self.time - 1e-6, self.time, self.time + 1e-6])[1], self._velocity(self.time)
        drift = rng.normal(size=3) if kind.startswith("moving") else np.zeros(3)
        v = v - drift
        speed = np.linalg.norm(v)
        along = v / speed
        u = np.linalg.qr(np.column_stack([along, rng.normal(size=(3, 2))]))[0][:, 1]  # across the velocity
        w = np.cross(along, u)
        lasting = rng.uniform(0.2e-3, 1.5e-3)
        if kind == "plate":  # through it, deepest in its middle
            thick = lasting * speed - 2 * self.probe
            if thick <= 1e-5:
                return False
            self.depth, self.shape = thick / 2 + self.probe, Box(0.02, 0.02, thick)
            C = place(x0, np.column_stack([u, w, along]))
        else:
            R = 10 ** rng.uniform(-4, -2)
            both = R + self.probe
            if (lasting * speed / 2) >= both:
                return False
            self.depth = both - np.sqrt(both**2 - (lasting * speed / 2) ** 2)
            self.shape = Capsule(R, 0.03) if "rod" in kind else Sphere(R)
            C = place(x0 + (both - self.depth) * u, np.column_stack([u, along, w]))
        C[:3, 0] *= np.sign(np.linalg.det(C[:3, :3]))  # the shapes are symmetric
        self.place, self.drift = C, drift
        scene = od.Scene().attach("probe", self.frame, Sphere(self.probe), place(self.own))
        self.scene = scene.add("obstacle", self.shape, self._pose())
        return self._is_short()

    def _pose(self):
        if not self.drift.any():
            return self.place
        t, C = ca.SX.sym("t"), ca.SX(self.place)
        for i in range(3):
            C[i, 3] += self.drift[i] * (t - self.time)
        return ca.Function("pose", [t], [C])

    def _way(self, t):
        """(K, 3) of the probe's centre."""
        R, p = poses(self.robot, self.frame, self.motion.sample(np.asarray(t)).q)
        return R @ self.own + p

    def _velocity(self, t):
        a, b = self._way([t - 1e-5, t + 1e-5])
        return (b - a) / 2e-5

    def distances(self, t):
        """(K,) of the probe from the obstacle at times t, by closed forms of a point."""
        t = np.asarray(t)
        x = self._way(t) - self.place[:3, 3] - np.outer(t - self.time, self.drift)
        x = x @ self.place[:3, :3]
        if isinstance(self.shape, Sphere):
            return np.linalg.norm(x, axis=1) - self.shape.radius - self.probe
        if isinstance(self.shape, Capsule):
            x[:, 2] -= np.clip(x[:, 2], -self.shape.length / 2, self.shape.length / 2)
            return np.linalg.norm(x, axis=1) - self.shape.radius - self.probe
        over = np.abs(x) - np.array([self.shape.x, self.shape.y, self.shape.z]) / 2
        return np.linalg.norm(np.maximum(over, 0), axis=1) + np.minimum(over.max(axis=1), 0) - self.probe

    def _is_short(self):
        """Whether it lasts less than 2 ms and is the only collision."""
        near = self.time + np.linspace(-2e-3, 2e-3, 4001)
        inside = self.distances(near) < 0
        self.lasting = float(inside.sum() * 1e-6)
        times = np.arange(0.0, 1.5, 1e-4)
        elsewhere = self.distances(times[np.abs(times - self.time) > 1e-3]).min()
        self.by_samples = self.distances(np.arange(0.0, 1.5, 1e-3)).min()
        return 1e-5 < self.lasting < LONGEST and not inside[[0, -1]].any() and elsewhere > 1e-4


def assert_found(planted):
    """That the certificate finds it, where it is and no less deep than it is."""
    found = certify(planted.motion, planted.scene)
    assert found.hit
    assert not found.free
    assert found.time == pytest.approx(planted.time, abs=LONGEST)
    assert found.certified <= planted.distances([planted.time])[0] <= -0.9 * planted.depth
    assert planted.distances([found.time])[0] == pytest.approx(found.met, abs=1e-9)
    return found


@pytest.mark.parametrize("seed", [0, 3, pytest.param(2, marks=pytest.mark.slow)])
def test_a_collision_between_samples_is_found(seed):
    assert_found(Planted(seed))


@pytest.mark.slow
def test_all_of_fifty_collisions_shorter_than_2_ms_are_found():
    looks, lasting, depth, missed = [], [], [], 0
    for seed in range(50):
        planted = Planted(seed)
        found = assert_found(planted)
        looks.append(found.intervals)
        lasting.append(planted.lasting)
        depth.append(planted.depth)
        missed += planted.by_samples >= 0
    print(f"found 50 of 50; samples every ms miss {missed}")
    print(f"lasting {1e3 * min(lasting):.3g} to {1e3 * max(lasting):.3g} ms")
    print(f"deep {min(depth):.2g} to {max(depth):.2g} m")
    print(f"intervals looked at: {min(looks)} to {max(looks)}")
    assert missed > 10
