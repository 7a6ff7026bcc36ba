"""od.codegen_player: the C gives the motion that Python gives, at any time, in any order, and numbers alone."""

import shutil
import subprocess

import hostile
import numpy as np
import pytest
from players import STRICT, Compiled, along_path, elastic_plan, needs_compiler, pendulum_solution, smooth

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.optimal_control.integrators import METHODS, gauss
from oc_dyn.planning.quantities import order_name
from oc_dyn.robots import planar_arm

ELASTIC = ("theta", "dtheta", "tau_m", "dtau_m", "deflection")


def times_of(motion, count=200, seed=5):
    """Random times, every breakpoint, and those next to them."""
    inside = np.random.default_rng(seed).uniform(motion.t[0], motion.t[-1], count)
    near = np.concatenate([motion.t, np.nextafter(motion.t[1:], -1), np.nextafter(motion.t[:-1], 9)])
    return np.concatenate([inside, near])


def assert_equal(found, expected, share):
    for name, values in found.items():
        assert values == pytest.approx(expected[name], rel=0, abs=share * np.abs(expected[name]).max()), name


@needs_compiler
@pytest.mark.parametrize("precision, share", [("double", 1e-13), ("single", 3e-6)])
def test_a_trajectory_with_all_its_derivatives(precision, share, tmp_path):
    motion = smooth()
    code = od.codegen_player(motion, tmp_path / "move", precision=precision)
    assert list(code.outputs) == [order_name(k) for k in range(7)]
    times = times_of(motion)
    samples = motion.sample(times)
    expected = dict(zip(code.outputs, samples.derivatives, strict=True))
    assert_equal(Compiled(code, precision).sample(times), expected, share)


@needs_compiler
def test_single_precision_keeps_its_digits_on_a_piece_of_high_degree(tmp_path):
    """Terms of a ninth power from the start of the piece would cancel each other and leave four digits at its end."""
    path = el.rest_to_rest([0.2, -1.0], [1.1, 0.5], 1.5)
    motion = od.Trajectory(path.t, path.pieces, joints="ab", units=["rad"] * 2)
    code = od.codegen_player(motion, tmp_path / "move", derivatives=3, precision="single")
    times = times_of(motion)
    expected = dict(zip(code.outputs, motion.sample(times).derivatives, strict=False))
    assert_equal(Compiled(code, "single").sample(times), expected, 3e-6)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("precision, share", [("double", 1e-12), ("single", 1e-5)])
def test_torques_of_the_robot(precision, share, tmp_path):
    motion = smooth(robot=planar_arm(3))
    code = od.codegen_player(motion, tmp_path / "move", torques=True, derivatives=0, precision=precision)
    assert list(code.outputs) == ["q", "tau", "dtau"]
    samples = motion.sample(times_of(motion))
    expected = {"q": samples.q, "tau": samples.tau, "dtau": samples.dtau}
    if precision == "double":
        assert_equal(Compiled(code).sample(samples.t), expected, share)
    else:
        assert "passed" in code.test(tolerance=share)


