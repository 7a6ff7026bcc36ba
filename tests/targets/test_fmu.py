"""od.fmu: units of FMI 3.0 that fmpy accepts and runs, with the numbers of Python."""

import subprocess
import zipfile

import casadi as ca
import hostile
import numpy as np
import pytest
from players import COMPILER, needs_compiler, smooth

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.elastic.closed_loop import ClosedLoop, torque_limits
from oc_dyn.elastic.dop853 import fixed_step
from oc_dyn.robots import planar_arm
from oc_dyn.targets.fmu_description import Variable, apart, exponents, names_of

fmpy = pytest.importorskip("fmpy", reason="needs fmpy")
pytestmark = needs_compiler
H = 2e-3


class Unit:
    """An FMU, unpacked once, of which instances can be made."""

    def __init__(self, path):
        self.path, self.model = path, fmpy.read_model_description(str(path))
        self.folder = fmpy.extract(str(path), unzipdir=str(path.with_suffix("")))
        self.at = {v.name: v.valueReference for v in self.model.modelVariables}

    def instance(self, start=0.0, token=None):
        from fmpy.fmi3 import FMU3Slave

        one = FMU3Slave(
            guid=token or self.model.instantiationToken,
            unzipDirectory=self.folder,
            modelIdentifier=self.model.coSimulation.modelIdentifier,
            instanceName="one",
        )
        one.instantiate(loggingOn=False)
        if start is not None:
            one.enterInitializationMode(startTime=start)
            one.exitInitializationMode()
        return one

    def references(self, member):
        return [r for name, r in self.at.items() if name == member or name.startswith((f"{member}.", f"{member}["))]

    def set(self, one, **values):
        for member, value in values.items():
            one.setFloat64(self.references(member), np.ravel(value, order="F").tolist())

    def get(self, one, member):
        return np.array(one.getFloat64(self.references(member)))

    def status(self, one):
        return one.getInt32([self.at["status"]])[0]


def problems_of(path):
    from fmpy.validation import validate_fmu

    return validate_fmu(str(path))


def arm_with_motors(name="linear"):
    if name == "mixed":  # a rigid joint: the law has a memory
        springs = {"joint1": 500, "joint3": 300}
        return el.elastic_robot(planar_arm(3), springs, motor_inertia={"joint1": 0.5, "joint2": 0.3, "joint3": 0.2})
    return el.elastic_robot(planar_arm(3), [500.0, 400.0, 300.0], motor_inertia=[0.5, 0.3, 0.2])


def swing(t):
    return ca.vertcat(
        *(a + b * (1 - ca.cos(w * t)) for a, b, w in ((-0.8, 0.6, 2.0), (0.4, 0.5, 2.6), (0.5, 0.7, 3.2)))
    )


@pytest.fixture(scope="module")
def law(tmp_path_factory):
    """(law, Unit) of feedback linearisation with a memory and limits of torque."""
    controller = el.feedback_linearization(arm_with_motors("mixed"), 20.0)
    path = tmp_path_factory.mktemp("law") / "law.fmu"
    return controller, Unit(od.fmu(controller, path, period=H, torque_limit=15.0, flags=("-O0",)))


def states_of(loop, x):
    return {n: x[part] for n, part in loop.plant.parts.items() if n in loop.controller.function.name_in()}


def closed_loop(unit, controller, steps):
    """(states, torques) of a unit with the simulated robot."""
    reference = el.reference(controller.elastic, swing, duration=1.0)
    loop = ClosedLoop(controller.elastic, controller, reference, torque_limits(controller, 15.0))
    robot, x = fixed_step(loop.held_rates(), 1), loop.first_state(None)
    one, states, torques = unit.instance(), [], []
    for k in range(steps):
        wanted = {f"{n}_ref": v[:, 0] for n, v in reference.at([k * H]).items() if n in controller.reference_names}
        unit.set(one, **wanted, **states_of(loop, x))
        one.doStep(k * H, H)
        assert unit.status(one) == 0
        states.append(x[: loop.plant.size])
        torques.append(unit.get(one, "tau_m"))
        held = np.concatenate([torques[-1], np.zeros(robot.numel_in(3) - 3)])
        x = np.array(robot(k * H, x, H, held)).ravel()
    return np.array(states), np.array(torques), reference


