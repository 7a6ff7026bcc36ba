"""What the equations of an elastic robot contain: unknowns, and what is known, in one vector with names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ... import validation
from ...errors import ModelError, ShapeError, UnknownName
from ...model.loops import LoopRobot
from ...regressor.base_parameters import BaseParameters, base_parameters
from ...types import Array
from ..callables import FAILURES, failure
from ..model import ElasticRobot
from ..springs import LinearSpring, NonlinearSpring

LINKS = ("known", "identified", "unused")
TRANSMISSIONS = ("gear", "encoder")
Basis = tuple[Callable[[Any], Any], ...]
_Z = ca.SX.sym("z")


@dataclass(frozen=True, eq=False)
class Unknowns:
    """Rows of the vector x by quantity: {quantity: rows}, one per motor, joint or velocity; names (x,); start (x,): the
    values of the robot given; asked: rows that are to be identified."""

    elastic: ElasticRobot
    rows: dict[str, tuple[int, ...]]
    names: tuple[str, ...]
    start: Array
    asked: tuple[int, ...]
    bases: tuple[Basis, ...]  # one per elastic joint
    spring_rows: tuple[tuple[int, ...], ...]
    inertias: tuple[tuple[int, int], ...]  # entries of the motor inertia, one per row "motor_inertia"
    links: str
    transmission: str | None
    base: BaseParameters | None

    def of(self, x: Any, quantity: str) -> Any:
        """Entries of x (x,) that belong to a quantity."""
        rows = list(self.rows[quantity])
        return x[rows] if rows else x[:0]

    def motor_inertia(self, x: Any) -> list[list[Any]]:
        """Rows of the symmetric matrix of motor inertias."""
        m = len(self.elastic.elastic_motors)
        B: list[list[Any]] = [[0.0] * m for _ in range(m)]
        for row, (i, k) in zip(self.rows["motor_inertia"], self.inertias, strict=True):
            B[i][k] = B[k][i] = x[row]
        return B


class _Rows:
    """Names and values that come in one after the other."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.values: list[float] = []
        self.asked: list[int] = []

    def add(self, names: Sequence[str], values: Any, asked: bool) -> tuple[int, ...]:
        """Rows of what is added."""
        first = len(self.names)
        self.names += names
        self.values += [float(v) for v in values]
        rows = tuple(range(first, first + len(names)))
        self.asked += rows if asked else ()
        return rows


def unknowns(
    elastic: ElasticRobot, springs: Any, links: str, *, motor_inertia: bool, motor_friction: bool, spring_damping: bool,
    link_friction: bool, transmission: str | None, known: Mapping[str, float] | None, motors: bool, sensors: bool,
    link_rows: bool, offsets: bool,
) -> Unknowns:  # fmt: skip
    """Unknowns of a robot. motors, sensors, link_rows: whether any recording has equations of that kind;
    offsets: whether their constants are parameters; else the zeros of the deflections of curved springs are."""
    _refuse(elastic, links)
    bases, starts = _bases(elastic, springs)
    out, rows, names = _Rows(), {}, [j.name for j in elastic.joints]
    inertias = [(i, k) for i, k in zip(*np.nonzero(np.triu(elastic.motor_inertia)), strict=True)]
    inertias = [(int(i), int(k)) for i, k in inertias]
    theta = elastic.theta_names
    titles = [f"motor_inertia {theta[i]}" + (f", {theta[k]}" if i != k else "") for i, k in inertias]
    B = [elastic.motor_inertia[i, k] for i, k in inertias]
    rows["motor_inertia"] = out.add(titles, B, motors and motor_inertia)
    spring_rows = []
    for j, basis, start in zip(elastic.joints, bases, starts, strict=True):
        words = [f"stiffness {j.name}" + (f" ({k + 1})" if len(basis) > 1 else "") for k in range(len(basis))]
        spring_rows.append(out.add(words, start, True))
    frictions = {"motor_damping": elastic.motor_damping, "motor_friction": elastic.motor_friction}
    driven = motors or (link_rows and bool(elastic.rigid_motors))
    for quantity, values in frictions.items():
        rows[quantity] = out.add([f"{quantity} {n}" for n in elastic.motor_names], values, driven and motor_friction)
    dampers = [j.spring.damping for j in elastic.joints]
    rows["spring_damping"] = out.add([f"spring_damping {n}" for n in names], dampers, spring_damping)
    rows["transmission"] = out.add([f"transmission {n}" for n in names], np.ones(len(names)), transmission is not None)
    for quantity in ("link_damping", "link_friction"):
        values = np.broadcast_to(getattr(elastic, quantity, 0.0), elastic.nv)
        titles = [f"{quantity} {n}" for n in elastic.links.velocity_names]
        rows[quantity] = out.add(titles, values, link_rows and link_friction)
    base = base_parameters(elastic.links) if links == "identified" else None
    rows["base"] = out.add(base.names, base.values, link_rows) if base else ()
    curved = [any(not ca.is_linear(f(_Z), _Z) for f in basis) for basis in bases]
    zeros = [out.add([f"zero {n}"], [0.0], curved[k] and not offsets) for k, n in enumerate(names)]
    rows["zero"] = tuple(row for (row,) in zeros)
    constants = {
        "motor_offset": (theta, motors),
        "link_offset": (elastic.links.velocity_names, link_rows),
        "sensor_offset": (names, sensors),
    }
    for quantity, (owners, asked) in constants.items():
        titles = [f"{quantity} {n}" for n in owners]
        rows[quantity] = out.add(titles, np.zeros(len(owners)), asked and offsets)
    start, asked = _with_known(out, known)
    return Unknowns(
        elastic, rows, tuple(out.names), start, asked, bases, tuple(spring_rows), tuple(inertias), links, transmission,
        base,
    )  # fmt: skip


