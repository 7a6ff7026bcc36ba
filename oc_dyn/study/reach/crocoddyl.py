"""The same reach with Crocoddyl, and whether what it computes is the same.

Its wheel is compiled against one version of Pinocchio and installs beside others. With Crocoddyl 3.2.1 beside Pinocchio
4.1.0 the accelerations of its action model come without gravity, their derivatives with it; beside 4.0.0 they are
right. An armature of zeros makes the model take another path, through the mass matrix, which is right beside both. So
both paths are compared with this package first, and the first that agrees is taken.
"""

import time

import numpy as np

from ...errors import SolveError
from ...function import function
from ..peers.robots import built_model
from ..solvers import GOAL, START
from .problem import END_POSITION, END_SPEED, MOST, POSITION, SPEED, TOLERANCE, TORQUE, Outcome

PATHS = ("articulated body", "mass matrix")  # as the action model comes; with an armature of zeros
AGREE = 1e-9  # largest relative difference
WIDE = 1e9  # bounds that are none


def version():
    """Version of Crocoddyl; None where it is not installed."""
    try:
        import crocoddyl
        import pinocchio  # noqa: F401
    except ImportError:
        return None
    return crocoddyl.__version__


def versions():
    """{name: version} of the programs on this side."""
    import pinocchio

    return {"crocoddyl": version(), "pinocchio": pinocchio.__version__}


def shooting(reach, path, weight=None, goal=GOAL):
    """crocoddyl.ShootingProblem of a reach, for one thread.

    weight: of a penalty on velocities beyond their bounds, half of their squares, at all nodes. Bounds of torque are
    set, which BoxFDDP alone keeps.
    """
    import crocoddyl

    state = crocoddyl.StateMultibody(built_model(reach.robot))
    actuation = crocoddyl.ActuationModelFull(state)
    target = np.concatenate([goal, np.zeros(7)])

    def cost(activation, residual):
        return crocoddyl.CostModelResidual(state, activation, residual)

    def action(position, speed, torque, step, share):
        costs = crocoddyl.CostModelSum(state, 7)
        weights = crocoddyl.ActivationModelWeightedQuad(np.repeat([position, speed], 7))
        costs.addCost("state", cost(weights, crocoddyl.ResidualModelState(state, target, 7)), 1.0)
        if torque:
            weights = crocoddyl.ActivationModelWeightedQuad(torque / reach.rated**2)
            costs.addCost("torque", cost(weights, crocoddyl.ResidualModelControl(state, 7)), 1.0)
        if weight is not None:
            most = np.concatenate([np.full(7, WIDE), reach.velocity])
            barrier = crocoddyl.ActivationModelQuadraticBarrier(crocoddyl.ActivationBounds(-most, most))
            residual = crocoddyl.ResidualModelState(state, np.zeros(14), 7)
            costs.addCost("velocity", cost(barrier, residual), weight * share)
        model = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs)
        if path == "mass matrix":
            model.armature = np.zeros(7)
        return crocoddyl.IntegratedActionModelEuler(model, step)

    running = action(POSITION, SPEED, TORQUE, reach.step, 1.0)
    if reach.torque is not None:
        running.u_lb, running.u_ub = -reach.torque, reach.torque
    last = action(END_POSITION, END_SPEED, 0.0, 0.0, reach.step)
    start = np.concatenate([START, np.zeros(7)])
    problem = crocoddyl.ShootingProblem(start, [running] * reach.nodes, last)
    problem.nthreads = 1  # as the other side; on cores that are shared more of them were slower
    return problem


def prepared(reach, way, path):
    """As problem.prepared, for solvers of Crocoddyl by name."""
    import crocoddyl

    states = [np.concatenate([START, np.zeros(7)])] * (reach.nodes + 1)
    torques = [reach.holding] * reach.nodes

    def solved(goal):
        problem = shooting(reach, path, way.weight, goal)
        solver = getattr(crocoddyl, way.solver)(problem)  # it keeps its regularisation from one run to the next
        solver.th_stop = TOLERANCE  # of what it expects to gain; by default 1e-9 (FDDP), 5e-5 (BoxFDDP)
        begun = time.perf_counter()
        success = solver.solve(states, torques, MOST, False)
        seconds = time.perf_counter() - begun
        return Outcome(seconds, np.array(solver.xs), np.array(solver.us), solver.iter, bool(success))

    begun = time.perf_counter()
    getattr(crocoddyl, way.solver)(shooting(reach, path, way.weight))
    build = time.perf_counter() - begun
    solved(GOAL)
    return build, solved


