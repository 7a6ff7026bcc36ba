"""Sizes, stack and instructions of C on Cortex-M processors: what the tools say of code whose numbers are known."""

import numpy as np
import pytest

from oc_dyn.study import cortex

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not cortex.available(cortex.GCC, cortex.QEMU), reason="needs arm-none-eabi-gcc and qemu-arm"),
]
HEADER = """
typedef struct { int calls; } known_t;
typedef struct { float turns; } known_in;
typedef struct { float sum; int calls; } known_out;
void known_init(known_t *self);
int known_step(known_t *self, const known_in *in, known_out *out);
"""
SOURCE = """
#include "known.h"
void known_init(known_t *self) { self->calls = 0; }
__attribute__((noinline)) static float inner(float x) { volatile float a[64]; a[3] = x; return a[3]; }
int known_step(known_t *self, const known_in *in, known_out *out) {
    int k, turns = (int)in->turns;
    for (k = 0; k < turns; ++k) __asm__ volatile("add r12, r12, #1\\n\\tadd r12, r12, #1" ::: "r12");
    out->sum = inner(in->turns);
    out->calls = ++self->calls;
    return turns == 7 ? 5 : 0;
}
"""


@pytest.fixture
def known(tmp_path):
    (tmp_path / "known.h").write_text(HEADER)
    (tmp_path / "known.c").write_text(SOURCE)
    return tmp_path


@pytest.mark.parametrize("target", cortex.TARGETS)
def test_steps_are_counted_one_by_one(known, target):
    turns = [0, 100, 200, 7]
    steps, instance = cortex.steps_of(known, ["known.c"], "known", target, np.array(turns)[:, None])
    assert instance == 4
    told = [cortex.numbers_of(s.out, {"sum": ("float", 1), "calls": ("int", 1)}) for s in steps]
    assert [s.status for s in steps] == [0, 0, 0, 5]
    assert [float(x["sum"][0]) for x in told] == turns
    assert [int(x["calls"][0]) for x in told] == [1, 2, 3, 4]
    a_turn = (steps[2].instructions - steps[1].instructions) / 100
    assert a_turn in (4, 5)  # two adds, what counts, compares and branches
    assert (steps[2].cycles - steps[1].cycles) / 100 == a_turn + 2  # a branch that is taken takes 3
    assert all(240 <= s.stack < 400 for s in steps)


def test_stack_by_the_graph_of_calls(known):
    size = cortex.size_of(known, ["known.c"], ["known_step"], "Cortex-M4F")
    assert 256 <= size.stack["known_step"] < 400
    assert (size.data, size.bss) == (0, 0)
