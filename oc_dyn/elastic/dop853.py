"""Explicit integration of order 8 with error control and dense output: the scheme DOP853 on CasADi Functions.

For smooth problems at tolerances down to rounding, where multistep solvers stop gaining. Source: Hairer, Norsett,
Wanner: Solving Ordinary Differential Equations I, 2nd edition 1993, sections II.4 to II.6 and appendix; the
coefficients are those of their program, by Dormand, Prince and the authors.
"""

import casadi as ca
import numpy as np

from ..errors import SolveError

# {column: coefficient}, one row a stage
# fmt: off
_STAGES = (
    {0: 0.05260015195876773},
    {0: 0.0197250569845379, 1: 0.0591751709536137},
    {0: 0.02958758547680685, 2: 0.08876275643042054},
    {0: 0.2413651341592667, 2: -0.8845494793282861, 3: 0.924834003261792},
    {0: 0.037037037037037035, 3: 0.17082860872947386, 4: 0.12546768756682242},
    {0: 0.037109375, 3: 0.17025221101954405, 4: 0.06021653898045596, 5: -0.017578125},
    {0: 0.03709200011850479, 3: 0.17038392571223998, 4: 0.10726203044637328, 5: -0.015319437748624402,
     6: 0.008273789163814023},
    {0: 0.6241109587160757, 3: -3.3608926294469414, 4: -0.868219346841726, 5: 27.59209969944671,
     6: 20.154067550477894, 7: -43.48988418106996},
    {0: 0.47766253643826434, 3: -2.4881146199716677, 4: -0.590290826836843, 5: 21.230051448181193,
     6: 15.279233632882423, 7: -33.28821096898486, 8: -0.020331201708508627},
    {0: -0.9371424300859873, 3: 5.186372428844064, 4: 1.0914373489967295, 5: -8.149787010746927,
     6: -18.52006565999696, 7: 22.739487099350505, 8: 2.4936055526796523, 9: -3.0467644718982196},
    {0: 2.273310147516538, 3: -10.53449546673725, 4: -2.0008720582248625, 5: -17.9589318631188,
     6: 27.94888452941996, 7: -2.8589982771350235, 8: -8.87285693353063, 9: 12.360567175794303,
     10: 0.6433927460157636},
)
_WEIGHTS = {
    0: 0.054293734116568765, 5: 4.450312892752409, 6: 1.8915178993145003, 7: -5.801203960010585,
    8: 0.3111643669578199, 9: -0.1521609496625161, 10: 0.20136540080403034, 11: 0.04471061572777259,
}
_MORE_STAGES = (
    {0: 0.056167502283047954, 6: 0.25350021021662483, 7: -0.2462390374708025, 8: -0.12419142326381637,
     9: 0.15329179827876568, 10: 0.00820105229563469, 11: 0.007567897660545699, 12: -0.008298},
    {0: 0.03183464816350214, 5: 0.028300909672366776, 6: 0.053541988307438566, 7: -0.05492374857139099,
     10: -0.00010834732869724932, 11: 0.0003825710908356584, 12: -0.00034046500868740456, 13: 0.1413124436746325},
    {0: -0.42889630158379194, 5: -4.697621415361164, 6: 7.683421196062599, 7: 4.06898981839711,
     8: 0.3567271874552811, 12: -0.0013990241651590145, 13: 2.9475147891527724, 14: -9.15095847217987},
)
_THIRD = {
    0: 0.2440944881889764, 8: 0.7338466882816118, 11: 0.022058823529411766,
}
_FIFTH = {
    0: 0.01312004499419488, 5: -1.2251564463762044, 6: -0.4957589496572502, 7: 1.6643771824549864,
    8: -0.35032884874997366, 9: 0.3341791187130175, 10: 0.08192320648511571, 11: -0.022355307863886294,
}
_INTERPOLATION = (
    {0: -8.428938276109013, 5: 0.5667149535193777, 6: -3.0689499459498917, 7: 2.38466765651207,
     8: 2.117034582445028, 9: -0.871391583777973, 10: 2.2404374302607883, 11: 0.6315787787694688,
     12: -0.08899033645133331, 13: 18.148505520854727, 14: -9.194632392478356, 15: -4.436036387594894},
    {0: 10.427508642579134, 5: 242.28349177525817, 6: 165.20045171727028, 7: -374.5467547226902,
     8: -22.113666853125306, 9: 7.733432668472264, 10: -30.674084731089398, 11: -9.332130526430229,
     12: 15.697238121770845, 13: -31.139403219565178, 14: -9.35292435884448, 15: 35.81684148639408},
    {0: 19.985053242002433, 5: -387.0373087493518, 6: -189.17813819516758, 7: 527.8081592054236,
     8: -11.57390253995963, 9: 6.8812326946963, 10: -1.0006050966910838, 11: 0.7777137798053443,
     12: -2.778205752353508, 13: -60.19669523126412, 14: 84.32040550667716, 15: 11.99229113618279},
    {0: -25.69393346270375, 5: -154.18974869023643, 6: -231.5293791760455, 7: 357.6391179106141,
     8: 93.40532418362432, 9: -37.45832313645163, 10: 104.0996495089623, 11: 29.8402934266605,
     12: -43.53345659001114, 13: 96.32455395918828, 14: -39.17726167561544, 15: -149.72683625798564},
)
# fmt: on
_NODES = (  # of all stages; the thirteenth is the end of the step, the last three serve the dense output
    *(0.0, 0.05260015195876773, 0.0789002279381516, 0.1183503419072274, 0.2816496580927726, 1 / 3, 0.25),
    *(0.3076923076923077, 0.6512820512820513, 0.6, 0.8571428571428571, 1.0, 1.0, 0.1, 0.2, 0.7777777777777778),
)