@pytest.mark.slow
def test_a_law_in_closed_loop_is_that_of_python(law):
    """Memory and limits of torque included: equal to simulate to 1e-9."""
    controller, unit = law
    assert problems_of(unit.path) == []
    states, torques, reference = closed_loop(unit, controller, 60)
    run = el.simulate(controller.elastic, controller, reference, sample_time=H, dt=H, torque_limit=15.0, duration=0.2)
    assert np.abs(states - run.states[:60]).max() < 1e-9 * np.abs(run.states).max()
    assert np.abs(torques - run.tau_m[:60]).max() < 1e-9 * np.abs(run.tau_m).max()
    assert np.abs(torques).max() == 15.0


def test_variables_have_units_and_names_of_joints(law):
    _, unit = law
    told = {v.name: v for v in unit.model.modelVariables}
    for name, sign in (("q.joint2", "rad"), ("dv_ref.joint1", "rad/s2"), ("tau_m.joint3", "Nm"), ("time", "s")):
        assert told[name].unit == sign
    assert told["torque_limit.joint1"].causality == "parameter"
    assert float(told["torque_limit.joint1"].start) == 15.0
    assert told["q.joint1"].causality == "input"
    assert told["saturated.joint1"].type == "Int32"
    assert unit.model.coSimulation.fixedInternalStepSize in (H, str(H))
    known = {u.name: u.baseUnit for u in unit.model.unitDefinitions}
    assert (known["Nm"].kg, known["Nm"].m, known["Nm"].s) == (1, 2, -2)
    assert (known["rad/s2"].rad, known["rad/s2"].s) == (1, -2)


def inputs(unit, seed):
    rng = np.random.default_rng(seed)
    return {v.name: float(rng.uniform(-0.3, 0.3)) for v in unit.model.modelVariables if v.causality == "input"}


def after(unit, one, given, k, steps=1):
    """Torques after setting inputs and a step."""
    one.setFloat64([unit.at[n] for n in given], list(given.values()))
    one.doStep(k * H, steps * H)
    return unit.get(one, "tau_m").tolist()


def test_instances_are_independent(law):
    _, unit = law
    one, two, alone = (unit.instance() for _ in range(3))
    first, second = [inputs(unit, k) for k in range(5)], [inputs(unit, 100 + k) for k in range(5)]
    expected = [after(unit, alone, x, k) for k, x in enumerate(first)]
    found = []
    for k in range(5):
        found.append(after(unit, one, first[k], k))
        after(unit, two, second[k], k)
    assert found == expected


def test_reset_and_saved_states_go_on_as_before(law):
    _, unit = law
    one, given = unit.instance(), [inputs(unit, k) for k in range(6)]
    expected = [after(unit, one, x, k) for k, x in enumerate(given)]
    one.reset()
    one.enterInitializationMode(startTime=0.0)
    one.exitInitializationMode()
    assert [after(unit, one, x, k) for k, x in enumerate(given[:3])] == expected[:3]
    kept = one.getFMUState()
    data = one.serializeFMUState(kept)
    assert [after(unit, one, x, 3 + k) for k, x in enumerate(given[3:])] == expected[3:]
    one.setFMUState(kept)
    assert [after(unit, one, x, 3 + k) for k, x in enumerate(given[3:])] == expected[3:]
    one.freeFMUState(kept)
    one.freeInstance()
    two = unit.instance()  # nothing in a state leads back to the instance that it was taken from
    two.setFMUState(two.deserializeFMUState(data))
    assert [after(unit, two, x, 3 + k) for k, x in enumerate(given[3:])] == expected[3:]


def test_numbers_that_are_none_give_a_status_and_safe_outputs(law):
    _, unit = law
    one, given = unit.instance(), inputs(unit, 1)
    for k, bad in enumerate((np.nan, np.inf, -np.inf)):
        torques = after(unit, one, {**given, "q.joint2": bad}, k)
        assert unit.status(one) != 0
        assert torques == [0.0, 0.0, 0.0]
    after(unit, one, given, 3)
    assert unit.status(one) == 0


def test_parameters_can_be_changed_between_steps(law):
    _, unit = law
    one = unit.instance()
    far = {**inputs(unit, 1), "q_ref.joint1": 50.0}
    assert max(np.abs(after(unit, one, far, 0))) == 15.0
    unit.set(one, torque_limit=[1.0, 2.0, 3.0])
    assert (np.abs(after(unit, one, far, 1)) <= [1.0, 2.0, 3.0]).all()
    assert np.abs(unit.get(one, "torque_limit")).tolist() == [1.0, 2.0, 3.0]


