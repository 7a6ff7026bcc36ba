"""Methods that know forward and hybrid dynamics of order 0 alone, as those of any order are called, with friction."""

from .friction_terms import friction_terms
from .part_ports import symmetric


def _effort(given):
    terms = friction_terms(given.model.robot, given.v, given.friction)
    return given.T[0] - terms.torque, given.W and given.W[0], terms


def forward_partials(given, function):
    """[(by q, v, tau)] from function(model, q, v, tau, W, damping)."""
    tau, W, terms = _effort(given)
    return [function(given.model, given.q, given.v, tau, W, terms.damping)]


def forward_adjoint(given, lams, function):
    """(by q, v, tau) from function(model, q, v, tau, lam, W, terms)."""
    tau, W, terms = _effort(given)
    return function(given.model, given.q, given.v, tau, lams[0], W, terms)


def forward_hessian(given, lams, function):
    """H from function(model, q, v, tau, lam, W, terms) -> {("q", "q"): block, ("q", "v"), ("v", "v"), ("q", "tau")}."""
    tau, W, terms = _effort(given)
    H = function(given.model, given.q, given.v, tau, lams[0], W, terms)
    H = {(0, 0): H["q", "q"], (0, 1): H["q", "v"], (1, 1): H["v", "v"], (0, 2): H["q", "tau"]}
    return symmetric(H, 3, given.model.robot.nv)


def hybrid_partials(given, function):
    """([by q, v, dv_p, tau_f] of dv_f), ([the same] of tau_p), in lists for order 0, from function(model, q, v, a, tau,
    prescribed, W) -> {(what, by what): matrix}, which knows no friction."""
    tau, W, terms = _effort(given)
    p, f = list(given.prescribed), given.free
    found = function(given.model, given.q, given.v, given.A[0], tau, given.prescribed, W)
    if given.friction:  # torques that are left of tau_f depend on v; tau_p overcomes that of its joints
        for what in ("dv_f", "tau_p"):
            found[what, "v"] = found[what, "v"] - found[what, "tau_f"] @ terms.damping[f, :]
        found["tau_p", "v"] = found["tau_p", "v"] + terms.damping[p, :]
    return tuple([[found[what, by] for by in ("q", "v", "dv_p", "tau_f")]] for what in ("dv_f", "tau_p"))
