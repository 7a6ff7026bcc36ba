"""The closed loop of mim_solvers' CSQP, run by the Python that has it; see peer.py. It needs no oc_dyn.

Reads a task as JSON from its input, prints {"versions", "loops"}: of every way the columns x, u, seconds, iterations,
objective, violation.
"""

import json
import sys
import time

import numpy as np

PATHS, AGREE = ("articulated body", "mass matrix"), 1e-9  # of the action model; largest relative difference


def main():
    """Solve what the input asks for."""
    import crocoddyl
    import pinocchio as pin

    task = json.load(sys.stdin)
    model = built(pin, task["bodies"])
    for path in PATHS:  # through the mass matrix where the first is wrong, see shooting
        task["path"] = path
        worst = checked(pin, crocoddyl, model, task)
        if worst < AGREE:
            break
    loops = [closed_loop(pin, crocoddyl, model, task, way) for way in task["ways"]]
    print(json.dumps({"versions": versions(), "path": path, "acceleration": worst, "loops": loops}))


def versions():
    """{wheel: version}."""
    from importlib.metadata import version

    return {name: version(name) for name in ("mim-solvers", "crocoddyl", "pin")}


def built(pin, bodies):
    """pinocchio.Model of hinges, from their placements and inertias."""
    model = pin.Model()
    kinds = (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ)
    for b in bodies:
        placement = pin.SE3(np.array(b["rotation"]), np.array(b["translation"]))
        number = model.addJoint(b["parent"], kinds[int(np.argmax(b["axis"]))](), placement, b["name"])
        inertia = pin.Inertia(b["mass"], np.array(b["com"]), np.array(b["tensor"]))
        model.appendBodyToJoint(number, inertia, pin.SE3.Identity())
    return model


def shooting(pin, crocoddyl, model, task):
    """(ShootingProblem, residuals of state by node): the program of tracking.py with torques as controls.

    An armature of zeros makes the action model go through the mass matrix: with Crocoddyl 3.2.1 beside Pinocchio 4.1.0
    its own way leaves gravity out.
    """
    state = crocoddyl.StateMultibody(model)
    actuation, n, h = crocoddyl.ActuationModelFull(state), model.nv, task["h"]
    most, speed = np.array(task["torque"]), task["speed"]
    home = np.concatenate([task["home"], np.zeros(n)])
    tracked, models = [], []
    for k in range(task["nodes"] + 1):
        last = k == task["nodes"]
        costs = crocoddyl.CostModelSum(state, n)
        position, rate = (20.0, 2.0) if last else (2 / h, 2 / h / 100)  # half of the squares, times h
        weights = crocoddyl.ActivationModelWeightedQuad(np.repeat([position, rate], n))
        tracked.append(crocoddyl.ResidualModelState(state, home, n))
        costs.addCost("state", crocoddyl.CostModelResidual(state, weights, tracked[-1]), 1.0)
        limits = crocoddyl.ConstraintModelManager(state, n)
        if not last:
            weights = crocoddyl.ActivationModelWeightedQuad(2 / h / (10 * most) ** 2)
            torque = crocoddyl.ResidualModelControl(state, n)
            costs.addCost("torque", crocoddyl.CostModelResidual(state, weights, torque), 1.0)
            limits.addConstraint("torque", crocoddyl.ConstraintModelResidual(state, torque, -most, most))
        if k:
            wide = np.concatenate([np.full(n, np.inf), np.full(n, speed)])
            rates = crocoddyl.ResidualModelState(state, np.zeros(2 * n), n)
            limits.addConstraint("speed", crocoddyl.ConstraintModelResidual(state, rates, -wide, wide))
        dynamics = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs, limits)
        if task["path"] == PATHS[1]:
            dynamics.armature = np.zeros(n)
        models.append(crocoddyl.IntegratedActionModelEuler(dynamics, 0.0 if last else h))
    problem = crocoddyl.ShootingProblem(home, models[:-1], models[-1])
    problem.nthreads = 1
    return problem, tracked


