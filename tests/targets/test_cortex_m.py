"""Generated C in single precision for Cortex-M: compiles without a warning, and its numbers there are Python's."""

import numpy as np
import pytest
from players import elastic_plan, smooth

import oc_dyn as od
from oc_dyn.study import cortex

pytestmark = pytest.mark.slow
needs_gcc = pytest.mark.skipif(not cortex.available(cortex.GCC), reason="needs arm-none-eabi-gcc")
needs_emulator = pytest.mark.skipif(
    not cortex.available(cortex.GCC, cortex.QEMU), reason="needs arm-none-eabi-gcc and qemu-arm"
)
STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Wdouble-promotion", "-Werror")
EVERY = pytest.mark.parametrize("target", cortex.TARGETS)


@needs_emulator
@EVERY
@pytest.mark.parametrize("kind", ["links", "elastic"])
def test_player(kind, target, tmp_path):
    motion = smooth() if kind == "links" else elastic_plan()
    code = od.codegen_player(motion, tmp_path / "move", precision="single")
    sources = [x.name for x in code.sources]
    path = motion if kind == "links" else motion.motion
    times = np.sort(np.concatenate([path.t, np.random.default_rng(3).uniform(path.t[0], path.t[-1], 10)]))
    steps, _ = cortex.steps_of(code.folder, sources, "move", target, times[:, None], wide=True, flags=STRICT)
    members = {n: ("float", size) for n, size in code.outputs.items()} | {"state": ("int", 1)}
    found = [cortex.numbers_of(s.out, members) for s in steps]
    expected = _expected(motion, times)
    assert [s.status for s in steps] == [0] * len(times)
    for name in code.outputs:
        values = np.array([x[name] for x in found])
        assert values == pytest.approx(expected[name], rel=0, abs=2e-5 * np.abs(expected[name]).max()), name


def _expected(motion, times):
    if hasattr(motion, "motion"):
        samples = motion.motion.sample(times)
        flat = el_outputs(motion, samples)
        return {f"d{k - 1}v": x for k, x in enumerate(samples.derivatives) if k > 1} | flat
    samples = motion.sample(times)
    names = ["q", "v", "dv", "d2v", "d3v", "d4v", "d5v"]
    return dict(zip(names, samples.derivatives, strict=False))


def el_outputs(plan, samples):
    from oc_dyn.elastic.plan_outputs import flat_outputs

    return flat_outputs(plan.elastic, samples.derivatives, plan._order, plan._jets(samples.t))


@needs_gcc
@EVERY
def test_a_player_has_a_bounded_stack_and_no_static_data(target, tmp_path):
    code = od.codegen_player(smooth(), tmp_path / "move", precision="single")
    size = cortex.size_of(code.folder, [x.name for x in code.sources], ["move_step"], target, STRICT)
    assert (size.data, size.bss) == (0, 0)
    assert size.stack["move_step"] < 300
    assert size.recursive == size.unbounded == ()