_SAFETY, _SLOWEST, _FASTEST = 0.9, 0.2, 10.0  # of the next step, as a factor of this one


def step_function(rhs):
    """casadi.Function (t, x, f, h, p) -> (x_next, f_next, stages): one step of rhs (t, x, p) -> dx; f is rhs at t."""
    t, h = ca.MX.sym("t"), ca.MX.sym("h")
    x, f, p = ca.MX.sym("x", rhs.size1_in(1)), ca.MX.sym("f", rhs.size1_in(1)), ca.MX.sym("p", rhs.size1_in(2))
    K = [f]
    for row, c in zip(_STAGES, _NODES[1:], strict=False):
        K.append(rhs(t + c * h, x + h * _combined(row, K), p))
    x_next = x + h * _combined(_WEIGHTS, K)
    f_next = rhs(t + h, x_next, p)
    return ca.Function("step", [t, x, f, h, p], [x_next, f_next, ca.horzcat(*K, f_next)])


def fixed_step(rhs, steps=1):
    """casadi.Function (t, x, h, p) -> x at t + h in so many equal steps, without error control; fit for C code."""
    t, h = ca.MX.sym("t"), ca.MX.sym("h")
    x, p = ca.MX.sym("x", rhs.size1_in(1)), ca.MX.sym("p", rhs.size1_in(2))
    X, part = x, h / steps
    for i in range(steps):
        K = []
        for row, c in zip(({}, *_STAGES), _NODES, strict=False):
            K.append(rhs(t + (i + c) * part, X + part * _combined(row, K) if row else X, p))
        X = X + part * _combined(_WEIGHTS, K)
    return ca.Function("fixed_step", [t, x, h, p], [X], ["t", "x", "h", "p"], ["x_next"])


def _dense_function(rhs):
    """casadi.Function (t, x, h, p, x_next, stages) -> coefficients (n, 7) of the polynomial over the step."""
    n = rhs.size1_in(1)
    t, h, p = ca.MX.sym("t"), ca.MX.sym("h"), ca.MX.sym("p", rhs.size1_in(2))
    x, x_next, stages = ca.MX.sym("x", n), ca.MX.sym("x_next", n), ca.MX.sym("K", n, 13)
    K = ca.horzsplit(stages)
    for row, c in zip(_MORE_STAGES, _NODES[13:], strict=True):
        K.append(rhs(t + c * h, x + h * _combined(row, K), p))
    moved = x_next - x
    F = [moved, h * K[0] - moved, 2 * moved - h * (K[12] + K[0]), *(h * _combined(row, K) for row in _INTERPOLATION)]
    return ca.Function("dense", [t, x, h, p, x_next, stages], [ca.horzcat(*F)])