def checked(pin, crocoddyl, model, task):
    """Largest relative difference of the action model's acceleration from Pinocchio's articulated-body algorithm."""
    problem, _ = shooting(pin, crocoddyl, model, task)
    action, rng, worst, n = problem.runningModels[0].differential, np.random.default_rng(0), 0.0, model.nv
    data, own = action.createData(), model.createData()
    for _ in range(20):
        q, v, tau = rng.uniform(-1, 1, (3, n))
        action.calc(data, np.concatenate([q, v]), 10 * tau)
        wanted = pin.aba(model, own, q, v, 10 * tau)
        worst = max(worst, float(np.abs(data.xout - wanted).max() / np.abs(wanted).max()))
    return worst


def solver_of(problem, way):
    """SolverCSQP with the options of a way."""
    import mim_solvers

    solver = mim_solvers.SolverCSQP(problem)
    solver.with_callbacks = False
    for name, value in way["options"].items():
        setattr(solver, name, value)
    return solver


def closed_loop(pin, crocoddyl, model, task, way):
    """Columns of one loop."""
    problem, tracked = shooting(pin, crocoddyl, model, task)
    solver, n, data = solver_of(problem, way), model.nv, model.createData()
    x = np.array(task["x"])
    holding = pin.computeGeneralizedGravity(model, data, x[:n])
    xs, us, shift = [x.copy()] * (task["nodes"] + 1), [holding] * task["nodes"], task["shift"]
    rows = {k: [] for k in ("x", "u", "seconds", "iterations", "objective", "violation")}
    for k in range(task["steps"]):
        for residual, r in zip(tracked, task["targets"][k : k + task["stride"] * len(tracked) : task["stride"]]):  # noqa: B905, the same length
            residual.reference = np.concatenate([r, np.zeros(n)])
        problem.x0 = x
        xs[0] = x
        begun = time.thread_time()
        solver.solve(xs, us, way["iterations"], False)
        seconds = time.thread_time() - begun
        found_x, found_u = [np.array(y) for y in solver.xs], [np.array(y) for y in solver.us]
        rows["x"].append(x.tolist())
        rows["u"].append(found_u[0].tolist())
        rows["seconds"].append(seconds)
        rows["iterations"].append(int(solver.iter))
        rows["objective"].append(float(problem.calc(found_x, found_u)))
        rows["violation"].append(violation(problem, task, found_x, found_u))
        xs = [*found_x[shift:], *found_x[-1:] * shift]
        us = [*found_u[shift:], *found_u[-1:] * shift]
        x = after(pin, model, data, x, np.clip(found_u[0], -np.array(task["torque"]), task["torque"]), task["period"])
    return {"name": way["name"], **rows}


def violation(problem, task, xs, us):
    """Largest of: shares of torque and speed beyond 1, gaps of the dynamics."""
    n = len(task["torque"])
    torque = np.abs(np.array(us) / task["torque"]).max() - 1
    speed = np.abs(np.array(xs)[1:, n:]).max() / task["speed"] - 1
    gaps = max(
        float(np.abs(data.xnext - y).max())
        for data, y in zip(problem.runningDatas, xs[1:])  # noqa: B905, the same length
    )
    return float(max(0.0, torque, speed, gaps))


def after(pin, model, data, x, tau, h):
    """State after h [s], tau held: the classical method of Runge and Kutta, four steps."""
    n, step = len(tau), h / 4

    def rate(y):
        return np.concatenate([y[n:], pin.aba(model, data, y[:n], y[n:], tau)])

    for _ in range(4):
        a = rate(x)
        b = rate(x + step / 2 * a)
        c = rate(x + step / 2 * b)
        x = x + step / 6 * (a + 2 * b + 2 * c + rate(x + step * c))
    return x


if __name__ == "__main__":
    main()