def _with_known(out: _Rows, known: Mapping[str, float] | None) -> tuple[Array, tuple[int, ...]]:
    """(start, rows asked for) with the values that are given."""
    start, asked = np.array(out.values), list(out.asked)
    for name, value in validation.options_of("identify_elastic: known", known).items():
        row = out.names.index(validation.one_of("parameter of the elastic robot", name, out.names))
        start[row] = validation.number(f"identify_elastic: known {name}", value)
        asked = [k for k in asked if k != row]
    if not asked:
        raise ShapeError("identify_elastic: all parameters are known; nothing is left to identify")
    return start, tuple(asked)


def _refuse(elastic: ElasticRobot, links: str) -> None:
    """ModelError for robots that cannot be identified here, saying what to do instead."""
    problems = []
    if elastic.coupling:
        problems.append("the complete model (coupling) cannot be identified; leave coupling out")
    if isinstance(elastic.robot, LoopRobot):
        problems.append("robots with loops cannot be identified; identify each drive as a robot of one joint")
    elif elastic.nq != elastic.nv:
        problems.append("only joints of one coordinate can be identified; hold the others with Robot.locked")
    if elastic.across is not None:
        problems.append("springs across joints, or a matrix of stiffness, cannot be identified; only each joint's own")
    if elastic.effects:
        laws = ", ".join(sorted({f"{type(x.law).__name__} at {x.name}" for x in elastic.effects}))
        problems.append(f"laws for simulation alone ({laws}) cannot be identified; take without_laws()")
    if not elastic.joints:
        problems.append("no joint is elastic; use oc_dyn.identification.identify")
    odd = [j.name for j in elastic.joints if len(j.theta) > 1 or j.spring.variable]
    if odd:
        problems.append(
            f"the stiffness of {', '.join(odd)} varies; identify it at constant stiffness, as a NonlinearSpring"
        )
    if problems:
        raise ModelError(elastic.name, problems)


def _bases(elastic: ElasticRobot, springs: Any) -> tuple[tuple[Basis, ...], list[list[float]]]:
    """(functions of the deflection, their factors to start from) of each elastic joint."""
    given = dict(springs) if isinstance(springs, Mapping) else {j.name: springs for j in elastic.joints}
    names = [j.name for j in elastic.joints]
    for name in given:
        if name not in names:
            raise UnknownName(f"elastic joint of {elastic.name}", name, names)
    bases, starts = [], []
    for j in elastic.joints:
        basis = _basis(j.name, j.spring, given.get(j.name))
        if given.get(j.name) is None:
            start = [j.spring.stiffness if isinstance(j.spring, LinearSpring) else 1.0]
        else:
            start = _fitted(j.spring, basis)
        bases.append(basis)
        starts.append(start)
    return tuple(bases), starts


def _basis(joint: str, spring: Any, wanted: Any) -> Basis:
    where = f"identify_elastic: springs, {joint}"
    if wanted is None:
        if isinstance(spring, NonlinearSpring):
            return (lambda z: spring.torques([z], ca.DM(0, 1))[0],)
        return (_power(1),)
    if isinstance(wanted, (int, np.integer)):
        return tuple(_power(k + 1) for k in range(validation.count(where, wanted, 1, 15)))
    if not isinstance(wanted, (tuple, list)) or not wanted or not all(callable(f) for f in wanted):
        raise ShapeError(f"{where}: expected a degree of a polynomial or a list of functions of the deflection")
    for f in wanted:
        try:
            value = f(ca.SX.sym("z"))
        except FAILURES as error:
            raise ShapeError(f"{where}: a function of the basis fails on a casadi.SX: {failure(error)}") from error
        if not isinstance(value, (ca.SX, float, int)) or ca.SX(value).numel() != 1:
            raise ShapeError(f"{where}: a function of the basis does not give one value, written with casadi")
    return tuple(wanted)


def _power(k: int) -> Callable[[Any], Any]:
    return lambda z: z**k


def _fitted(spring: Any, basis: Basis) -> list[float]:
    """Factors with which a basis comes near a spring's law, at deflections up to 0.1: where the iteration begins."""
    z = ca.SX.sym("z")
    f = ca.Function("basis", [z], [ca.vertcat(*(b(z) for b in basis)), spring.torques([z], ca.DM(0, 1))[0]])
    at = np.linspace(-0.1, 0.1, 41).reshape(1, -1)
    W, y = (x.full() for x in f.map(41)(at))
    length = np.linalg.norm(W, axis=1)
    if not (np.isfinite(W).all() and (length > 0).all()):
        raise ShapeError("identify_elastic: springs: a function of a basis is zero, or not finite, from -0.1 to 0.1")
    found = np.linalg.lstsq((W / length[:, None]).T, y.ravel(), rcond=1e-10)[0] / length
    return [float(x) for x in found]