def integrate(rhs, times, x0, p=(), rtol=1e-10, atol=1e-12, breaks=(), max_steps=1_000_000, fault=None):
    """States (n, len(times)) of x' = rhs(t, x, p) from x0 at times[0], and {"steps", "rejected", "evaluations"}.

    rhs: casadi.Function (t, x (n,), p) -> (n,). rtol, atol: bounds of the local error, atol a number or (n,), inf for
    components that are to follow the steps of the others. Between steps the solution is interpolated (order 7).
    breaks: times where rhs may not be smooth; steps end there. fault (t, x) -> str: what is wrong with a state, "" for
    nothing, asked after each step.
    Raises SolveError, with the states found so far as its `trajectory`, when the step becomes too small, or at a fault.
    """
    times, x = np.asarray(times, float), np.asarray(x0, float).ravel()
    step, dense = step_function(rhs), _dense_function(rhs)
    p = ca.DM(np.asarray(p, float).reshape(-1, 1)) if rhs.size1_in(2) else ca.DM(0, 1)
    stops = [*sorted(b for b in set(breaks) if times[0] < b < times[-1]), times[-1]]
    atol = np.broadcast_to(np.asarray(atol, float), x.shape)
    facts = {"steps": 0, "rejected": 0, "evaluations": 0}
    out = np.full((x.size, times.size), np.nan)
    out[:, times <= times[0]] = x[:, None]
    t, h = times[0], None
    for stop in stops:
        f = _array(rhs(t, x, p))
        h = _first_step(rhs, t, x, f, p, stop, rtol, atol) if h is None else h
        facts["evaluations"] += 2
        shortened = False
        while t < stop:
            if facts["steps"] + facts["rejected"] >= max_steps:
                raise SolveError(f"integration stopped at t = {t:.6g} after {max_steps} steps", "steps", trajectory=out)
            if not h > 10 * np.spacing(abs(t)):
                text = f"integration stopped at t = {t:.6g}: the step became smaller than times can be told apart"
                raise SolveError(text, "diverged", trajectory=out)
            last = t + h >= stop
            t_next = stop if last else t + h
            taken = t_next - t
            x_next, f_next, stages = step(t, x, f, taken, p)
            facts["evaluations"] += 12
            new, K = _array(x_next), stages.full()
            size = atol + rtol * np.maximum(np.abs(x), np.abs(new))
            error = _error(K, taken, size)
            if not error < 1:  # also when it is not a number
                facts["rejected"] += 1
                shortened = True
                h = taken * (max(_SLOWEST, _SAFETY * error**-0.125) if np.isfinite(error) else _SLOWEST)
                continue
            wrong = fault(t_next, new) if fault is not None else ""
            if wrong:
                raise SolveError(wrong, "diverged", trajectory=out)
            inside = (times > t) & (times <= t_next)
            if inside.any():
                out[:, inside] = _interpolated(
                    dense(t, x, taken, p, x_next, stages).full(), x, (times[inside] - t) / taken
                )
                facts["evaluations"] += 3
            grow = _FASTEST if error == 0 else min(_FASTEST, _SAFETY * error**-0.125)
            h = max(h, taken) if last and taken < h else taken * (min(1.0, grow) if shortened else grow)
            shortened = False
            t, x, f = t_next, new, _array(f_next)
            facts["steps"] += 1
    return out, facts


def _combined(row, K):
    terms = [c * K[i] for i, c in row.items()]
    out = terms[0]
    for term in terms[1:]:
        out = out + term
    return out


def _array(x):
    return x.full().ravel()


_FIFTH_ROW = np.array([_FIFTH.get(i, 0.0) for i in range(13)])
_THIRD_ROW = np.array([_WEIGHTS.get(i, 0.0) - _THIRD.get(i, 0.0) for i in range(13)])


def _error(K, h, size):
    """Estimated error of a step in units of what is allowed: that of order 5, damped by that of order 3."""
    fifth, third = (np.sum((K @ row / size) ** 2) for row in (_FIFTH_ROW, _THIRD_ROW))
    if fifth == 0 and third == 0:
        return 0.0
    return h * fifth / np.sqrt((fifth + 0.01 * third) * np.isfinite(size).sum())


def _interpolated(F, x, s):
    """States (n, len(s)) at shares s of a step: x + s (F0 + (1 - s) (F1 + s (F2 + (1 - s) (...))))."""
    y = np.zeros((x.size, s.size))
    for i in reversed(range(F.shape[1])):
        y = (y + F[:, i : i + 1]) * (s if i % 2 == 0 else 1 - s)
    return x[:, None] + y


def _first_step(rhs, t, x, f, p, stop, rtol, atol):
    """Length of the first step from the sizes of x, f and a difference of f."""
    size = atol + rtol * np.abs(x)

    def norm(y):
        return np.sqrt(np.sum((y / size) ** 2) / np.isfinite(size).sum())

    d0, d1 = norm(x), norm(f)
    h = min(1e-6 if min(d0, d1) < 1e-5 else 0.01 * d0 / d1, stop - t)
    d2 = norm(_array(rhs(t + h, x + h * f, p)) - f) / h
    largest = max(d1, d2)
    other = max(1e-6, 1e-3 * h) if largest <= 1e-15 else (0.01 / largest) ** 0.125
    return min(100 * h, other, stop - t)
