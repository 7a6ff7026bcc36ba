"""The program in C that closes the loop of a controller; see mpc.py."""

import casadi as ca
import numpy as np

from ..codegen.names import field_name
from ..codegen.templates import filled

_FIRST = "/* Closed loop of %(name)s:"


def named(function, name):
    """The Function under another name."""
    inputs = function.mx_in()
    return ca.Function(name, inputs, function.call(inputs), function.name_in(), function.name_out())


def is_of_another(name, text):
    """Whether the text is not that of the program of a controller of this name."""
    return not text.startswith(_FIRST % {"name": name})


def program(controller, values, seen, x, steps, rate):
    """Text of the program. values: {parameter: value}; seen: names of those that are measured."""
    given = np.concatenate([np.zeros(0), *(np.asarray(v).T.ravel() for v in values.values())])
    arrays = [_array("x_start", x), _array("memory", controller.memory), _array("parameters", given)]
    ends = np.cumsum([0, *controller.outputs.values()])
    return filled(
        "loop.c",
        __package__,
        name=controller.name,
        steps=steps,
        nx=x.size,
        nu=int(ends[-1]),
        arrays="\n".join(arrays),
        period=repr(1.0 / rate if rate else 0.0),
        measured="\n".join(f"    m.res[{i}] = (double *)in.{field_name(k)};" for i, k in enumerate(seen)),
        plant="\n".join(f"    p.arg[{i + 1}] = u + {a};" for i, a in enumerate(ends[:-1])),
    )


def _array(name, values):
    numbers = ",\n  ".join(", ".join(f"{v:.17g}" for v in values[k : k + 4]) for k in range(0, len(values), 4)) or "0"
    return f"static const double {name}[{max(len(values), 1)}] = {{\n  {numbers}\n}};"