def test_communication_steps_of_any_length(law):
    """The law steps at multiples of its period that a communication step begins at or contains."""
    _, unit = law
    given = inputs(unit, 4)
    one, two, three = (unit.instance(start=7.0) for _ in range(3))
    for one_ in (one, two, three):
        one_.setFloat64([unit.at[n] for n in given], list(given.values()))
    one.doStep(7.0, 5 * H)
    t = 7.0
    for k in range(5):
        two.doStep(7.0 + k * H, H)
    while t < 7.0 + 5 * H - 1e-9:
        three.doStep(t, 0.3 * H if t < 7.0 + 4.6 * H else 7.0 + 5 * H - t)
        t = three.getFloat64([0])[0]
    assert unit.get(one, "tau_m").tolist() == unit.get(two, "tau_m").tolist() == unit.get(three, "tau_m").tolist()


def refused(call, *arguments):
    with pytest.raises(fmpy.fmi1.FMICallException if hasattr(fmpy.fmi1, "FMICallException") else Exception):
        call(*arguments)


def test_what_a_unit_refuses(law):
    _, unit = law
    with pytest.raises(Exception, match=r"instantiate|Failed"):
        unit.instance(token="{another}")
    one = unit.instance(start=None)
    refused(one.doStep, 0.0, H)  # not initialized
    refused(one.enterInitializationMode, None, float("nan"))
    one.enterInitializationMode(startTime=0.0)
    one.exitInitializationMode()
    refused(one.doStep, 1.0, H)  # another time
    refused(one.doStep, 0.0, -H)
    refused(one.doStep, 0.0, float("inf"))
    refused(one.doStep, 0.0, 1e9)  # more steps than a call makes
    refused(one.getFloat64, [9999])
    refused(one.getFloat64, [unit.at["status"]])
    refused(one.setFloat64, [unit.at["tau_m.joint1"]], [1.0])
    refused(one.setFloat64, [0], [1.0])
    refused(one.getInt32, [unit.at["q.joint1"]])
    refused(one.deserializeFMUState, b"nothing")
    one.doStep(0.0, H)


@pytest.mark.slow
def test_a_predictive_controller_in_closed_loop_is_that_of_python(tmp_path):
    from controllers import H as period
    from controllers import pendulum

    ocp, tau, plant, seen = pendulum(6)
    control = od.mpc(ocp, outputs={"tau": tau}, name="swing", output_bounds={"tau": (-100.0, 100.0)})
    options = {"joints": ["joint1", "joint2"], "units": {"q_now": "rad", "v_now": "rad/s", "tau": "Nm"}}
    unit = Unit(od.fmu(control, tmp_path / "swing.fmu", **options))
    assert problems_of(unit.path) == []
    one, x = unit.instance(), np.array([0.1, -0.2, 0.0, 0.0, 0.0])
    statuses = set()
    for k in range(30):
        given = {n: np.array(v) for n, v in zip(seen.name_out(), seen(x), strict=True)}
        expected = control.step({**given, "r": given["r"].T})
        unit.set(one, **given)
        one.doStep(k * period, period)
        assert unit.status(one) == expected["status"]
        statuses.add(int(expected["status"]))
        torque = np.ravel(expected["tau"])
        assert np.abs(unit.get(one, "tau") - torque).max() <= 1e-9 * np.abs(torque).max()
        x = np.array(plant(x, expected["tau"])).ravel()
    assert 0 in statuses
    one.setFloat64([unit.at["q_now.joint1"]], [float("nan")])
    one.doStep(30 * period, period)
    assert unit.status(one) == 2
    assert np.abs(unit.get(one, "tau")).max() <= 100.0


@pytest.mark.slow
def test_a_motion_is_a_source(tmp_path):
    motion = smooth()
    path = od.fmu(motion, tmp_path / "move.fmu", flags=("-O0",))
    assert problems_of(path) == []
    rows = fmpy.simulate_fmu(str(path), start_time=0.5, stop_time=1.5, step_size=0.01, output_interval=0.01)
    inside = (rows["time"] >= motion.t[0]) & (rows["time"] <= motion.t[-1])
    samples = motion.sample(rows["time"][inside])
    assert inside.sum() > 50
    assert rows["q.a"][inside] == pytest.approx(samples.q[:, 0], abs=1e-12)
    assert rows["d2v.c"][inside] == pytest.approx(samples.d2v[:, 2], abs=1e-9)
    assert set(rows["state"][~inside]) == {-1}


@pytest.mark.slow
def test_single_precision_has_the_same_interface(tmp_path):
    controller = el.feedforward_pd(arm_with_motors(), 200.0, 20.0)
    both = [
        Unit(od.fmu(controller, tmp_path / f"{p}.fmu", name="law", precision=p, torque_limit=100.0))
        for p in ("double", "single")
    ]
    assert list(both[0].at) == list(both[1].at)
    given = inputs(both[0], 3)
    double, single = (after(u, u.instance(), given, 0) for u in both)
    assert single == pytest.approx(double, rel=1e-4)
    assert single != double


