"""The words that fill the templates of a law in C: interface, checks of its numbers, torque limit, start."""

import numpy as np

from ..codegen.templates import filled
from ..text import c_comment

_READ_MEMORY = """        for (i = 0; i < {memory}; ++i)
            if (scanf("%lf", memory.x + i) != 1) return 1;"""


def law_words(controller, name, sample_time, law, first, limit, safe):
    """{placeholder: text} for the templates."""
    inputs, outputs = sizes(law, "in", "memory"), sizes(law, "out", "memory_next")
    memory, NAME = controller.memory, name.upper()
    values = {n: np.zeros(k) for n, k in outputs.items()} | {"tau_m": safe}
    rng = np.random.default_rng(0)
    return {
        "name": name,
        "NAME": NAME,
        "title": c_comment(f"{controller.name} of {controller.elastic.name}, {law.n_instructions()} operations a step"),
        "sample_time": f"{sample_time:.17g}",
        "inputs": "\n".join(f"    double {n}[{k}];" for n, k in inputs.items()),
        "outputs": "\n".join(f"    double {n}[{k}];" for n, k in outputs.items()),
        "memory": f"    double x[{max(1, memory)}];" + ("" if memory else " /* this law has none */"),
        **{f"law_{k}": max(1, getattr(law, f"sz_{k}")()) for k in ("arg", "res", "iw", "w")},
        "all_finite": filled("all_finite.c"),
        "safe": ", ".join(f"{{{_numbers(x)}}}" for x in values.values()),
        "memory_next": f"    double memory_next[{memory}];" if memory else "    (void)memory;",
        "arguments": "\n".join(_arguments(law, memory, NAME)),
        "results": "\n".join([*_cut_off(limit), *_moved(memory, NAME)]),
        "start": "\n".join(_start(name, memory, first)),
        "sample": ", ".join(f"{x:.3f}" for x in rng.uniform(-0.5, 0.5, sum(inputs.values()))),
        "read_memory": _READ_MEMORY.format(memory=memory) if memory else "        (void)memory;",
    }


def _numbers(values):
    return ", ".join(f"{x:.17g}" for x in np.ravel(values))


def _arguments(law, memory, NAME):
    """Lines that check the memory and set the pointers to arguments and results of the law."""
    checks = [f"    if (!all_finite(memory->x, sizeof memory->x)) return {NAME}_BAD_MEMORY;"] if memory else []
    arguments = [f"    arg[{i}] = {'memory->x' if n == 'memory' else f'in->{n}'};" for i, n in enumerate(law.name_in())]
    places = ["memory_next" if n == "memory_next" else f"out->{n}" for n in law.name_out()]
    return [*checks, *arguments, *(f"    res[{i}] = {place};" for i, place in enumerate(places))]


def _cut_off(limit):
    """Lines that saturate finite torques."""
    if limit is None:
        return []
    return [
        "    {",
        f"        static const double limit[] = {{{_numbers(np.nan_to_num(limit.full()))}}};",  # infinite: the largest
        "        int i;",
        f"        for (i = 0; i < {limit.numel()}; ++i) {{",
        "            if (out->tau_m[i] > limit[i]) out->tau_m[i] = limit[i];",
        "            if (out->tau_m[i] < -limit[i]) out->tau_m[i] = -limit[i];",
        "        }",
        "    }",
    ]


def _moved(memory, NAME):
    """Lines that update the memory."""
    if not memory:
        return []
    return [
        f"    if (!all_finite(memory_next, sizeof memory_next)) return {NAME}_BAD_OUTPUT;",
        "    memcpy(memory->x, memory_next, sizeof memory_next);",
    ]


def _start(name, memory, first):
    """Lines that initialize the memory."""
    if not memory:
        return ["    (void)in;", "    memory->x[0] = 0.0;", f"    return {name.upper()}_OK;"]
    f, NAME = first[0], name.upper()
    return [
        f"    static const double *arg[{f.sz_arg()}];",
        f"    static double *res[{f.sz_res()}];",
        f"    static int iw[{max(1, f.sz_iw())}];",
        f"    static double w[{max(1, f.sz_w())}];",
        f"    int i, status = {NAME}_OK;",
        *(f"    if (!all_finite(in->{n}_ref, sizeof in->{n}_ref)) status = {NAME}_BAD_INPUT;" for n in f.name_in()),
        *(f"    arg[{i}] = in->{n}_ref;" for i, n in enumerate(f.name_in())),
        "    res[0] = memory->x;",
        f"    if (!status && {name}_first(arg, res, iw, w, 0)) status = {NAME}_FAILED;",
        f"    if (!status && !all_finite(memory->x, sizeof memory->x)) status = {NAME}_BAD_OUTPUT;",
        f"    for (i = 0; status && i < {memory}; ++i) memory->x[i] = 0.0;",
        "    return status;",
    ]


def sizes(f, which, apart):
    """{port: size} of the inputs or outputs of a law, but for one."""
    names = f.name_in() if which == "in" else f.name_out()
    size = f.size1_in if which == "in" else f.size1_out
    return {n: size(n) for n in names if n != apart}