@needs_compiler
@pytest.mark.parametrize("sigma", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_motors_of_an_elastic_plan(sigma, tmp_path):
    """The flat map: motor positions and torques, springs, as ElasticPlan.sample has them."""
    plan = elastic_plan(sigma)
    code = od.codegen_player(plan, tmp_path / "move", derivatives=1)
    assert list(code.outputs) == ["q", "v", *ELASTIC]
    expected = plan.sample(0.01)
    assert_equal(Compiled(code).sample(expected["t"]), expected, 1e-12)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(
    "path, options", [("points", {}), ("points", {"stops": [1]}), ("function", {}), ("function", {"stops": [0.4]})]
)
def test_motions_along_paths(path, options, tmp_path):
    motion = along_path(path, **options)
    code = od.codegen_player(motion, tmp_path / "move", torques=True)
    samples = motion.sample(times_of(motion))
    expected = {order_name(k): x for k, x in enumerate(samples.derivatives)}
    expected |= {"tau": samples.tau, "dtau": samples.dtau}
    law = motion.shares(samples.t)
    expected |= {n: x[:, None] for n, x in zip(("s", "ds", "d2s", "d3s"), law, strict=True)}
    assert_equal(Compiled(code).sample(samples.t), expected, 1e-11)


@needs_compiler
@pytest.mark.sample("hermite_simpson")
@pytest.mark.parametrize("method", [*METHODS, gauss(4)], ids=str)
def test_a_solution_on_the_polynomials_of_its_method(method, tmp_path):
    solution = pendulum_solution(method)
    code = od.codegen_player(solution, tmp_path / "move", derivatives=1)
    times = np.concatenate([times_of(solution, 60)[:60], solution.t])  # next to a node resample takes it for the node
    found = Compiled(code).sample(times)
    samples = solution.resample(times=times)
    assert_equal({n: found[n] for n in "awu"}, samples, 1e-11)


@pytest.mark.slow
@needs_compiler
def test_derivatives_of_a_solution_are_slopes(tmp_path):
    player = Compiled(od.codegen_player(pendulum_solution(), tmp_path / "move", names={"a": "angle"}, derivatives=2))
    h, t = 1e-4, 0.7777
    before, here, after = (player.step(x)[1]["angle"] for x in (t - h, t, t + h))
    found = player.step(t)[1]
    assert found["dangle"] == pytest.approx((after - before) / (2 * h), rel=1e-6)
    assert found["d2angle"] == pytest.approx((after - 2 * here + before) / h**2, rel=1e-4)


@needs_compiler
def test_ends_are_held(tmp_path):
    """Before and after it the position stays and all derivatives are zero, torques those that hold it there."""
    arm = planar_arm(3)
    motion = smooth(robot=arm)
    player = Compiled(od.codegen_player(motion, tmp_path / "move", torques=True))
    holding = od.function(arm, "inverse_dynamics")
    for t, place, state in ((-1e300, 0, -1), (motion.t[0] - 1e-9, 0, -1), (motion.t[-1] + 1e-9, -1, 1), (1e300, -1, 1)):
        status, out, found = player.step(t)
        assert (status, found) == (0, state)
        assert out["q"] == pytest.approx(motion.q[place], rel=1e-13)
        assert all(not out[order_name(k)].any() for k in range(1, 7))
        assert out["tau"] == pytest.approx(np.array(holding(motion.q[place], [0] * 3, [0] * 3)).ravel(), rel=1e-12)
    for t in motion.t[[0, -1]]:
        assert player.step(t)[2] == 0


@needs_compiler
def test_times_that_are_no_numbers_give_the_last_good_sample(tmp_path):
    motion = smooth()
    player = Compiled(od.codegen_player(motion, tmp_path / "move"))
    status, out, _ = player.step(np.nan)
    assert status == 2
    assert out["q"] == pytest.approx(motion.q[0])
    good = player.step(1.234)[1]
    for bad in (np.nan, np.inf, -np.inf):
        status, out, _ = player.step(bad)
        assert status == 2
        assert all(np.array_equal(out[n], good[n]) for n in good)
    player.call("reset", player.instance)
    assert np.array_equal(player.step(np.nan)[1]["q"], player.step(motion.t[0])[1]["q"])


@needs_compiler
def test_instances_are_independent_and_broken_memory_does_no_harm(tmp_path):
    motion = smooth()
    player = Compiled(od.codegen_player(motion, tmp_path / "move"))
    other = player.new()
    times = times_of(motion, 50)
    for t, u in zip(times, times[::-1], strict=True):
        one, two = player.step(t)[1]["q"], player.step(u, other)[1]["q"]
        assert one == pytest.approx(motion.sample([t]).q[0], abs=1e-12)
        assert two == pytest.approx(motion.sample([u]).q[0], abs=1e-12)
    rng = np.random.default_rng(1)
    for _ in range(50):
        other[:] = rng.integers(0, 256, len(other), dtype=np.uint8).tobytes()
        status, out, _ = player.step(np.nan, other)
        assert status == 2
        assert np.isfinite(out["q"]).all()
        assert player.step(1.1, other)[1]["q"] == pytest.approx(motion.sample([1.1]).q[0], abs=1e-12)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("precision", ["double", "single"])
def test_self_test_and_example_compile_without_a_warning(precision, tmp_path):
    code = od.codegen_player(smooth(), tmp_path / "move", precision=precision)
    assert "passed" in code.test(flags=STRICT)
    subprocess.run(["cc", *STRICT, "-o", "example", "move.c", "move_example.c"], cwd=code.folder, check=True)
    out = subprocess.run([str(code.folder / "example")], capture_output=True, text=True, check=True).stdout
    assert [line.split(":")[0] for line in out.splitlines()][-8:] == [*code.outputs, "state"]


@pytest.mark.slow
@needs_compiler
def test_a_self_test_that_is_wrong_fails(tmp_path):
    code = od.codegen_player(smooth(), tmp_path / "move")
    text = (code.folder / "move.c").read_text()
    (code.folder / "move.c").write_text(text.replace("power[j - 1] * s", "power[j - 1] * (s + 1e-9)"))
    with pytest.raises(od.SolveError, match="failed"):
        code.test()


@pytest.mark.slow
@needs_compiler
@pytest.mark.skipif(shutil.which("nm") is None or shutil.which("size") is None, reason="needs nm and size")
def test_no_heap_and_no_static_data_that_is_written(tmp_path):
    code = od.codegen_player(elastic_plan(), tmp_path / "move", measure=True)
    size = code.footprint()
    assert (size.data, size.bss, size.recursive, size.unbounded) == (0, 0, (), ())
    assert f"Stack: move_init {size.stack['move_init']}" in code.header.read_text()
    for source in code.sources:
        subprocess.run(["cc", "-O1", "-c", source.name], cwd=code.folder, check=True)
        thing = source.with_suffix(".o").name
        table = subprocess.run(["nm", thing], cwd=code.folder, capture_output=True, text=True, check=True).stdout
        symbols = [line.split()[-2:] for line in table.splitlines()]
        outside = {name for kind, name in symbols if kind == "U"}
        assert outside <= {"memset", "memcpy", "sin", "cos", "sincos", "_GLOBAL_OFFSET_TABLE_"}
        assert not [name for kind, name in symbols if kind in "bBdDC"]


def test_the_same_motion_gives_the_same_files_and_another_one_another_digest(tmp_path):
    one, same, other = (
        od.codegen_player(motion, tmp_path / place, name="move").header.read_text()
        for place, motion in (("a", smooth()), ("b", smooth()), ("c", smooth(seed=2)))
    )
    assert one == same
    digests = [next(line for line in x.splitlines() if "Hash" in line) for x in (one, other)]
    assert digests[0] != digests[1]


def test_what_is_refused(tmp_path):
    motion = smooth()
    with pytest.raises(od.ShapeError, match=r"codegen_player: got array.*expected a Trajectory, a PathMotion"):
        od.codegen_player(np.zeros(3), tmp_path)
    with pytest.raises(od.ModelError, match="torques need the robot"):
        od.codegen_player(motion, tmp_path / "arm", torques=True)
    with pytest.raises(od.ShapeError, match="derivatives is -1"):
        od.codegen_player(motion, tmp_path / "arm", derivatives=-1)
    with pytest.raises(od.ShapeError, match="names is .* for a Solution"):
        od.codegen_player(motion, tmp_path / "arm", names=["q"])
    with pytest.raises(od.ShapeError, match="precision is 'half'"):
        od.codegen_player(motion, tmp_path / "arm", precision="half")
    with pytest.raises(od.ShapeError, match="'double' is taken"):
        od.codegen_player(motion, tmp_path / "double")
    pieces = motion.pieces.copy()
    pieces[2, 1, 0] = np.nan
    broken = od.Trajectory(motion.t, pieces, joints="abc", units=["rad"] * 3)
    with pytest.raises(od.ShapeError, match="a number of q in piece 2 is not finite"):
        od.codegen_player(broken, tmp_path / "arm")
    assert not (tmp_path / "arm").exists()


def test_names_of_a_solution_become_members_of_a_struct(tmp_path):
    solution = pendulum_solution()
    with pytest.raises(od.UnknownName, match="'b'"):
        od.codegen_player(solution, tmp_path / "arm", names=["b"])
    for wrong in ("double", "state", "a b", "1st"):
        with pytest.raises(od.ShapeError, match=f"{wrong!r} cannot be a member"):
            od.codegen_player(solution, tmp_path / "arm", names={"a": wrong})
    with pytest.raises(od.ShapeError, match="'a' cannot be"):
        od.codegen_player(solution, tmp_path / "arm", names={"a": "a", "w": "a"})
    with pytest.raises(od.ShapeError, match="torques=True is for a Trajectory"):
        od.codegen_player(solution, tmp_path / "arm", torques=True)


FUZZ = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "move.h"
static unsigned long long seed = 1;
static unsigned long long next(void) { seed ^= seed << 13; seed ^= seed >> 7; seed ^= seed << 17; return seed; }
int main(void) {
    static move_t self;
    move_in in;
    move_out out;
    long k, bad = 0;
    size_t i;
    move_init(&self);
    for (k = 0; k < 1000000; ++k) {
        const unsigned long long bits = next();
        const double share = (double)(bits >> 11) / 9007199254740992.0;
        if (k % 3) in.t = move_START - 0.1 + (move_END - move_START + 0.2) * share;
        else memcpy(&in.t, &bits, sizeof bits); /* any double there is */
        if (k % 1000 == 0) for (i = 0; i < sizeof self; ++i) ((unsigned char *)&self)[i] = (unsigned char)next();
        memset(&out, 0xff, sizeof out);
        bad += move_step(&self, &in, &out) == move_BAD_TIME;
        for (i = 0; i < sizeof out.q / sizeof out.q[0]; ++i)
            if (!(out.q[i] > -1e6 && out.q[i] < 1e6) || !(out.dv[i] > -1e9 && out.dv[i] < 1e9)) return 1;
    }
    printf("%ld\\n", bad);
    return 0;
}
"""


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("precision", ["double", "single"])
def test_a_million_times_of_all_kinds_under_sanitizers(precision, tmp_path):
    """Any double as the time, and instances of random bytes: outputs stay those of the motion."""
    code = od.codegen_player(smooth(), tmp_path / "move", precision=precision)
    (code.folder / "fuzz.c").write_text(FUZZ)
    flags = ["-g", "-O1", "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"]
    made = subprocess.run(["cc", *flags, "-o", "fuzz", "move.c", "fuzz.c", "-lm"], cwd=code.folder, capture_output=True)
    if made.returncode:
        pytest.skip("the compiler has no sanitizers")
    done = subprocess.run([str(code.folder / "fuzz")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100


@pytest.mark.slow
@needs_compiler
def test_names_of_joints_may_be_anything(tmp_path):
    plain = smooth()
    joints = ("*/ int x; /*", "ü \\", 'a"b\n#error no')
    for names in (joints, *(hostile.names(np.random.default_rng(seed), 3) for seed in range(8))):
        motion = od.Trajectory(plain.t, plain.pieces, joints=names, units=names)
        code = od.codegen_player(motion, tmp_path / "move", derivatives=1)
        assert "passed" in code.test(flags=STRICT)