@pytest.mark.slow
def test_files_are_the_same_each_time_and_compile_without_a_warning(tmp_path):
    paths = [od.fmu(smooth(), tmp_path / place / "move.fmu", flags=("-O0",)) for place in "ab"]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    with zipfile.ZipFile(paths[0]) as archive:
        archive.extractall(tmp_path / "inside")
    sources = tmp_path / "inside" / "sources"
    strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-O1"]
    for source in sources.glob("*.c"):
        subprocess.run([*COMPILER, *strict, "-c", source.name, "-o", "part.o"], cwd=sources, check=True)
    assert (sources / "buildDescription.xml").exists()


def test_what_is_refused(tmp_path):
    motion, law = smooth(), el.feedforward_pd(arm_with_motors(), 200.0, 20.0)
    with pytest.raises(od.ShapeError, match="expected one that ends with .fmu"):
        od.fmu(motion, tmp_path / "move")
    with pytest.raises(od.ShapeError, match=r"options wrong: .*unexpected keyword"):
        od.fmu(motion, tmp_path / "move.fmu", wrong=3)
    with pytest.raises(od.ShapeError, match="period is 0"):
        od.fmu(law, tmp_path / "law.fmu", period=0)
    with pytest.raises(od.UnknownName, match="'qq'"):
        od.fmu(law, tmp_path / "law.fmu", start={"qq": 0})
    with pytest.raises(od.ShapeError, match="start of q has 2 numbers, expected 3"):
        od.fmu(law, tmp_path / "law.fmu", start={"q": [0, 1]})
    with pytest.raises(od.ShapeError, match="got 3, expected a"):
        od.fmu(3, tmp_path / "three.fmu")
    assert list(tmp_path.iterdir()) == []


def test_names_are_structured_and_apart():
    assert names_of("q", 2, 1, ["a", "b"]) == ["q.a", "q.b"]
    assert names_of("q", 2, 1, ["left arm", "it's"]) == ["q.'left arm'", "q.'it\\'s'"]
    assert names_of("q", 2, 1, ["a", "ä"]) == ["q[1]", "q[2]"]
    assert names_of("K", 2, 2, ["a", "b"]) == ["K[1,1]", "K[2,1]", "K[1,2]", "K[2,2]"]
    assert names_of("x", 1, 1, []) == ["x"]
    made = apart(Variable(n, "REAL", "INPUT", "0") for n in ("time", "x.a", "x.a", "x.b"))
    assert [v.name for v in made] == ["time_", "x.a", "x_.a", "x.b"]


def test_units_by_base_units():
    assert exponents("Nm s/rad") == {"kg": 1, "m": 2, "s": -1, "rad": -1}
    assert exponents("rad/s2") == {"rad": 1, "s": -2}
    assert exponents("1") == {}
    assert exponents("1/s/s") == {"s": -2}
    assert exponents("furlong") is None


