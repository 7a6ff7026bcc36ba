"""Second partials by numerical differentiation: finite differences of values or of first partials, bicomplex steps."""

import casadi as ca

from ..forward_dynamics.taylor import taylor as forward_dynamics
from ..inverse_dynamics.taylor import taylor as inverse_dynamics
from ..partials.order_by_order import Given
from ..registry import choose, method
from .differences import from_bicomplex, from_first_partials, from_values
from .tensor import pattern

FIRST_STEP = 3e-4  # [rad, m, ...]; the paper's figure 21: best between 1e-4 and 1e-3
SECOND_STEP = 1e-5  # figure 23
BICOMPLEX_STEP = 1e-20
_APPENDIX = "Singh et al. 2023, appendix A"


def _registered(name, source, **facts):
    """Decorator: a method of inverse and, with the same letters, of forward dynamics."""

    def register(function):
        def inverse(model, order, q, V, W=None):
            return [function(model, False, q, V[0], V[1], W, pattern(model))]

        def forward(model, order, q, v, T, W=None):
            every = ca.Sparsity.dense(model.robot.nv**2, model.robot.nv)
            return [(*function(model, True, q, v, T[0], W, every), _mass_inverse(model, W)(q, v, T[0], *(W or [])))]

        inverse.__doc__ = "[(d2tau_dqdq, d2tau_dvdv, d2tau_dqdv, dM_dq)]"
        forward.__doc__ = "[(d2dv_dqdq, d2dv_dvdv, d2dv_dqdv, dMinv_dq, Minv)]"
        for what, f in (("inverse", inverse), ("forward", forward)):
            quantity = f"{what}_dynamics_second_partials"
            f.__doc__ += f'; see od.describe("{quantity}"). {function.__doc__}'
            method(quantity, name, kind="numeric", source=source, regroup=True, graph="mx", **facts)(f)
        return function

    return register


@_registered("finite_difference_1", f"{_APPENDIX}, eqs. 55 and 56: central differences of the dynamics", tolerance=1e-5)
def finite_difference_1(model, forward, q, v, x, W, places, step=FIRST_STEP):
    """Central differences of the method taylor."""
    return from_values(dynamics(model, forward, W), model, q, v, x, W, step, places)  # (55), (56)


@_registered("finite_difference_2", f"{_APPENDIX}, eq. 57: central differences of first partials", tolerance=1e-7)
def finite_difference_2(model, forward, q, v, x, W, places, step=SECOND_STEP):
    """Central differences of the default method's first partials."""
    return from_first_partials(first_partials(model, forward, W), model, q, v, x, W, step, places)  # (57)


@_registered("bicomplex", f"{_APPENDIX}, eq. 54; Lantoine, Russell and Dargent 2012")
def bicomplex(model, forward, q, v, x, W, places, step=BICOMPLEX_STEP):
    """Bicomplex steps of the method taylor: exact to rounding."""
    return from_bicomplex(dynamics(model, forward, W), model, q, v, x, W, step, places)  # (54)


def _symbols(model, W):
    """SX symbols q, v, x and, if there are applied wrenches, [W]."""
    nv = model.robot.nv
    q, v, x = (ca.SX.sym(name, size) for name, size in (("q", model.robot.nq), ("v", nv), ("x", nv)))
    return (q, v, x), [ca.SX.sym("W", *w.shape) for w in W or []]


def dynamics(model, forward, W):
    """casadi.Function (q, v, x[, W]) -> torques or accelerations."""
    (q, v, x), applied = _symbols(model, W)
    if forward:
        y = forward_dynamics(model, 0, q, v, [x], applied or None)[0]
    else:
        y = inverse_dynamics(model, 0, q, [v, x], applied or None)[0]
    return ca.Function("dynamics", [q, v, x, *applied], [ca.densify(y)], {"cse": True})


def first_partials(model, forward, W):
    """casadi.Function (q, v, x[, W]) -> (nv nv, 3): partials by q, v and x, by their default method."""
    (q, v, x), applied = _symbols(model, W)
    quantity = f"{'forward' if forward else 'inverse'}_dynamics_partials"
    partials = choose(quantity, model.robot, 0).function
    if forward:
        result = partials(Given(model, 0, q, v, [ca.DM.zeros(*v.shape)], [x], (), applied or None, False))[0]
    else:
        result = partials(model, 0, q, [v, x], applied or None)[0]
    columns = ca.horzcat(*(ca.vec(ca.densify(y)) for y in result[:3]))
    return ca.Function("partials", [q, v, x, *applied], [columns], {"cse": True})


def _mass_inverse(model, W):
    """casadi.Function (q, v, tau[, W]) -> M^-1."""
    (q, v, x), applied = _symbols(model, W)
    Minv = ca.reshape(first_partials(model, True, W)(q, v, x, *applied)[:, 2], model.robot.nv, model.robot.nv)
    return ca.Function("mass_inverse", [q, v, x, *applied], [Minv])