def agreement(reach, samples=20):
    """(rows {quantity, difference}, path to take): largest relative differences to this package at random states.

    Raises SolveError if no path agrees to AGREE.
    """
    differences = {name: 0.0 for name in ("inverse dynamics, Pinocchio", *(f"acceleration, {p}" for p in PATHS))}
    states = list(_states(reach, samples))
    for q, v, tau in states:
        for name, (got, want) in _dynamics(reach, q, v, tau).items():
            differences[name] = max(differences[name], _difference(got, want))
    path = next((p for p in PATHS if differences[f"acceleration, {p}"] < AGREE), None)
    if path is None or not differences["inverse dynamics, Pinocchio"] < AGREE:
        worst = ", ".join(f"{name} {x:.1e}" for name, x in differences.items())
        raise SolveError(
            f"the robot is not the same on both sides ({worst}, expected below {AGREE:g}): is this Crocoddyl "
            "compiled against the Pinocchio that is installed?"
        )
    for q, v, tau in states:
        for name, (got, want) in _stage(reach, path, q, v, tau).items():
            differences[name] = max(differences.get(name, 0.0), _difference(got, want))
    return [{"quantity": name, "difference": x} for name, x in differences.items()], path


def _states(reach, samples):
    numbers = np.random.default_rng(0)
    for _ in range(samples):
        yield START + 0.5 * numbers.normal(size=7), numbers.normal(size=7), reach.rated * numbers.uniform(-1, 1, 7)


def _dynamics(reach, q, v, tau):
    """{name: (theirs, ours)} of what does not depend on the path to take."""
    import pinocchio

    model = built_model(reach.robot)
    want = np.array(function(reach.robot, "forward_dynamics")(q, v, tau)).ravel()
    inverse = np.array(function(reach.robot, "inverse_dynamics")(q, v, want)).ravel()
    out = {"inverse dynamics, Pinocchio": (pinocchio.rnea(model, model.createData(), q, v, want), inverse)}
    for path in PATHS:
        action = shooting(reach, path).runningModels[0].differential
        data = action.createData()
        action.calc(data, np.concatenate([q, v]), tau)
        out[f"acceleration, {path}"] = data.xout.copy(), want
    return out


def _stage(reach, path, q, v, tau):
    """{name: (theirs, ours)} of a step, its derivatives and costs."""
    problem, x, dt = shooting(reach, path), np.concatenate([q, v]), reach.step
    running, last = problem.runningModels[0], problem.terminalModel
    data, end = running.createData(), last.createData()
    running.calc(data, x, tau)
    running.calcDiff(data, x, tau)
    last.calc(end, x)
    partials = function(reach.robot, "forward_dynamics_partials")(q=q, v=v, tau=tau)
    dq, dv, dtau = (np.array(partials[k]) for k in ("ddv_dq", "ddv_dv", "ddv_dtau"))
    following = v + dt * np.array(function(reach.robot, "forward_dynamics")(q, v, tau)).ravel()
    one = np.eye(7)
    below = np.hstack([dt * dq, one + dt * dv])
    by_state = np.vstack([np.hstack([one, np.zeros((7, 7))]) + dt * below, below])
    squares = POSITION * np.sum((q - GOAL) ** 2) + SPEED * np.sum(v**2) + TORQUE * np.sum((tau / reach.rated) ** 2)
    ending = END_POSITION * np.sum((q - GOAL) ** 2) + END_SPEED * np.sum(v**2)
    return {
        "step": (data.xnext, np.concatenate([q + dt * following, following])),
        "step by state": (data.Fx, by_state),
        "step by torque": (data.Fu, np.vstack([dt * dt * dtau, dt * dtau])),
        "cost of a step": (data.cost, dt * squares / 2),
        "cost of the end": (end.cost, ending / 2),
    }


def _difference(got, want):
    return float(np.abs(np.asarray(got) - want).max() / np.abs(want).max())
