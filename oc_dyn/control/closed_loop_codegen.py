"""The C around a controller: a step that looks at its numbers, and a program that closes the loop; see mpc.py."""

import re

import numpy as np

from ..codegen.templates import filled
from ..text import c_comment

_DECLARED = """
/* How a step ended. The outputs are within their bounds, and the next memory is sound, whatever it is. */
enum %(name)s_status {
  %(NAME)s_OK = 0,
  %(NAME)s_ITERATION_LIMIT = 1,    /* iterations ended before constraints were met: the outputs found so far */
  %(NAME)s_BAD_MEASUREMENT = 2,    /* a number of an input is NaN, infinite or beyond 1e12: outputs of on_failure */
  %(NAME)s_FALLBACK = 3,           /* not solved, or the memory is broken: outputs of on_failure */
  %(NAME)s_INFEASIBLE_RELAXED = 4  /* limits cannot all be kept: they are exceeded as little as may be */
};

/* One step, as %(name)s, with its numbers looked at; returns the status. Where on_failure gives the outputs, the next
 * memory is the plan of the last good step moved on. Bounds of the outputs:
%(bounds)s
 * %(name)s_start is the memory to begin with. Calls from several threads must not overlap. */
extern const casadi_real %(name)s_start[%(n_memory)d];
int %(name)s_step(const casadi_real **arg, casadi_real **res, casadi_int *iw, casadi_real *w, int mem);
"""
_STEP = """
%(all_finite)s
CASADI_SYMBOL_EXPORT const casadi_real %(name)s_start[%(n_memory)d] = {%(start)s};

/* Whether numbers are what a sensor may give, told by their bits, too. */
static int %(name)s_sound(const casadi_real *x, size_t n) {
  size_t i;
  if (!all_finite(x, n * sizeof(casadi_real))) return 0;
  for (i = 0; i < n; ++i)
    if (x[i] > 1e12 || x[i] < -1e12) return 0;
  return 1;
}

CASADI_SYMBOL_EXPORT int %(name)s_step(const casadi_real **arg, casadi_real **res, casadi_int *iw, casadi_real *w,
    int mem) {
  static const size_t n_in[] = {%(n_in)s}, n_out[] = {%(n_out)s};
  static const casadi_real lower[] = {%(lower)s}, upper[] = {%(upper)s};
  static casadi_real found[%(total)d], fallback_w[%(sz_w)d + 1];
  static casadi_int fallback_iw[%(sz_iw)d + 1];
  const casadi_real *given[%(sz_arg)d + %(inputs)d], *known;
  casadi_real *wanted[%(outputs)d], *places[%(outputs)d], *kept[%(sz_res)d + %(outputs)d], *place = found;
  int i, k, status = 0, sound = 1, fallback_mem;
  for (i = 0; i < %(inputs)d; ++i) given[i] = arg[i];
  for (i = 0; i < %(outputs)d; ++i) {
    wanted[i] = res[i];
    places[i] = place;
    place += n_out[i];
  }
  for (i = 1; i < %(inputs)d; ++i)
    if (arg[i] && !%(name)s_sound(arg[i], n_in[i])) sound = 0;
  if (!sound) status = 2;
  if (!arg[0] || !all_finite(arg[0], n_in[0] * sizeof(casadi_real))) {
    given[0] = %(name)s_start;
    status = 3;
  }
  if (!status) {
    for (i = 0; i < %(outputs)d; ++i) res[i] = places[i];
    status = %(name)s(arg, res, iw, w, mem) || !all_finite(found, sizeof found) ? 3 : (int)places[%(memory)d + 3][0];
    for (i = 0; i < %(outputs)d; ++i) res[i] = wanted[i];
    for (i = 0; i < %(inputs)d; ++i) arg[i] = given[i];
    if (!all_finite(found, sizeof found)) memset(found, 0, sizeof found);
  } else {
    memset(found, 0, sizeof found);
  }
  if (status == 2 || status == 3) {
    known = given[0] + n_in[0] - 1;
    for (i = %(inputs)d - 1; i > 0 && !sound; --i) given[i] = known -= n_in[i];
    for (i = 0; i <= %(memory)d; ++i) kept[i] = places[i];
    fallback_mem = %(name)s_fallback_checkout();
    if (fallback_mem < 0 || %(name)s_fallback(given, kept, fallback_iw, fallback_w, fallback_mem) ||
        !all_finite(found, sizeof found)) {
      memset(found, 0, sizeof found);
      memcpy(places[%(memory)d], %(name)s_start, n_in[0] * sizeof(casadi_real));
    }
    if (fallback_mem >= 0) %(name)s_fallback_release(fallback_mem);
    places[%(memory)d + 3][0] = status;
  }
  for (i = 0; i < %(bounded)d; ++i) {
    if (found[i] < lower[i]) found[i] = lower[i];
    if (found[i] > upper[i]) found[i] = upper[i];
  }
  for (k = 0; k < %(outputs)d; ++k)
    if (wanted[k]) memcpy(wanted[k], places[k], n_out[k] * sizeof(casadi_real));
  return status;
}
"""
_NOT_SOLVED = (  # what the C of qrqp, osqp and daqp ends with where Python goes on
    """  } else if (d.status == QP_NO_SEARCH_DIR) {
    return 4;
  } else {
    return -1;
  }
""",
    """      return 4;
    } else {
      return 1;
    }
  }
""",
    """  if (!d_qp.success) {
    return -1;
  }
""",
)
_FIRST = "/* Closed loop of %(name)s:"
_TEXT = (
    _FIRST
    + """ a line a step of x, outputs, objective, violation, seconds, status. Needs no Python. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "%(name)s.h"

#define STEPS %(steps)d
#define NX %(nx)d
#define NU %(nu)d

%(arrays)s

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* Room of a function, and its memory. */
typedef struct { const double **arg; double **res; casadi_int *iw; double *w; } room;

static room make_room(int (*work)(casadi_int *, casadi_int *, casadi_int *, casadi_int *)) {
  casadi_int n_arg, n_res, n_iw, n_w;
  room r;
  work(&n_arg, &n_res, &n_iw, &n_w);
  r.arg = calloc(n_arg + 1, sizeof(*r.arg));
  r.res = calloc(n_res + 1, sizeof(*r.res));
  r.iw = calloc(n_iw + 1, sizeof(*r.iw));
  r.w = calloc(n_w + 1, sizeof(*r.w));
  return r;
}

int main(void) {
  static double x[NX], x_next[NX], u[NU], objective, violation, memory_next[%(n_memory)d];
  const double period = %(period)s; /* [s], 0: as fast as it can */
  room c, p, m;
  int mem, p_mem, m_mem, k, i, status;
  double begun, seconds, due;

  memcpy(x, x_start, sizeof(x));
  %(name)s_incref(); %(name)s_plant_incref(); %(name)s_measured_incref();
  c = make_room(%(name)s_work); p = make_room(%(name)s_plant_work); m = make_room(%(name)s_measured_work);
  mem = %(name)s_checkout(); p_mem = %(name)s_plant_checkout(); m_mem = %(name)s_measured_checkout();
  due = now();
  for (k = 0; k < STEPS; ++k) {
    m.arg[0] = x;
%(measured)s
    if (%(name)s_measured(m.arg, m.res, m.iw, m.w, m_mem)) return 2;
    c.arg[0] = memory;
%(controller)s
    begun = now();
    status = %(name)s_step(c.arg, c.res, c.iw, c.w, mem);
    seconds = now() - begun;
    if (status == 2) {
      fprintf(stderr, "step %%d: %(name)s_step returned %%d, see %(name)s.h\\n", k, status);
      return 3;
    }
    memcpy(memory, memory_next, sizeof(memory));
    for (i = 0; i < NX; ++i) printf("%%.17g,", x[i]);
    for (i = 0; i < NU; ++i) printf("%%.17g,", u[i]);
    printf("%%.17g,%%.17g,%%.9g,%%d\\n", objective, violation, seconds, status);
    p.arg[0] = x;
%(plant)s
    p.res[0] = x_next;
    if (%(name)s_plant(p.arg, p.res, p.iw, p.w, p_mem)) return 4;
    memcpy(x, x_next, sizeof(x));
    if (period > 0) {
      struct timespec t;
      due += period;
      t.tv_sec = (time_t)due;
      t.tv_nsec = (long)(1e9 * (due - t.tv_sec));
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    }
  }
  %(name)s_release(mem); %(name)s_plant_release(p_mem); %(name)s_measured_release(m_mem);
  %(name)s_decref(); %(name)s_plant_decref(); %(name)s_measured_decref();
  return 0;
}
"""
)


