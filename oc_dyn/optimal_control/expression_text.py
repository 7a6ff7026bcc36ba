"""Expressions of casadi.MX as one line of mathematics, such as "u - 9.81*sin(x[0])": for messages and descriptions."""

import casadi as ca
import numpy as np

_SUM, _PRODUCT, _NEGATIVE, _POWER, _ATOM = range(5)  # how tightly the parts of a text hold together
_INFIX = {
    ca.OP_ADD: (" + ", _SUM), ca.OP_SUB: (" - ", _SUM), ca.OP_MUL: ("*", _PRODUCT), ca.OP_DIV: ("/", _PRODUCT),
    ca.OP_LT: (" < ", _SUM), ca.OP_LE: (" <= ", _SUM), ca.OP_EQ: (" == ", _SUM), ca.OP_NE: (" != ", _SUM),
    ca.OP_AND: (" and ", _SUM), ca.OP_OR: (" or ", _SUM), ca.OP_POW: ("^", _POWER), ca.OP_CONSTPOW: ("^", _POWER),
}  # fmt: skip
_NAMED = {
    getattr(ca, f"OP_{name.upper()}", name): text
    for name, text in {
        "exp": "exp", "log": "log", "sqrt": "sqrt", "sin": "sin", "cos": "cos", "tan": "tan", "asin": "asin",
        "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asinh": "asinh",
        "acosh": "acosh", "atanh": "atanh", "fabs": "abs", "sign": "sign", "floor": "floor", "ceil": "ceil",
        "fmin": "min", "fmax": "max", "fmod": "fmod", "atan2": "atan2", "erf": "erf", "not": "not", "dot": "dot",
        "norm2": "norm", "normf": "norm", "norm1": "norm_1", "norminf": "norm_inf", "mmin": "min", "mmax": "max",
        "log1p": "log1p", "expm1": "expm1", "hypot": "hypot", "copysign": "copysign", "if_else_zero": "where",
        "determinant": "det", "inverse": "inv", "logsumexp": "logsumexp",
    }.items()
}  # fmt: skip
_ELEMENTWISE = (  # of one argument
    ca.OP_NEG, ca.OP_SQ, ca.OP_TWICE, ca.OP_INV, ca.OP_SIN, ca.OP_COS, ca.OP_TAN, ca.OP_EXP, ca.OP_LOG, ca.OP_SQRT,
    ca.OP_FABS, ca.OP_TANH, ca.OP_ATAN, ca.OP_SINH, ca.OP_COSH, ca.OP_FMIN, ca.OP_FMAX,
)  # fmt: skip
_SAME = tuple(
    getattr(ca, f"OP_{name}", None) for name in ("RESHAPE", "SPARSITY_CAST", "PROJECT", "ASSIGN", "LIFT", "MONITOR")
)


class _TooLong(Exception):
    """A text that nobody would read, or an operation that has no name."""


def expression_text(expression, most=80, named=None):
    """One line for an expression: operations written out, Functions by their names with their arguments; f(x, u) of the
    symbols that it reads where it would be longer than `most` characters. named: {hash of an expression: its name}."""
    expression = ca.MX(expression)
    try:
        return _text(expression, most, named or {})[0]
    except _TooLong:
        return summary(expression)


def summary(expression):
    """f(x, u) of the symbols that an expression reads."""
    return f"f({', '.join(s.name() for s in ca.symvar(expression))})"


def _text(x, most, named):
    """(text, how tightly it holds together) of an expression."""
    out = (named[x.__hash__()], _ATOM) if x.__hash__() in named else _written(x, most, named)
    if len(out[0]) > most:
        raise _TooLong
    return out


def _written(x, most, named):
    if x.is_symbolic():
        return x.name(), _ATOM
    if x.is_constant():
        return _constant(x)
    if x.is_output():
        return _result(x, most, named)
    if x.op() == ca.OP_GETNONZEROS:
        return _elements(x, most, named)
    return _operation(x, [_text(x.dep(i), most, named) for i in range(x.n_dep())])


def _operation(x, parts):
    """The same of an operation, from the texts of what it reads."""
    op = x.op()
    if op in _INFIX:
        return _infix(op, *parts)
    if op in _NAMED:
        if op == ca.OP_DOT and parts[0] == parts[1]:
            return f"sumsqr({parts[0][0]})", _ATOM
        return f"{_NAMED[op]}({', '.join(p[0] for p in parts)})", _ATOM
    if op in _SAME:
        return parts[0]
    return _other(op, x, parts)


def _other(op, x, parts):
    """Operations with a form of their own."""
    if op == ca.OP_NEG:
        return f"-{_inside(parts[0], _PRODUCT)}", _NEGATIVE
    if op == ca.OP_SQ:
        return f"{_inside(parts[0], _ATOM)}^2", _POWER
    if op == ca.OP_TWICE:
        return f"2*{_inside(parts[0], _PRODUCT)}", _PRODUCT
    if op == ca.OP_INV:
        return f"1/{_inside(parts[0], _POWER)}", _PRODUCT
    if op == ca.OP_TRANSPOSE:
        return f"{_inside(parts[0], _ATOM)}'", _ATOM
    if op in (ca.OP_VERTCAT, ca.OP_HORZCAT):
        return f"[{(', ' if op == ca.OP_VERTCAT else '; ').join(p[0] for p in parts)}]", _ATOM
    if op == ca.OP_MTIMES:
        return _product_of_matrices(x, parts)
    if op == ca.OP_SOLVE:
        return f"solve({parts[1][0]}, {parts[0][0]})", _ATOM
    raise _TooLong


