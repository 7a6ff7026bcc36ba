"""Units of ports are right: numbers of a robot in other units of length, mass and time scale as the units say."""

import re

import numpy as np
import pytest
from samples import rotation, scene

import oc_dyn as od
from oc_dyn.ports import derivative_unit, quotient_unit
from oc_dyn.registry import get

LENGTH, MASS, TIME = 2.0, 3.0, 5.0  # such that no two different units scale alike
SCALE = {"m": LENGTH, "kg": MASS, "s": TIME, "rad": 1.0, "1": 1.0}
SCALE["N"] = MASS * LENGTH / TIME**2
SCALE["Nm"] = SCALE["J"] = SCALE["N"] * LENGTH
SCALE |= {f"{name}{k}": SCALE[name] ** k for name in ("m", "s") for k in range(2, 7)}
KINDS = {
    "arm": ["revolute", "prismatic", "revolute"],
    "floating": ["revolute", "prismatic"],
    "ball": ["spherical", "revolute", "prismatic"],
}
PER_BODY = {"mass": "kg", "m": "kg m", "I": "kg m2"}


def alternatives(text):
    """Factors of the units that a text lists, in order: of "Nm, N", of "(Nm, N)/(rad, m)", of "1/(kg m2), 1/kg"."""
    words = re.findall(r"[A-Za-z0-9]+|[(),/]", text)
    found = _listed(words)
    assert not words, text
    return found


def _listed(words):
    found = _product(words)
    while words and words[0] == ",":
        words.pop(0)
        found += _product(words)
    return found


def _product(words):
    found = _one(words)
    while words and words[0] not in ",)":
        power = -1 if words[0] == "/" else 1
        del words[: power == -1]
        factors = _one(words)
        found = [x * y**power for x in found for y in factors]
    return found


def _one(words):
    word = words.pop(0)
    if word != "(":
        return [SCALE[word]]
    found = _listed(words)
    assert words.pop(0) == ")"
    return found


def test_units_are_read():
    assert alternatives("Nm/s2, N") == [SCALE["Nm"] / TIME**2, SCALE["N"]]
    assert alternatives("(Nm, N)/(rad, m)") == [SCALE["Nm"], SCALE["Nm"] / LENGTH, SCALE["N"], SCALE["N"] / LENGTH]
    assert alternatives("1/(kg m2)") == [1 / MASS / LENGTH**2]
    assert alternatives("Nm s/rad") == [SCALE["Nm"] * TIME]
    assert derivative_unit("rad/s, m/s", 2) == "rad/s3, m/s3"
    assert derivative_unit("1, m", 1) == "1/s, m/s"
    assert quotient_unit("Nm, N", "rad, m", "rad/s, m/s") == "(Nm, N)/((rad, m)(rad/s, m/s))"
    assert quotient_unit("J", "m") == "J/m"


def made(name, length=1.0, mass=1.0, time=1.0):
    """The robot, in other units."""
    rng = np.random.default_rng(3)
    b = od.RobotBuilder(name)
    for k in range(len(KINDS[name]) + 1):
        half = np.diag(rng.uniform(0.1, 0.2, 3))
        b.add_link(
            f"link{k}",
            mass=mass * (1 + k),
            com=length * rng.uniform(-0.3, 0.3, 3),
            inertia=mass * length**2 * half,
        )
    for k, kind in enumerate(KINDS[name]):
        turning = length**2 if kind != "prismatic" else 1.0
        b.add_joint(
            f"joint{k + 1}",
            kind,
            f"link{k}",
            f"link{k + 1}",
            xyz=length * rng.uniform(-0.5, 0.5, 3),
            rotation=rotation(rng),
            armature=0.2 * mass * turning,
            damping=0.3 * mass * turning / time,
            **({} if kind == "spherical" else {"axis": rng.normal(size=3)}),
        )
    r = b.build(floating_base=name == "floating")
    return r.with_gravity(np.array([1.0, -2.0, -9.0]) * length / time**2)


def is_linear(robot, row):
    """Whether a row of q, v or tau, by its name, is a length, a linear velocity or a force."""
    if " - " in row:  # a pair of shapes, whose distances have one unit
        return False
    name, _, component = row.partition(".")
    return component in ("x", "y", "z", "vx", "vy", "vz") or (not component and robot.joint(name).kind == "prismatic")


def row_factors(robot, port, inputs=()):
    """(rows, 1) factors of an input: of the units that differ, the first is that of angular rows."""
    rows = port.shape[0]
    if port.name == "z":
        return _of_rows(robot, port, inputs)[:, None]
    if port.name == "params":
        return np.array([[_of_parameter(robot, name)] for name in port.rows])
    units = alternatives(port.unit)
    if port.name.endswith("w_ext"):
        return np.repeat(units, 3)[:, None]
    assert len(port.rows) == rows
    return np.array([[units[int(is_linear(robot, row))]] for row in port.rows])


