"""Random scalar programs: Functions of all instructions, ports of any shape and sparsity, numbers of all kinds."""

import casadi as ca
import numpy as np

from ..codegen import batch
from ..codegen.lanes import WORDS

BINARY = set("ADD SUB MUL DIV POW LT LE EQ NE AND OR FMOD COPYSIGN FMIN FMAX ATAN2 HYPOT REMAINDER LIFT IF".split())
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 5e-324, 1e300, -1e-300, 65536.5, 1e22, np.pi / 2)


def program(seed):
    """casadi.Function of random instructions, up to 3000 of them."""
    rng = np.random.default_rng(seed)
    inputs = [ca.SX.sym(f"x{i}", _sparsity(rng)) for i in range(rng.integers(1, 4))]
    pool = [x for port in inputs for x in ca.SX(ca.Sparsity.dense(port.nnz()), port.nz[:]).nz[:].elements()]
    pool += [ca.SX(float(x)) for x in (*rng.normal(size=3), rng.choice(SPECIAL))]
    first = len(pool)
    ops = list(WORDS.items())
    for _ in range(int(10 ** rng.uniform(0.5, 3.5))):
        op, word = ops[rng.integers(len(ops))]
        x = pool[rng.integers(max(0, len(pool) - 60), len(pool))]  # of the last: long chains
        y = pool[rng.integers(first if rng.random() < 0.5 else len(pool))]
        if rng.random() < 0.3:
            x, y = y, x
        if word == "COPYSIGN":
            y = ca.fmin(y, 1.0)  # the sign of NaN is nobody's
        pool.append(ca.SX.binary(op, x, y) if word in BINARY else ca.SX.unary(op, x))
    outputs = []
    for _ in range(rng.integers(1, 4)):
        pattern = _sparsity(rng, 16)
        chosen = [pool[k] for k in rng.integers(0, len(pool), pattern.nnz())]
        outputs.append(ca.SX(pattern, ca.vertcat(*chosen)) if chosen else ca.SX(*pattern.shape))
    return ca.Function(f"program{seed}", inputs, outputs)


def _sparsity(rng, most=6):
    rows, columns = (int(n) for n in rng.integers(0 if rng.random() < 0.1 else 1, most, 2))
    if rng.random() < 0.5:
        return ca.Sparsity.dense(rows, columns)
    places = np.argwhere(rng.random((rows, columns)) < 0.6)
    return ca.Sparsity.triplet(rows, columns, places[:, 0].tolist(), places[:, 1].tolist())


def numbers(function, points, seed=0):
    """[(rows, columns*points)] for the ports, one number in twenty a special one, in random layouts."""
    rng, out = np.random.default_rng(seed), []
    for i in range(function.n_in()):
        rows, columns = function.size_in(i)
        x = rng.normal(size=(rows, columns * points)) * 10 ** rng.uniform(-2, 2)
        special = rng.random(x.shape) < 0.05
        x[special] = rng.choice(SPECIAL, special.sum())
        way = rng.integers(4)
        if way == 1:
            x = np.asfortranarray(x)
        elif way == 2:
            x = np.repeat(x, 2, axis=1)[:, ::2]
        elif way == 3:
            x = np.asfortranarray(x[::-1, ::-1])[::-1, ::-1]
        out.append(x)
    return out


def one_by_one(function, given, points):
    """What CasADi's virtual machine gives, point by point: [(rows, columns*points)]."""
    columns = [function.size2_in(i) for i in range(function.n_in())]
    calls = [
        function.call([ca.DM(x[:, k * n : (k + 1) * n]) for x, n in zip(given, columns, strict=True)])
        for k in range(points)
    ]
    return [np.hstack([np.array(ca.densify(call[i])) for call in calls]) for i in range(function.n_out())]


def same_bits(x, y):
    """Where two arrays hold the same number: sign of zero included, NaN like NaN."""
    return (x.view(np.int64) == y.view(np.int64)) | (np.isnan(x) & np.isnan(y))


def errors_of_functions(count):
    """Rows (function, range, largest error of od.batch, of the C library, largest distance of the two) of what od.batch
    does not leave to the library, in units of the last place; errors are against long double, and empty where that is
    no longer than double. count: numbers of a range."""
    x, rng = ca.SX.sym("x"), np.random.default_rng(0)
    near = rng.integers(-41_000, 41_000, count) * (np.pi / 2)
    angles = {
        "to pi/4": rng.uniform(-np.pi / 4, np.pi / 4, count),
        "to 7": rng.uniform(-7, 7, count),
        "to 65536": rng.uniform(-65536, 65536, count),
        "3 ulp around multiples of pi/2": near + rng.integers(-3, 4, count) * np.spacing(near),
        "1e-300 to 1e4, logarithmic": 10 ** rng.uniform(-300, 4, count),
    }
    sizes = {"to 1": rng.uniform(-1, 1, count), "to 23": rng.uniform(-23, 23, count)}
    sizes["1e-300 to 1e3, logarithmic"] = 10 ** rng.uniform(-300, 3, count)
    rows = []
    for name, ranges in (("sin", angles), ("cos", angles), ("tanh", sizes)):
        run = batch(ca.Function(name, [x], [getattr(ca, name)(x)]), fallback=False)
        for title, numbers_ in ranges.items():
            ours, usual = run(numbers_[None])[0], getattr(ca, name)(ca.DM(numbers_)).full()[:, 0]
            exact = getattr(np, name)(numbers_.astype(np.longdouble))
            longer = np.finfo(np.longdouble).eps < 1e-18
            errors = [f"{_ulps(y, exact):.3f}" if longer else "" for y in (ours, usual)]
            rows.append((name, title, *errors, f"{_ulps(ours, usual):.0f}"))
    return rows


def _ulps(x, exact):
    return float(np.max(np.abs(x - exact) / np.spacing(np.abs(exact.astype(float)))))
