"""Random linear dynamics, quadratic costs and active bounds, by all methods, against a quadratic program of its own.

The reference holds controls constant on a fine grid, where the states follow exactly by the matrix exponential and the
cost by the integral of it (Van Loan 1978), and has another solver.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.optimal_control.integrators import METHODS

FINE = 200  # intervals of the reference
NODES = 40
T = 2.0


@dataclass(frozen=True)
class Draw:
    A: np.ndarray
    B: np.ndarray
    Q: np.ndarray
    R: np.ndarray
    start: np.ndarray
    u_max: float = np.inf
    x_max: float = np.inf  # of the first state


def draw(seed):
    """Dynamics and costs at random; bounds that bind: three quarters of the control and of the way of the first state
    that are taken without them."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 4), rng.integers(1, 3)
    A, B = rng.normal(size=(n, n)), rng.normal(size=(n, m))
    Q, R = (y @ y.T + 0.1 * np.eye(len(y)) for y in (rng.normal(size=(n, n)), rng.normal(size=(m, m))))
    free = Draw(A, B, Q, R, rng.normal(size=n))
    _, x, u = reference(free)
    bounded = Draw(A, B, Q, R, free.start, u_max=0.75 * np.abs(u).max())
    solved = reference(bounded)
    if solved is None:
        return free, solved
    way = solved[1][:, 0].max() - free.start[0]
    if way > 0.02:
        both = Draw(A, B, Q, R, free.start, bounded.u_max, free.start[0] + 0.75 * way)
        if (tight := reference(both)) is not None:
            return both, tight
    return bounded, solved


def exponential(M):
    """exp(M) by squaring of a Taylor series."""
    k = max(0, int(np.ceil(np.log2(max(np.abs(M).sum(axis=1).max(), 1e-9)))) + 4)
    out, term = np.eye(len(M)), np.eye(len(M))
    for j in range(1, 16):
        term = term @ M / 2**k / j
        out = out + term
    for _ in range(k):
        out = out @ out
    return out


def reference(case, count=FINE):
    """(cost, x (count + 1, n), u (count, m)) of the best controls that are constant on intervals; None if there are
    none within the bounds."""
    n, m = case.B.shape
    h = T / count
    F = np.block([[case.A, case.B], [np.zeros((m, n + m))]])
    weight = np.block([[case.Q, np.zeros((n, m))], [np.zeros((m, n)), case.R]])
    big = exponential(h * np.block([[-F.T, weight], [np.zeros_like(F), F]]))
    step = big[n + m :, n + m :]
    W = step.T @ big[: n + m, n + m :]  # integral of exp(F' t) weight exp(F t)
    x, u = ca.SX.sym("x", n, count + 1), ca.SX.sym("u", m, count)
    z = [ca.vertcat(x[:, k], u[:, k]) for k in range(count)]
    rows = [x[:, k + 1] - step[:n] @ z[k] for k in range(count)]
    f = sum(ca.bilin(W, y, y) for y in z) / 2
    unknowns = ca.vertcat(ca.vec(x), ca.vec(u))
    upper = np.full((n, count + 1), np.inf)
    upper[0] = case.x_max
    upper[:, 0] = case.start
    lower = np.full((n, count + 1), -np.inf)
    lower[:, 0] = case.start
    solver = ca.qpsol(
        "reference", "proxqp", {"x": unknowns, "f": f, "g": ca.vertcat(*rows)},
        {"error_on_fail": False, "print_time": False, "proxqp": {"eps_abs": 1e-9, "max_iter": 5000}},
    )  # fmt: skip
    ends = np.full(m * count, case.u_max)
    out = solver(
        lbx=np.concatenate([lower.T.ravel(), -ends]), ubx=np.concatenate([upper.T.ravel(), ends]), lbg=0, ubg=0
    )
    if not solver.stats()["success"]:
        return None
    found = out["x"].full().ravel()
    return float(out["f"]), found[: n * (count + 1)].reshape(-1, n), found[n * (count + 1) :].reshape(-1, m)


def problem(case, nodes):
    n, m = case.B.shape
    ocp = od.Problem(nodes, T)
    upper = np.full(n, np.inf)
    upper[0] = case.x_max
    x, u = (
        ocp.state("x", n, upper=upper, scale=1.0),
        ocp.control("u", m, lower=-case.u_max, upper=case.u_max, scale=1.0),
    )
    ocp.rate(x, case.A @ x + case.B @ u)
    ocp.start({x: case.start})
    ocp.minimize(integral=(ca.bilin(case.Q, x, x) + ca.bilin(case.R, u, u)) / 2)
    return ocp


# largest error of the objective at 40 nodes, relative to the reference at 200; 0.1 of methods that are not here
WITHIN = {"rk4": 0.02, "collocation": 0.02, "hermite_simpson": 2e-3, "euler": 0.6}


def errors(seed):
    """{method: (error of the objective beside the fine grid, beside the same grid, SolutionCheck)}, and the cost."""
    case, fine = draw(seed)
    same = reference(case, NODES)
    found = {"cost": same[0]}
    for method in METHODS:
        solution = problem(case, NODES).solve(method=method, check="off")
        found[method] = solution.objective / fine[0] - 1, solution.objective / same[0] - 1, solution.check()
    return found


def agree(seed):
    found = errors(seed)
    for method in METHODS:
        fine, _, check = found[method]
        assert abs(fine) < WITHIN.get(method, 0.1), (seed, method)
        # below by what defects may buy at most, at the prices of the states; the reference is off by a 25th of rk4
        assert fine > -10 * NODES * check.defect - 5e-4, (seed, method)
    for method in ("rk4", "collocation"):  # controls constant on the same intervals: the same program
        assert abs(found[method][1]) < 1e-4 + 1e-6 / abs(found["cost"]), (seed, method)


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(4))
def test_all_methods_find_the_optimum(seed):
    agree(seed)


@pytest.mark.few(8)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 204, 4))
def test_all_methods_find_the_optimum_again_and_again(seed):
    agree(seed)


if __name__ == "__main__":
    import sys

    table = [errors(seed) for seed in range(int(sys.argv[1]))]
    for method in METHODS:
        fine, same = (np.array([row[method][k] for row in table]) for k in (0, 1))
        defects = max(row[method][2].defect for row in table)
        print(f"{method:16s} fine {fine.min():9.1e} to {fine.max():9.1e}  same {same.min():9.1e} to {same.max():9.1e}"
              f"  defect {defects:.1e}")  # fmt: skip