def _of_parameter(robot, name):
    owner, _, what = name.rpartition(".")
    kinds = {"armature": ("kg m2", "kg"), "viscous": ("Nm s/rad", "N s/m")}
    if what in kinds:
        return alternatives(kinds[what][int(is_linear(robot, owner))])[0]
    return alternatives(PER_BODY["mass" if what == "mass" else what[0]])[0]


def options_of(quantity, length=1.0):
    known, out = get(quantity).options, {}
    out |= {"scene": scene(length)} if "scene" in known else {}
    out |= {"external_wrenches": True} if "external_wrenches" in known else {}
    out |= {"frame": "link2"} if "frame" in known else {}
    out |= {"representation": "spatial"} if "frame" in known and "representation" in known else {}
    out |= {"prescribed": ("joint1", "joint2")} if "prescribed" in known else {}
    out |= {"columns": ("inertia", "armature", "viscous")} if "columns" in known else {}
    if "parameters" in known:
        out["parameters"] = ("inertia", "armature")
    if "friction" in known and quantity != "forward_dynamics":
        out["friction"] = True
    return out


def values(robot, inputs, factors=None):
    """{port: numbers} drawn alike for every unit."""
    rng = np.random.default_rng(11)
    out = {}
    for p in inputs:
        x = rng.normal(size=p.shape)
        if p.name == "q":
            x = robot.random_configuration(seed=5).reshape(-1, 1)
        if p.name == "params":
            x = robot.parameter_values(("inertia", "armature")).reshape(-1, 1)
        out[p.name] = x if factors is None or p.name == "params" else x * factors[p.name]
    return out


@pytest.mark.few(14)
@pytest.mark.sample("dynamic_matrices", "inverse_dynamics", "com_jacobian", "mass_matrix", "mass_matrix_inverse")
@pytest.mark.parametrize("quantity", od.quantities("robot"))
def test_results_scale_as_their_units_say(quantity):
    order = 1 if get(quantity).max_order is None and quantity != "forward_dynamics" else 0
    reached, plain = {}, {}
    for name in KINDS:
        one, other = made(name), made(name, LENGTH, MASS, TIME)
        options = options_of(quantity)
        inputs, outputs = od.ports(one, quantity, order, **options)
        factors = {p.name: row_factors(one, p, inputs) for p in inputs}
        point = values(one, inputs)
        scaled = values(other, inputs, factors)
        scaled["q"] = point["q"] * factors["q"]
        if "params" in point:
            assert np.allclose(scaled["params"], point["params"] * factors["params"])
        before = od.function(one, quantity, order=order, **options)(**point)
        after = od.function(other, quantity, order=order, **options_of(quantity, LENGTH))(**scaled)
        for p in outputs:
            x, y = before[p.name].full(), after[p.name].full()
            large = np.abs(x) > 1e-8 * np.abs(x).max(initial=0.0)
            ratios = y[large] / x[large]
            if p.name == "Hz":
                assert np.allclose(ratios, 1 / _of_rows(one, p, inputs)[:, None][large], rtol=1e-6)
                continue
            if p.name == "H":
                assert np.allclose(ratios, _of_hessian(one, p, inputs)[large], rtol=1e-6)
                continue
            allowed = np.array(alternatives(p.unit))
            off = np.abs(ratios[:, None] / allowed - 1).min(axis=1, initial=np.inf)
            assert off.max(initial=0.0) < 1e-6, (p.name, p.unit)
            nearest = np.abs(ratios[:, None] / allowed - 1).argmin(axis=1) if ratios.size else []
            reached.setdefault(p.name, set()).update(round(allowed[k], 12) for k in nearest)
            if "(" not in p.unit:
                plain[p.name] = {round(x, 12) for x in allowed}
            if len(p.rows) == p.shape[0] and p.shape[1] == 1 and "(" not in p.unit:  # angular rows have the first unit
                rows = np.array([[allowed[int(is_linear(one, row))]] for row in p.rows])
                assert np.allclose(ratios, rows[large], rtol=1e-6), p.name
    for name, units in plain.items():
        assert reached[name] == units, f"{name}: a unit that no entry has"


def _of_hessian(robot, port, inputs):
    """Factors of the entries of H: one over those of its row and column."""
    scales = _of_rows(robot, port, inputs)
    return 1 / np.outer(scales, scales)


def _of_rows(robot, port, inputs):
    """Factors of the arguments that the rows are about: "q joint1", "v joint1", ..."""
    of = {p.name: alternatives("rad, m" if p.name == "q" else p.unit) for p in inputs if p.name != "z"}
    scales = []
    for row in port.rows:
        by, velocity = row.split(" ")
        scales.append(of[by][int(is_linear(robot, velocity))])
    return np.array(scales)
