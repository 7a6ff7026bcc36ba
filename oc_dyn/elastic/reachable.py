"""What springs can do along a motion: which one cannot give the torque asked for, and how fast they swing."""

import casadi as ca
import numpy as np

from ..errors import LimitError
from ..function import function
from ..loops.joint_motion import joint_matrix
from .drives import at_drives, drive_torques
from .springs import LinearSpring


def refusal(elastic, motion, theta, t=None):
    """The error of the first spring whose deflection is not a number along a motion; None if all are.

    motion: {"q", "v", "dv" (n, K), "sigma" (sigma, K) where the stiffness varies}; theta (theta, K) by the flat map of
    it; t (K,) [s] times, for the message.
    """
    bad = np.argwhere(~np.isfinite(theta.T))
    if not len(bad) or not all(np.isfinite(motion[n]).all() for n in ("q", "v", "dv")):
        return None
    k, row = bad[0]
    j = next(j for j in elastic.joints if row in j.theta)
    where = f"joint {j.name!r}" + ("" if t is None else f" at t = {t[k]:.6g} s")
    if elastic.across is not None:
        what = "no positions of the motors, by the springs across joints, give the torques that are needed"
        return LimitError(f"{elastic.name}: {where}: {what}, or they were not found")
    if elastic.coupling:
        return LimitError(f"{elastic.name}: {where}: the spring has no deflection for the torque that is needed")
    tau = drive_torques(elastic)(*(ca.DM(motion[n][:, k]) for n in ("q", "v", "dv")))
    sigma = [float(motion["sigma"][j.sigma, k])] if j.sigma is not None else []
    error = j.spring.refusal(float(tau[j.v]), sigma)
    if error is None:
        return LimitError(f"{elastic.name}: {where}: the spring has no deflection for the torque that is needed")
    return type(error)(f"{elastic.name}: {where}: {error}")


def refusal_along(elastic, reference, times):
    """As refusal, along a Reference at some times."""
    if all(isinstance(j.spring, LinearSpring) for j in elastic.joints):
        return None
    f = function(elastic.undamped(), "elastic_flat_map")
    at = reference.at(times)
    if any(n not in at for n in f.name_in()):
        return None
    theta = f.map(len(times))(**{n: at[n] for n in f.name_in()})["theta"].full()
    return refusal(elastic, at, theta, times)


def fastest(elastic, x, sigma):
    """(frequency [rad/s], motor) of the springs' fastest swing at a state {"q", "theta", ...} and sigma (sigma,)."""
    rows = [j.v for j in elastic.joints for _ in j.theta]
    M = function(elastic.links, "mass_matrix")(x["q"]).full()
    A = joint_matrix(elastic.links, elastic.drives)(x["q"]).full() if elastic.drives else np.eye(elastic.nv)
    compliance = (A @ np.linalg.inv(M) @ A.T)[np.ix_(rows, rows)] + np.linalg.inv(elastic.motor_inertia)
    z, s = ca.SX.sym("z", len(rows)), ca.SX.sym("s", len(elastic.sigma_names))
    torques = [
        t
        for j in elastic.joints
        for t in j.spring.torques([z[m] for m in j.theta], s[j.sigma] if j.spring.adjusted else ca.DM(0, 1))
    ]
    slope = ca.Function("slope", [z, s], [ca.diag(ca.jacobian(ca.vertcat(*torques), z))])
    position = np.array(at_drives(elastic, [ca.DM(x["q"])])[0])
    deflection = np.ravel(x["theta"]) - np.ravel(position)[[j.q for j in elastic.joints for _ in j.theta]]
    stiffness = np.diag(np.maximum(slope(deflection, sigma).full().ravel(), 0.0))
    if elastic.across is not None:
        stiffness = stiffness + _between_motors(elastic.across, position, x["theta"])
    values, axes = np.linalg.eigh(stiffness)
    root = axes @ np.diag(np.sqrt(np.maximum(values, 0.0))) @ axes.T
    squares, modes = np.linalg.eigh(root @ compliance @ root)
    k = int(np.argmax(np.abs(modes[:, -1])))
    return float(np.sqrt(max(squares[-1], 0.0))), elastic.theta_names[k]


def _between_motors(across, position, theta):
    """(theta, theta) stiffness that motors feel through springs across joints."""
    x, t = (ca.SX.sym("x", across.energy.size1_in(k)) for k in (0, 1))
    f = ca.Function("stiffness", [x, t], [ca.hessian(across.energy(x, t), t)[0]])
    return f(np.ravel(position)[list(across.q)], np.ravel(theta)).full()
