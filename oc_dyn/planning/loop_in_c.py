"""The program in C that closes the loop of a controller around a plant, see Controller.codegen."""

import numpy as np

_TEXT = """/* Closed loop of %(name)s: a line a step of x, outputs, objective, violation, seconds. Needs no Python. */
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
  int mem, p_mem, m_mem, k, i;
  double begun, seconds, due;

  memcpy(x, x_start, sizeof(x));
  %(name)s_incref(); plant_incref(); measured_incref();
  c = make_room(%(name)s_work); p = make_room(plant_work); m = make_room(measured_work);
  mem = %(name)s_checkout(); p_mem = plant_checkout(); m_mem = measured_checkout();
  due = now();
  for (k = 0; k < STEPS; ++k) {
    m.arg[0] = x;
%(measured)s
    if (measured(m.arg, m.res, m.iw, m.w, m_mem)) return 2;
    c.arg[0] = memory;
%(controller)s
    begun = now();
    if (%(name)s(c.arg, c.res, c.iw, c.w, mem)) return 3;
    seconds = now() - begun;
    memcpy(memory, memory_next, sizeof(memory));
    for (i = 0; i < NX; ++i) printf("%%.17g,", x[i]);
    for (i = 0; i < NU; ++i) printf("%%.17g,", u[i]);
    printf("%%.17g,%%.17g,%%.9g\\n", objective, violation, seconds);
    p.arg[0] = x;
%(plant)s
    p.res[0] = x_next;
    if (plant(p.arg, p.res, p.iw, p.w, p_mem)) return 4;
    memcpy(x, x_next, sizeof(x));
    if (period > 0) {
      struct timespec t;
      due += period;
      t.tv_sec = (time_t)due;
      t.tv_nsec = (long)(1e9 * (due - t.tv_sec));
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    }
  }
  %(name)s_release(mem); plant_release(p_mem); measured_release(m_mem);
  %(name)s_decref(); plant_decref(); measured_decref();
  return 0;
}
"""


def program(controller, values, seen, x, steps, rate):
    """Text of the program. values: {parameter: value}; seen: names of those that are measured."""
    arrays = [_array("x_start", x, True), _array("memory", controller.memory)]
    arrays += [_array(f"p_{k}", np.asarray(v).T.ravel(), False) for k, v in values.items()]
    given = "\n".join(f"    c.arg[{i + 1}] = p_{k};" for i, k in enumerate(values))
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
        "measured": "\n".join(f"    m.res[{i}] = p_{k};" for i, k in enumerate(seen)),
        "controller": given,
        "plant": "\n".join(f"    p.arg[{i + 1}] = u + {a};" for i, a in enumerate(ends[:-1])),
    }


def _array(name, values, constant=False):
    numbers = ",\n  ".join(", ".join(f"{v:.17g}" for v in values[k : k + 4]) for k in range(0, len(values), 4))
    return f"static {'const ' if constant else ''}double {name}[{max(len(values), 1)}] = {{\n  {numbers or '0'}\n}};"