def _product_of_matrices(x, parts):
    first = x.dep(1)
    if first.is_constant() and first.numel() > 1 and np.all(first.to_DM().full() == 1) and first.size1() == 1:
        product = f"sum({parts[2][0]})", _ATOM
    else:
        product = f"{_inside(parts[1], _PRODUCT)} @ {_inside(parts[2], _POWER)}", _PRODUCT
    added = x.dep(0)
    if added.is_constant() and not np.any(added.to_DM().full()):
        return product
    return f"{parts[0][0]} + {product[0]}", _SUM


def _infix(op, a, b):
    text, level = _INFIX[op]
    if op == ca.OP_MUL and a[0] in ("1", "-1"):
        return b if a[0] == "1" else (f"-{_inside(b, _PRODUCT)}", _NEGATIVE)
    if op == ca.OP_MUL and (power := _power_of(*a, b[0]) or _power_of(*b, a[0])):
        return power, _POWER
    if op == ca.OP_ADD and b[0].startswith("-") and b[1] == _NEGATIVE:
        return f"{a[0]} - {b[0][1:]}", _SUM
    if op == ca.OP_ADD and a[0].startswith("-") and a[1] == _NEGATIVE and not b[0].startswith("-"):
        return f"{b[0]} - {a[0][1:]}", _SUM
    left = _inside(a, level + (level == _POWER))
    tight = level + (op in (ca.OP_SUB, ca.OP_DIV) or level == _POWER)
    right = f"({b[0]})" if b[0].startswith("-") else _inside(b, tight)
    return f"{left}{text}{right}", level


def _power_of(base, level, other):
    """Text of the product of a base and another text that is a power of it, or ""."""
    base = base if level == _ATOM else f"({base})"
    exponent = other.removeprefix(f"{base}^")
    return f"{base}^{int(exponent) + 1}" if exponent != other and exponent.isdigit() else ""


def _inside(part, level):
    return part[0] if part[1] >= level else f"({part[0]})"


def _constant(x):
    values = np.ravel(x.to_DM().full(), order="F")
    if values.size == 0:
        return "[]", _ATOM
    if np.all(values == values[0]):  # one for all rows
        return f"{values[0]:.6g}", _ATOM if values[0] >= 0 else _NEGATIVE
    if values.size > 6:
        raise _TooLong
    return f"[{', '.join(f'{v:.6g}' for v in values)}]", _ATOM


def _result(x, most, named):
    """One output of a Function, or of a split."""
    call, which = x.dep(0), x.which_output()
    if not call.is_call():
        if call.op() != ca.OP_VERTSPLIT:
            raise _TooLong
        ends = np.cumsum([0, *(call.get_output(i).numel() for i in range(which + 1))])
        return _indexed(_text(call.dep(0), most, named), range(int(ends[which]), int(ends[which + 1])))
    f = call.which_function()
    given = ", ".join(_text(call.dep(i), most, named)[0] for i in range(call.n_dep()))
    return f"{f.name().removesuffix('_0')}({given})" + (f".{f.name_out(which)}" if f.n_out() > 1 else ""), _ATOM


def _elements(x, most, named):
    """Some elements of an expression."""
    base, info = x.dep(0), x.info()
    nz = info["nz"] if "nz" in info else list(range(*(info["slice"][k] for k in ("start", "stop", "step"))))
    while base.op() in _SAME and not base.is_output() and base.nnz() == base.dep(0).nnz():
        base = base.dep(0)
    if base.op() == ca.OP_VERTCAT and len(nz) == 1 and not base.is_output() and base.size2() == 1:
        ends = np.cumsum([0, *(base.dep(i).nnz() for i in range(base.n_dep()))])
        part = int(np.searchsorted(ends, nz[0], "right")) - 1
        return _text(base.dep(part).nz[int(nz[0] - ends[part])] if ends[part + 1] - ends[part] > 1 else base.dep(part),
                     most, named)  # fmt: skip
    if len(nz) == 1 and base.is_constant():
        return _constant(ca.MX(base.to_DM().nz[int(nz[0])]))
    if len(nz) == 1 and _by_elements(base):
        deps = [base.dep(i) for i in range(base.n_dep())]
        return _operation(base, [_text(y if y.numel() == 1 else y.nz[int(nz[0])], most, named) for y in deps])
    if len(nz) == 1 and base.size2() > 1:
        row, column = (int(np.array(k)[nz[0]]) for k in base.sparsity().get_triplet())
        return f"{_inside(_text(base, most, named), _ATOM)}[{row}, {column}]", _ATOM
    return _indexed(_text(base, most, named), nz)


def _by_elements(x):
    """Whether an element of the result of an operation is that operation of elements."""
    if x.is_symbolic() or x.is_constant() or x.is_output() or x.op() not in (*_INFIX, *_ELEMENTWISE):
        return False
    return x.is_dense() and all(y.is_dense() and y.numel() in (1, x.numel()) for y in map(x.dep, range(x.n_dep())))


def _indexed(part, nz):
    nz = list(nz)
    if len(nz) > 1 and nz == list(range(nz[0], nz[-1] + 1)):
        which = f"{nz[0]}:{nz[-1] + 1}"
    else:
        which = str(nz[0]) if len(nz) == 1 else str(nz)
    return f"{_inside(part, _ATOM)}[{which}]", _ATOM