def declared(controller):
    """Text of the header about <name>_step."""
    rows = [
        f" *   {c_comment(k)}: {', '.join(f'{x:g} to {y:g}' for x, y in zip(*both, strict=True))}"
        for k, both in controller.bounds.items()
    ]
    name = controller.name
    words = {"name": name, "NAME": name, "bounds": "\n".join(rows), "n_memory": controller.start.size}
    return _DECLARED % words


def step(controller):
    """Text of <name>_step."""
    f, g = controller.function, controller.fallback
    n_in, n_out = [f.nnz_in(i) for i in range(f.n_in())], [f.nnz_out(i) for i in range(f.n_out())]
    lower, upper = (np.concatenate([b[side] for b in controller.bounds.values()]) for side in (0, 1))
    finite = np.finfo(float).max
    return _STEP % {
        "name": controller.name,
        "all_finite": filled("all_finite.c"),
        "n_in": ", ".join(map(str, n_in)),
        "n_out": ", ".join(map(str, n_out)),
        "inputs": len(n_in),
        "outputs": len(n_out),
        "total": sum(n_out),
        "memory": f.index_out("next_memory"),
        "bounded": lower.size,
        "lower": _numbers(np.maximum(lower, -finite)),
        "upper": _numbers(np.minimum(upper, finite)),
        "start": _numbers(controller.start),
        "n_memory": controller.start.size,
        **{f"sz_{x}": getattr(g, f"sz_{x}")() for x in ("arg", "res", "iw", "w")},
    }