DRIVER = """
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
void *fmi3InstantiateCoSimulation(const char *, const char *, const char *, bool, bool, bool, bool, const uint32_t *,
                                  size_t, void *, void (*)(void *, int, const char *, const char *), void (*)(void));
void fmi3FreeInstance(void *);
int fmi3EnterInitializationMode(void *, bool, double, double, bool, double), fmi3ExitInitializationMode(void *);
int fmi3Reset(void *), fmi3DoStep(void *, double, double, bool, bool *, bool *, bool *, double *);
int fmi3SetFloat64(void *, const uint32_t *, size_t, const double *, size_t);
int fmi3GetFloat64(void *, const uint32_t *, size_t, double *, size_t);
int fmi3GetFMUState(void *, void **), fmi3SetFMUState(void *, void *), fmi3FreeFMUState(void *, void **);
int fmi3SerializedFMUStateSize(void *, void *, size_t *), fmi3SerializeFMUState(void *, void *, uint8_t *, size_t);
int fmi3DeserializeFMUState(void *, const uint8_t *, size_t, void **);
static double noise(void) { return (double)rand() / RAND_MAX - 0.5; }
static void start(void *it) {
    fmi3EnterInitializationMode(it, false, 0, 0, false, 0);
    fmi3ExitInitializationMode(it);
}
int main(void) {
    static const uint32_t torques[3] = {TORQUES};
    void *it = fmi3InstantiateCoSimulation("a", TOKEN, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), *saved = 0;
    uint8_t *bytes = 0;
    size_t size = 0;
    double t = 0, out[3];
    long k, bad = 0;
    if (!it || fmi3InstantiateCoSimulation("a", "other", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)) return 1;
    start(it);
    for (k = 0; k < 30000; ++k) {
        const uint32_t reference = (uint32_t)(rand() % 80);
        const double odd[] = {noise(), 1e300 * noise(), (double)NAN, (double)INFINITY, -(double)INFINITY, 0.0};
        const double value = odd[rand() % 20 < 15 ? 0 : rand() % 6], length = rand() % 50 ? PERIOD : odd[rand() % 6];
        int i;
        fmi3SetFloat64(it, &reference, 1, &value, 1);
        if (!fmi3DoStep(it, t, length, 0, 0, 0, 0, &t)) {
            if (fmi3GetFloat64(it, torques, 3, out, 3)) return 2;
            for (i = 0; i < 3; ++i) if (!(fabs(out[i]) <= 15.0)) return 3;
        } else ++bad;
        if (k % 500 == 0) { /* a state from bytes of another instance, at times with some of them changed */
            fmi3GetFMUState(it, &saved);
            fmi3SerializedFMUStateSize(it, saved, &size);
            bytes = (uint8_t *)realloc(bytes, size);
            fmi3SerializeFMUState(it, saved, bytes, size);
            fmi3FreeInstance(it);
            it = fmi3InstantiateCoSimulation("a", TOKEN, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
            if (k % 1000 == 0) for (i = 0; i < 20; ++i) bytes[40 + rand() % (int)(size - 40)] = (uint8_t)rand();
            if (!fmi3DeserializeFMUState(it, bytes, size, &saved)) fmi3SetFMUState(it, saved);
            else { if (k % 1000) return 5; start(it); t = 0; }
            fmi3FreeFMUState(it, &saved);
            if (fmi3GetFloat64(it, (const uint32_t[]){0}, 1, &t, 1)) return 4;
        }
        if (k % 700 == 0) { fmi3Reset(it); start(it); t = 0; }
    }
    free(bytes);
    fmi3FreeInstance(it);
    printf("%ld\\n", bad);
    return 0;
}
"""


@pytest.mark.slow
def test_anything_that_is_set_and_any_saved_bytes_under_sanitizers(law, tmp_path):
    """Torques stay within their limit whatever inputs, parameters, step lengths and saved states are."""
    _, unit = law
    with zipfile.ZipFile(unit.path) as archive:
        archive.extractall(tmp_path)
    sources = tmp_path / "sources"
    text = DRIVER.replace("TORQUES", ", ".join(map(str, unit.references("tau_m"))))
    text = text.replace("TOKEN", f'"{unit.model.instantiationToken}"').replace("PERIOD", repr(H))
    (sources / "driver.c").write_text(text)
    flags = ["-std=c99", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    command = [*COMPILER, *flags, "-o", "driver", *(x.name for x in sources.glob("*.c")), "-lm"]
    if subprocess.run(command, cwd=sources, capture_output=True).returncode:
        pytest.skip("the compiler has no sanitizers")
    done = subprocess.run([str(sources / "driver")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 0


@pytest.mark.slow
def test_names_of_joints_may_be_anything(tmp_path):
    plain = smooth()
    joints = ("*/ int x; /*", "it's <b> & \\ \"", "a b")
    motion = od.Trajectory(plain.t, plain.pieces, joints=joints, units=["rad", "m", "]]>&<"])
    path = od.fmu(motion, tmp_path / "move.fmu", derivatives=1, flags=("-O0",))
    assert problems_of(path) == []
    rows = fmpy.simulate_fmu(str(path), start_time=0.7, stop_time=0.8, step_size=0.05)
    assert "q.'a b'" in rows.dtype.names
    for seed in range(8):
        names = hostile.names(np.random.default_rng(seed), 3)
        other = od.Trajectory(plain.t, plain.pieces, joints=names, units=hostile.names(np.random.default_rng(seed), 3))
        assert problems_of(od.fmu(other, tmp_path / "hostile.fmu", derivatives=0, flags=("-O0",))) == []
    other = od.Trajectory(plain.t, plain.pieces, joints=("a", "ä\x1b", "c"), units=["rad"] * 3)
    path = od.fmu(other, tmp_path / "other.fmu", derivatives=0, flags=("-O0",))
    assert problems_of(path) == []
    assert "q[2]" in [v.name for v in fmpy.read_model_description(str(path)).modelVariables]
