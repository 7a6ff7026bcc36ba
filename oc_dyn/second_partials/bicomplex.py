"""Bicomplex numbers a + i1 b + i2 c + i1 i2 d, i1^2 = i2^2 = -1, and Functions evaluated with them.

f(x + i1 h + i2 h) holds h^2 f''(x) in its part at i1 i2: no difference is taken, so that h may be tiny and the second
derivative is exact to rounding. Source: Lantoine, Russell and Dargent 2012; Singh et al. 2023, eq. 54.
"""

from dataclasses import dataclass

import casadi as ca

from ..errors import ModelError


@dataclass(frozen=True)
class Complex:
    """re + i im over any commutative numbers; over Complex ones, with another i, it is bicomplex."""

    re: object
    im: object

    def __add__(self, other):
        return Complex(self.re + other.re, self.im + other.im)

    def __sub__(self, other):
        return Complex(self.re - other.re, self.im - other.im)

    def __neg__(self):
        return Complex(-self.re, -self.im)

    def __mul__(self, other):
        return Complex(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def __truediv__(self, other):
        size = other.re * other.re + other.im * other.im
        back = self * Complex(other.re, -other.im)
        return Complex(back.re / size, back.im / size)


def sin(x):
    """sin of a number, an expression or a Complex of either."""
    if not isinstance(x, Complex):
        return ca.sin(x)
    return Complex(sin(x.re) * cosh(x.im), cos(x.re) * sinh(x.im))


def cos(x):
    """cos of a number, an expression or a Complex of either."""
    if not isinstance(x, Complex):
        return ca.cos(x)
    return Complex(cos(x.re) * cosh(x.im), -(sin(x.re) * sinh(x.im)))


def sinh(x):
    """sinh of a number, an expression or a Complex of either."""
    if not isinstance(x, Complex):
        return ca.sinh(x)
    return Complex(sinh(x.re) * cos(x.im), cosh(x.re) * sin(x.im))


def cosh(x):
    """cosh of a number, an expression or a Complex of either."""
    if not isinstance(x, Complex):
        return ca.cosh(x)
    return Complex(cosh(x.re) * cos(x.im), sinh(x.re) * sin(x.im))


def exp(x):
    """exp of a number, an expression or a Complex of either."""
    if not isinstance(x, Complex):
        return ca.exp(x)
    size = exp(x.re)
    return Complex(size * cos(x.im), size * sin(x.im))


def sqrt(x):
    """The root with positive real part, of a number with positive real part."""
    if not isinstance(x, Complex):
        return ca.sqrt(x)
    size = sqrt(x.re * x.re + x.im * x.im) + x.re
    re = sqrt(_half(size))
    return Complex(re, _half(x.im) / re)


def bicomplex(a, b, c, d):
    """a + i1 b + i2 c + i1 i2 d."""
    return Complex(Complex(a, b), Complex(c, d))


def bicomplex_function(function):
    """casadi.Function (x, x1, x2, x12) -> (y, y1, y2, y12): `function`, a Function of SX with one input and one output
    column, at x + i1 x1 + i2 x2 + i1 i2 x12.

    It runs through the function's own instructions; raises ModelError at one that no bicomplex number has.
    """
    parts = [ca.SX.sym(name, function.size1_in(0)) for name in ("x", "x1", "x2", "x12")]
    inputs = [bicomplex(*row) for row in zip(*(ca.vertsplit(x) for x in parts), strict=True)]
    outputs = [[ca.SX(0)] * function.size1_out(0) for _ in range(4)]
    work, rows = {}, function.sparsity_out(0).row()
    for k in range(function.n_instructions()):
        kind = function.instruction_id(k)
        if kind == ca.OP_INPUT:
            work[function.instruction_output(k)[0]] = inputs[function.instruction_input(k)[1]]
        elif kind == ca.OP_OUTPUT:
            y, place = work[function.instruction_input(k)[0]], rows[function.instruction_output(k)[1]]
            for column, part in zip(outputs, (y.re.re, y.re.im, y.im.re, y.im.im), strict=True):
                column[place] = part
        elif kind == ca.OP_CONST:
            work[function.instruction_output(k)[0]] = _real(function.instruction_constant(k))
        elif kind in _OPERATIONS:
            arguments = (work[x] for x in function.instruction_input(k))
            work[function.instruction_output(k)[0]] = _OPERATIONS[kind](*arguments)
        else:
            raise ModelError(function.name(), [f"instruction {k} has no bicomplex form; take another method"])
    return ca.Function("bicomplex", parts, [ca.vertcat(ca.SX(0, 1), *column) for column in outputs])


def _real(x):
    zero = ca.SX(0)
    return bicomplex(ca.SX(x), zero, zero, zero)


def _half(x):
    return Complex(_half(x.re), _half(x.im)) if isinstance(x, Complex) else 0.5 * x


def _power(x, n):
    """x to a constant whole power."""
    exponent = float(n.re.re)
    if exponent != int(exponent) or exponent < 0:
        raise ModelError("bicomplex", [f"a power of {exponent:g} has no bicomplex form here; take another method"])
    out = _real(1.0)
    for _ in range(int(exponent)):
        out = out * x
    return out


_OPERATIONS = {
    ca.OP_ASSIGN: lambda x: x,
    ca.OP_ADD: lambda x, y: x + y,
    ca.OP_SUB: lambda x, y: x - y,
    ca.OP_MUL: lambda x, y: x * y,
    ca.OP_DIV: lambda x, y: x / y,
    ca.OP_NEG: lambda x: -x,
    ca.OP_TWICE: lambda x: x + x,
    ca.OP_SQ: lambda x: x * x,
    ca.OP_INV: lambda x: _real(1.0) / x,
    ca.OP_SQRT: sqrt,
    ca.OP_SIN: sin,
    ca.OP_COS: cos,
    ca.OP_TAN: lambda x: sin(x) / cos(x),
    ca.OP_EXP: exp,
    ca.OP_CONSTPOW: _power,
    ca.OP_POW: _power,
}
