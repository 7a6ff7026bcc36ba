"""The C around a controller: a step that looks at its numbers, and a program that closes the loop; see mpc.py."""

import numpy as np

from ..codegen.templates import filled

STEP_DECLARED = """
/* One step, as %(name)s, with its numbers looked at. Returns 0; 1 if it could not be done; 2 if a number of an input is
 * NaN or infinite, 3 if one of the memory is, 4 if one of the result is. Where it is not 0, what res points to stays as
 * it is, so that outputs are those of the last good step where the same arrays are given; but the next memory is the
 * memory. Calls from several threads must not overlap. */
int %(name)s_step(const casadi_real **arg, casadi_real **res, casadi_int *iw, casadi_real *w, int mem);
"""
_STEP = """
%(all_finite)s
CASADI_SYMBOL_EXPORT int %(name)s_step(const casadi_real **arg, casadi_real **res, casadi_int *iw, casadi_real *w,
    int mem) {
  static const size_t n_in[] = {%(n_in)s}, n_out[] = {%(n_out)s};
  static casadi_real found[%(total)d];
  casadi_real *given[%(outputs)d], *place = found;
  int i, status = 0;
  for (i = 0; i < %(inputs)d; ++i)
    if (!status && arg[i] && !all_finite(arg[i], n_in[i] * sizeof(casadi_real))) status = i == 0 ? 3 : 2;
  for (i = 0; i < %(outputs)d; ++i) {
    given[i] = res[i];
    res[i] = place;
    place += n_out[i];
  }
  if (!status && %(name)s(arg, res, iw, w, mem)) status = 1;
  if (!status && !all_finite(found, sizeof found)) status = 4;
  for (i = 0, place = found; i < %(outputs)d; place += n_out[i++]) {
    res[i] = given[i];
    if (!given[i]) continue;
    if (!status) memcpy(given[i], place, n_out[i] * sizeof(casadi_real));
    else if (i == %(memory)d && arg[0]) memcpy(given[i], arg[0], n_out[i] * sizeof(casadi_real));
  }
  return status;
}
"""
_FIRST = "/* Closed loop of %(name)s:"
_TEXT = (
    _FIRST
    + """ a line a step of x, outputs, objective, violation, seconds. Needs no Python. */
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
    if (status) {
      fprintf(stderr, "step %%d: %(name)s_step returned %%d, see %(name)s.h\\n", k, status);
      return 3;
    }
    memcpy(memory, memory_next, sizeof(memory));
    for (i = 0; i < NX; ++i) printf("%%.17g,", x[i]);
    for (i = 0; i < NU; ++i) printf("%%.17g,", u[i]);
    printf("%%.17g,%%.17g,%%.9g\\n", objective, violation, seconds);
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


def step(controller):
    """Text of <name>_step."""
    f = controller.function
    n_in, n_out = [f.nnz_in(i) for i in range(f.n_in())], [f.nnz_out(i) for i in range(f.n_out())]
    return _STEP % {
        "name": controller.name,
        "all_finite": filled("all_finite.c"),
        "n_in": ", ".join(map(str, n_in)),
        "n_out": ", ".join(map(str, n_out)),
        "inputs": len(n_in),
        "outputs": len(n_out),
        "total": sum(n_out),
        "memory": f.index_out("next_memory"),
    }


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
    numbers = ",\n  ".join(", ".join(f"{v:.17g}" for v in values[k : k + 4]) for k in range(0, len(values), 4))
    return f"static {'const ' if constant else ''}double {name}[{max(len(values), 1)}] = {{\n  {numbers or '0'}\n}};"
