"""Conversions between rotations, quaternions, angles and rotation vectors, densely near their singular places."""

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import interop
from oc_dyn.lie import se3, so3
from oc_dyn.planning.inverse_kinematics import rotation_vector

TINY = (0.0, 1e-18, 1e-16, 1e-13, 1e-12, 1e-9, 3e-9, 1e-8, 1.1e-8, 1e-7, 1e-6, 1e-4, 1e-3, 0.1)
NEAR = (*TINY, *(-x for x in TINY[1:]))
AXES = [np.array(a) / np.linalg.norm(a) for a in np.ndindex(3, 3, 3) if any(a)]
AXES += [a * s for a in np.eye(3) for s in (1, -1)] + list(np.random.default_rng(0).normal(size=(12, 3)))
AXES = np.array([a / np.linalg.norm(a) for a in AXES])


def exact(axis, angle):
    """Rotation matrix by Rodrigues' formula, its cosine about half a turn from half the angle."""
    K = np.array(so3.skew(ca.DM(axis)))
    return np.eye(3) + np.sin(angle) * K + 2 * np.sin(angle / 2) ** 2 * (K @ K)


def quaternion(axis, angle):
    return np.r_[np.cos(angle / 2), np.sin(angle / 2) * np.asarray(axis)]


def product(P, Q):
    (a, u), (b, v) = ((x[0], x[1:]) for x in (P, Q))
    return np.r_[a * b - u @ v, a * v + b * u + np.cross(u, v)]


def rpy_matrix(roll, pitch, yaw):
    return exact([0, 0, 1], yaw) @ exact([0, 1, 0], pitch) @ exact([1, 0, 0], roll)


def rpy_quaternion(roll, pitch, yaw):
    return product(quaternion([0, 0, 1], yaw), product(quaternion([0, 1, 0], pitch), quaternion([1, 0, 0], roll)))


def largest(differences):
    return max(float(np.abs(x).max()) for x in differences)


TURNS = (0.0, 0.3, np.pi / 2, np.pi, -np.pi + 1e-9, -2.2)


@pytest.mark.sample(1)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("length", [1, -1, 1.01])  # Q and -Q are one rotation; the length does not matter
def test_angles_near_a_pitch_of_a_quarter_turn(sign, length):
    angles = [(r, sign * np.pi / 2 + d, y) for r in TURNS for d in NEAR for y in TURNS]
    Q = length * np.array([rpy_quaternion(*x) for x in angles]).T
    q = ca.SX.sym("Q", 4)
    f = ca.Function("f", [q], [interop.quaternion_to_rpy(q)]).map(Q.shape[1])
    found = np.array(f(Q)).T
    assert largest(rpy_matrix(*x) - rpy_matrix(*y) for x, y in zip(found, angles, strict=True)) < 1e-14
    assert np.abs(found[:, 1]).max() <= np.pi / 2


def test_angles_elsewhere_are_those_given():
    rng = np.random.default_rng(1)
    angles = rng.uniform([-3.1, -1.5, -3.1], [3.1, 1.5, 3.1], (300, 3))
    found = [np.array(interop.quaternion_to_rpy(rpy_quaternion(*x))).ravel() for x in angles]
    assert largest(np.array(found) - angles) < 1e-14


def test_angles_of_a_file_near_a_pitch_of_a_quarter_turn():
    """quat_xyzw of a URDF file, read as angles."""
    for pitch in (np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9, -np.pi / 2 + 1e-9):
        w, x, y, z = rpy_quaternion(0.4, pitch, -1.2)
        text = (
            (
                '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="fixed"><parent link="a"/>'
                f'<child link="b"/><origin quat_xyzw="{x!r} {y!r} {z!r} {w!r}"/></joint></robot>'
            )
            .replace("np.float64(", "")
            .replace(")", "")
        )
        R = od.load_urdf(text).frame("b").rotation
        assert np.abs(R - rpy_matrix(0.4, pitch, -1.2)).max() < 1e-14


ANGLES = [*(x for x in NEAR if x >= 0), 1.0, *(np.pi + x for x in NEAR)]


def shorter(axis, angle):
    """The rotation vector of length at most pi."""
    return angle * axis if angle <= np.pi else (angle - 2 * np.pi) * axis


def vector_error(found, axis, angle):
    """How far a rotation vector is off; at half a turn either sign is right."""
    found, right = np.array(found).ravel(), shorter(axis, angle)
    off = np.abs(found - right).max()
    opposite = right * (1 - 2 * np.pi / np.linalg.norm(right)) if abs(angle - np.pi) < 1e-14 else right
    return min(off, np.abs(found - opposite).max())


@pytest.mark.slow
def test_logarithm_of_quaternions_near_zero_and_half_a_turn():
    assert (
        largest(vector_error(so3.quat_log(s * quaternion(a, x)), a, x) for a in AXES for x in ANGLES for s in (1, -1))
        < 1e-14
    )


def test_logarithm_of_matrices_near_zero_and_half_a_turn():
    assert largest(vector_error(rotation_vector(exact(a, x)), a, x) for a in AXES for x in ANGLES) < 2e-14


@pytest.mark.slow
def test_quaternions_of_matrices_near_zero_and_half_a_turn():
    def off(axis, angle):
        found, right = interop.rotation_to_quaternion(exact(axis, angle)), quaternion(axis, angle)
        return min(np.abs(found - right).max(), np.abs(found + right).max())

    assert largest(off(a, x) for a in AXES for x in ANGLES) < 1e-15


@pytest.mark.slow
def test_exponential_and_its_inverse_near_zero_and_the_switch_to_series():
    for angle in (*(x for x in NEAR if x >= 0), 0.0999, 0.1, 0.1001, 3.0, np.pi, 6.0):
        for a in AXES[:8]:
            w = angle * a
            assert np.abs(np.array(so3.exp_so3(ca.DM(w))) - exact(a, angle)).max() < 1e-14
            _, p = se3.exp_se3(ca.DM(np.r_[w, 1.0, 2.0, 3.0]))
            assert np.abs(np.array(se3.left_jacobian_inverse(ca.DM(w)) @ p).ravel() - [1, 2, 3]).max() < 1e-12


@pytest.mark.parametrize(
    "R, words",
    [
        (-np.eye(3), "reflection"),
        (np.zeros((3, 3)), "differs from the unit matrix by 1"),
        (2 * np.eye(3), "expected a rotation matrix"),
        (np.full((3, 3), np.nan), "expected a rotation matrix"),
        (np.eye(2), r"shape \(2, 2\)"),
    ],
)
def test_what_is_no_rotation_has_no_quaternion(R, words):
    with pytest.raises(od.ShapeError, match=f"rotation_to_quaternion: R .*{words}"):
        interop.rotation_to_quaternion(R)


@pytest.mark.parametrize("Q", [np.zeros(4), [np.nan, 0, 0, 1], [np.inf, 0, 0, 1], [1, 0, 0]])
def test_what_is_no_quaternion_has_no_angles(Q):
    with pytest.raises(od.ShapeError, match="quaternion_to_rpy: Q is"):
        interop.quaternion_to_rpy(Q)


@pytest.mark.parametrize("length", [1e-200, 1.0, 1e200])
def test_angles_of_a_quaternion_of_any_length(length):
    found = interop.quaternion_to_rpy(length * rpy_quaternion(0.3, -0.4, 2.0))
    assert np.array(found).ravel() == pytest.approx([0.3, -0.4, 2.0])