def going_on(code):
    """C text in which a quadratic program that was not solved is no error of its function: the residuals tell."""
    for failed in _NOT_SOLVED:
        code = code.replace(failed, re.sub("return -?[0-9]+;", "return 0;", failed))
    return code


def is_of_another(name, text):
    """Whether the text is not that of the program of a controller of this name."""
    return not text.startswith(_FIRST % {"name": name})


def program(controller, values, seen, x, steps, rate):
    """Text of the program. values: {parameter: value}; seen: names of those that are measured."""
    arrays = [_array("x_start", x, True), _array("memory", controller.memory)]
    arrays += [_array(f"p_{k}_", np.asarray(v).T.ravel(), False) for k, v in values.items()]
    given = "\n".join(f"    c.arg[{i + 1}] = p_{k}_;" for i, k in enumerate(values))
    ends = np.cumsum([0, *controller.outputs.values()])
    places = [f"u + {a}" for a in ends[:-1]] + ["memory_next", "&objective", "&violation"]
    given += "".join(f"\n    c.res[{i}] = {place};" for i, place in enumerate(places))
    return _TEXT % {
        "name": controller.name,
        "steps": steps,
        "nx": x.size,
        "nu": int(ends[-1]),
        "arrays": "\n".join(arrays),
        "n_memory": controller.memory.size,
        "period": repr(1.0 / rate if rate else 0.0),
        "measured": "\n".join(f"    m.res[{i}] = p_{k}_;" for i, k in enumerate(seen)),
        "controller": given,
        "plant": "\n".join(f"    p.arg[{i + 1}] = u + {a};" for i, a in enumerate(ends[:-1])),
    }


def _array(name, values, constant=False):
    return f"static {'const ' if constant else ''}double {name}[{max(len(values), 1)}] = {{\n  {_numbers(values)}\n}};"


def _numbers(values):
    return ",\n  ".join(", ".join(f"{v:.17g}" for v in values[k : k + 4]) for k in range(0, len(values), 4)) or "0"
