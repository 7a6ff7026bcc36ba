"""Time derivatives of M, C and g to order 4 against 50-digit arithmetic."""

from math import comb

import pytest
from test_precision import ORDER, TIMES, case, digits, factorial, joint_waves, relative, torques, tumbling_base

import oc_dyn as od

TOP = 4
__all__ = ["digits"]  # the fixture that sets 50 digits


CASES = [("jacobian_sum", "panda"), ("closed_form", "panda"), ("jacobian_sum", "aerial_manipulator")]


@pytest.mark.parametrize("method, name", CASES)
def test_matrices(method, name):
    """g alone is what gravity changes in the torques; M dv + C v, with all derivatives, what is left without it."""
    for t in TIMES[:1]:
        robot, q, V, tau = case(name, t)
        motion = joint_waves(robot, t) | {b.index: tumbling_base(t)[0] for b in robot.bodies if b.joint.kind == "free"}
        afloat = torques(robot.with_gravity((0, 0, 0)), motion)
        afloat = [factorial(k) * afloat[:, k] for k in range(ORDER + 1)]
        M, C, g = (
            [x.full() for x in f.call([q, *V[: f.n_in() - 1]])]
            for f in (
                od.function(robot, quantity, order=TOP, method=method)
                for quantity in ("mass_matrix", "coriolis_matrix", "gravity")
            )
        )
        for n in range(TOP + 1):
            moved = sum(comb(n, k) * (M[n - k] @ V[k + 1] + C[n - k] @ V[k]) for k in range(n + 1))
            assert relative(moved, afloat[n]) < 1e-10, n
            assert relative(g[n].ravel(), tau[n] - afloat[n]) < 1e-10, n
