"""Second partials of forward dynamics by the algorithm FDSVA-SO, as calls of the algorithms it is put together from."""

from dataclasses import replace

import casadi as ca

from ..forward_dynamics.mass_solver import articulated
from ..inverse_dynamics.taylor import taylor as inverse_dynamics
from ..model.cache import cached
from ..partials.implicit import inverse, mass_solver
from ..partials.spatial_vector import idsva
from ..registry import method
from .spatial_vector import CANNOT, spatial_vector
from .tensor import swapped

_NO_MIMIC = CANNOT | {"mimic": "its recursion needs joints that move independently"}


def _registered(name, terms, cannot):
    return method(
        "forward_dynamics_second_partials",
        name,
        kind="analytic",
        source=f"Singh et al. 2023, section VI (FDSVA-SO): {terms}",
        cannot=cannot,
        regroup=True,
        graph="mx",
    )


@_registered("spatial_vector", "inner and outer term by DTM", CANNOT)
def direct(model, order, q, v, T, W=None):
    """[(d2dv_dqdq, d2dv_dvdv, d2dv_dqdv, dMinv_dq, Minv)]; see od.describe("forward_dynamics_second_partials").

    Both terms by products of matrices.
    """
    return fdsva_so(model, q, v, T[0], W, idfoza=False, aza=False)


@_registered("spatial_vector_idfoza", "inner term by IDFOZA, outer by DTM", CANNOT)
def idfoza(model, order, q, v, T, W=None):
    """[(d2dv_dqdq, d2dv_dvdv, d2dv_dqdv, dMinv_dq, Minv)]; see od.describe("forward_dynamics_second_partials").

    Inner term by first partials at rest.
    """
    return fdsva_so(model, q, v, T[0], W, idfoza=True, aza=False)


@_registered("spatial_vector_aza", "inner term by DTM, outer by AZA", _NO_MIMIC)
def aza(model, order, q, v, T, W=None):
    """[(d2dv_dqdq, d2dv_dvdv, d2dv_dqdv, dMinv_dq, Minv)]; see od.describe("forward_dynamics_second_partials").

    Outer term by articulated bodies.
    """
    return fdsva_so(model, q, v, T[0], W, idfoza=False, aza=True)


@_registered("spatial_vector_idfoza_aza", "inner term by IDFOZA, outer by AZA", _NO_MIMIC)
def idfoza_aza(model, order, q, v, T, W=None):
    """[(d2dv_dqdq, d2dv_dvdv, d2dv_dqdv, dMinv_dq, Minv)]; see od.describe("forward_dynamics_second_partials").

    Both terms by recursions at rest.
    """
    return fdsva_so(model, q, v, T[0], W, idfoza=True, aza=True)


def fdsva_so(model, q, v, tau, W, idfoza, aza, cut=lambda f: f):
    """Figure 13 of the paper: inverse dynamics above, forward dynamics below. cut: applied to the Functions called.

    Deviations: M^-1 and dv by factors of M, which also do mimic joints, where the paper has articulated bodies.
    """
    nv = model.robot.nv
    applied = W or []
    key = ("fdsva", model, W is not None)  # complete: the model does not change, and one robot may have several
    first, second = map(cut, cached(model.robot, key, lambda: (_first_order(model, W), _inverse_second(model, W))))
    dv, Minv, dv_q, dv_v = first(q, v, tau, *applied)
    qq, vv, qv, dM = second(q, v, dv, *applied)
    if idfoza:  # (52)
        at_rest = cut(_mass_partials(model)).map(nv)
        by_q, by_v = (at_rest(ca.repmat(q, 1, nv), x) for x in (dv_q, dv_v))  # (i, k) of column j, side by side
        by_q, by_v = (ca.vertcat(*ca.horzsplit(x, nv)) for x in (by_q, by_v))  # (i, j, k)
    else:
        by_q, by_v = (_times(dM, x) for x in (dv_q, dv_v))
    if aza:  # (50)
        solve = cut(_articulated(model)).map(nv * nv)

        def outer(inner):
            columns = ca.reshape(ca.densify(inner), nv, nv * nv)
            return ca.reshape(-solve(ca.repmat(q, 1, nv * nv), columns), nv * nv, nv)
    else:

        def outer(inner):
            return ca.reshape(-Minv @ ca.reshape(inner, nv, nv * nv), nv * nv, nv)

    d2dv_dqdq = outer(qq + by_q + swapped(by_q))  # (46)
    d2dv_dvdv = outer(vv)  # (47)
    d2dv_dqdv = outer(qv + swapped(by_v))  # (49)
    dMinv_dq = outer(_times(dM, Minv))  # (44)
    return [(d2dv_dqdq, d2dv_dvdv, d2dv_dqdv, dMinv_dq, Minv)]


def _times(dM, x):
    """dM/dq x: (i, j, k) is the sum over m of dM_im/dq_k x_mj. (nv nv, nv) -> (nv nv, nv)."""
    nv = x.shape[0]
    pages = [ca.reshape(page, nv, nv) @ x for page in ca.horzsplit(dM, 1)]
    return ca.horzcat(*(ca.vec(page) for page in pages))


def _symbols(model, W, *names):
    sizes = {"q": model.robot.nq}
    symbols = [ca.SX.sym(name, sizes.get(name, model.robot.nv)) for name in names]
    return symbols, [ca.SX.sym("W", *w.shape) for w in W or []]


def _first_order(model, W):
    """casadi.Function (q, v, tau[, W]) -> (dv, Minv, ddv_dq, ddv_dv), eq. 45."""
    (q, v, tau), applied = _symbols(model, W, "q", "v", "tau")
    rest = ca.DM.zeros(model.robot.nv)
    solve = mass_solver(idsva(model, q, rest, rest)[2])
    dv = solve(tau - inverse_dynamics(model, 0, q, [v, rest], applied or None)[0])
    by_q, by_v, _ = idsva(model, q, v, dv, applied[0] if applied else None)
    outputs = [dv, inverse(solve, model.robot.nv), -solve(by_q), -solve(by_v)]
    return ca.Function("fdsva", [q, v, tau, *applied], [ca.densify(x) for x in outputs], {"cse": True})


def _inverse_second(model, W):
    (q, v, dv), applied = _symbols(model, W, "q", "v", "dv")
    outputs = spatial_vector(model, 0, q, [v, dv], applied or None)[0]
    return ca.Function("idsva_so", [q, v, dv, *applied], list(outputs), {"cse": True})


def _mass_partials(model):
    """casadi.Function (q, b) -> dM/dq b, (i, k): first partials at rest without gravity, eq. 52."""
    (q, b), _ = _symbols(model, None, "q", "b")
    rest = ca.DM.zeros(model.robot.nv)
    by_q = idsva(replace(model, gravity=ca.DM.zeros(3)), q, rest, b)[0]
    return ca.Function("idfoza", [q, b], [ca.densify(by_q)], {"cse": True})


def _articulated(model):
    """casadi.Function (q, b) -> M^-1 b."""
    (q, b), _ = _symbols(model, None, "q", "b")
    return ca.Function("aza", [q, b], [articulated(model, q)(b)], {"cse": True})
