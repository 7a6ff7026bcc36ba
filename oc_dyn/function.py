"""od.function: a quantity of a robot as a named casadi.Function."""

import re

import casadi as ca
import numpy as np

from .derivatives import analytic
from .errors import ModelError, OrderError, ShapeError, UnknownName
from .model.canonical import canonical
from .model.parameters import checked_parts, with_values
from .model.quaternions import check_quaternions, quaternions
from .model.robot import cached, check_robot
from .numbers import as_floats
from .ports import parameter_port
from .registry import CORIOLIS, choose, get, quantities
from .representation import converted, converts, described

_OPTIONS = {"external_wrenches": False, "friction": False, "frame": None, "prescribed": (), "representation": None}
_OPTIONS |= {"parameters": None, "columns": None, "coriolis": None}
_CONFIGURATIONS = ("q", "q0", "q1")  # ports whose quaternions are checked
_ABSURD = 1e9  # a result that is larger may come of a singular mass matrix, and is looked at


class RobotFunction(ca.Function):
    """A casadi.Function that checks what it is given and says which port and joint is meant.

    Behaves as its base class everywhere (map, Opti, code generation). Numbers may be numpy arrays (also flat or
    rows), lists or DM; symbols SX or MX; wrenches also {body: (6,)}. Ports left out count as zero, as in CasADi, and so
    does a 0; any other scalar is refused unless the port has one row. NaN is taken, and comes out.
    Quaternions given as numbers must be of unit length, unless it was made with normalize=True.
    """

    def __init__(self, base, names=None, columns=None, twin=None, regular=None, rotations=(), normalize=False):
        super().__init__(base)
        self._names = names or {}  # rows of a port: what they are called
        self._columns = columns or {}  # columns of a port: bodies
        self.twin = twin  # the same without registered derivatives, where there are any
        self.library = None  # path of the machine code, where it is compiled
        self.regular = regular  # raises ModelError at a q whose mass matrix is singular; None where it does not matter
        self.rotations, self.normalize = rotations, normalize  # quaternions of a q: ((joint, first row), ...)
        self.configurations = self._configurations()  # ports that hold them

    def with_base(self, base, twin=None):
        """`base`, a Function of the same ports, checked and named like this one."""
        return RobotFunction(base, self._names, self._columns, twin, self.regular, self.rotations, self.normalize)

    def normalizing(self):
        """The same Function, which takes quaternions of any length but zero for those of unit length."""
        return RobotFunction(self, self._names, self._columns, self.twin, self.regular, self.rotations, True)

    def __call__(self, *args, **ports):
        if args and ports:
            raise ShapeError(f"{self.name()}: give all ports by position or all by name, not both")
        if args and len(args) != self.n_in():
            raise ShapeError(f"{self.name()}: got {len(args)} arguments, expected {self.n_in()}: {self._signature()}")
        given = zip(self.name_in(), args, strict=True) if args else ports.items()
        checked = {name: self._check(name, value) for name, value in given}
        if not args and "params" in self.name_in() and "params" not in checked:
            own = "robot.parameter_values(parts), for the inertia alone robot.parameters"
            raise ShapeError(f"{self.name()}: port params is missing; the robot's own are {own}")
        if {ca.SX, ca.MX} <= {type(x) for x in checked.values()}:
            raise ShapeError(f"{self.name()}: got both SX and MX symbols; give one kind")
        for port in self.configurations:
            self._check_rotations(port, checked.get(port))
        try:
            found = super().__call__(*checked.values()) if args else super().__call__(**checked)
        except (NotImplementedError, RuntimeError):
            self._check_counts(checked)  # only now, for casadi compares them anyway
            raise
        if self.regular is not None:
            self._check_results(checked, found)
        return found

    def _signature(self):
        return ", ".join(f"{n}{list(self.size_in(i))}" for i, n in enumerate(self.name_in()))

    def _check(self, name, value):
        if name not in self.name_in():
            raise UnknownName(f"port of {self.name()}", name, self.name_in())
        rows, columns = self.size_in(name)
        if isinstance(value, dict):
            value = self._by_body(name, value)
        if not isinstance(value, (ca.SX, ca.MX, ca.DM)):
            try:
                value = as_floats(f"{self.name()}: port {name}", value)
            except ShapeError as error:
                raise ShapeError(f"{error}, SX or MX") from None
            if value.ndim < 2:
                value = value.reshape(-1, 1) if columns == 1 or value.size == rows else value.reshape(1, -1)
        got = tuple(value.shape)
        fits = len(got) == 2 and (
            (columns == 1 and got == (1, rows))
            or (got[0] == rows and (got[1] % columns == 0 if columns else not got[1]))
            or _is_zero(value)
        )
        if not fits:
            called = self._names.get(name)
            hint = f" for {', '.join(called)}" if called and len(called) <= 40 else ""
            hint += "; a single 0 stands for zeros, no other number for all rows" if got == (1, 1) else ""
            raise ShapeError(f"{self.name()}: port {name} got shape {got}, expected ({rows}, {columns}){hint}")
        return value

    def _check_results(self, given, found):
        """Raise ModelError, naming joints, where numbers came out of a mass matrix that is singular at their q."""
        results = found.values() if isinstance(found, dict) else found if isinstance(found, (tuple, list)) else (found,)
        if all(isinstance(y, ca.DM) and y.is_regular() and _largest(y) < _ABSURD for y in results):
            return
        numbers = {name: np.array(x, float) for name, x in given.items() if not isinstance(x, (ca.SX, ca.MX))}
        if len(numbers) < len(given) or not all(np.isfinite(x).all() for x in numbers.values()):
            return  # symbols; or NaN, which comes out as it went in
        q = numbers.get("q", np.zeros((1, 1)))
        q = np.repeat(q, self.size1_in("q")) if q.size == 1 else q  # a single 0 stands for zeros
        for point in q.reshape((self.size1_in("q"), -1), order="F").T:
            self.regular(point)

    def _check_counts(self, given):
        """Raise ShapeError where ports are given for different numbers of points, one beside the other."""
        found = {}
        for name, value in given.items():
            (rows, columns), got = self.size_in(name), value.shape
            if columns and got[0] == rows and got[1] > columns:
                found[name] = got[1] // columns
        if len(set(found.values())) > 1:
            said = ", ".join(f"port {name} of {count}" for name, count in found.items())
            raise ShapeError(f"{self.name()}: got {said} points; give each of as many points, or of one")

    def _configurations(self):
        return tuple(x for x in _CONFIGURATIONS if x in self.name_in()) if self.rotations else ()

    def _check_rotations(self, port, q):
        """Refuse quaternions that are numbers and not of unit length."""
        if isinstance(q, (ca.SX, ca.MX)):
            return
        if q is None:
            problem = f"port {port} is missing, but zero is no rotation of joint {self.rotations[0][0]}"
            raise ShapeError(f"{self.name()}: {problem}; robot.neutral() is without displacement")
        q = np.asarray(q, float)
        if q.size == 1:
            q = np.full(self.size1_in(port), q.item())
        elif 1 in q.shape:  # one configuration, for which the check is cheapest
            q = q.ravel()
        check_quaternions(self.where(port), self.rotations, q, self.normalize)

    def where(self, port):
        """How messages about a port of configurations begin; most Functions have one alone."""
        return self.name() if port == "q" else f"{self.name()}: port {port}"

    def _by_body(self, name, wrenches):
        """Matrix of wrenches from {body: (6,)}; bodies left out are free."""
        bodies = self._columns.get(name, ())
        for body in wrenches:
            if body not in bodies:
                raise UnknownName(f"column of port {name} of {self.name()}", body, bodies)
        given = {body: _as_column(f"{self.name()}: port {name}, body {body}", x) for body, x in wrenches.items()}
        for body, column in given.items():
            if column.numel() != 6:
                raise ShapeError(f"{self.name()}: port {name}, body {body}: got {column.numel()} entries, expected 6")
        return ca.horzcat(*(given.get(body, ca.DM.zeros(6)) for body in bodies))

    def __getstate__(self):
        kept = {"names": self._names, "columns": self._columns, "library": self.library}
        return {"base": super().__getstate__(), **kept, "rotations": (self.rotations, self.normalize)}

    def __setstate__(self, state):
        self.library = state.get("library")
        if self.library is not None:
            from .codegen.cache import require_whole  # the package codegen imports this file

            require_whole(self.library)
        super().__setstate__(state["base"])
        self._names, self._columns, self.twin, self.regular = state["names"], state["columns"], None, None
        self.rotations, self.normalize = state["rotations"]
        self.configurations = self._configurations()


def _largest(matrix):
    return float(ca.mmax(ca.fabs(matrix))) if matrix.nnz() else 0.0


def _is_zero(value):
    """Whether an array or matrix is a single zero, which stands for a port of zeros."""
    if tuple(value.shape) != (1, 1):
        return False
    return not value[0, 0] if isinstance(value, np.ndarray) else value.is_zero()


def _as_column(where, x):
    if isinstance(x, (list, tuple)) and any(isinstance(y, (ca.SX, ca.MX, ca.DM)) for y in x):
        return ca.vertcat(*x)
    return ca.vec(x) if isinstance(x, (ca.SX, ca.MX, ca.DM)) else ca.DM(as_floats(where, x).reshape(-1))


def function(robot, quantity, *, order=0, method=None, name=None, derivatives="ad", normalize=False, **options):
    """Quantity of a robot as casadi.Function with named ports.

    robot: Robot. quantity, method: names, see od.table(); without a method the default one is taken.
    order: time derivatives 0..order come out. name: of the Function, default the quantity and its order.
    Options, where the quantity knows them: external_wrenches=True adds the port w_ext (6, bodies) and its
    derivatives; friction=True counts viscous damping and smoothed Coulomb friction; frame="name" picks a frame;
    prescribed=("joint", ...) names joints that move as told; representation says how a twist is seen: "body",
    "spatial" or "hybrid", for dynamics that of a floating base in every port of v and tau, default "body";
    parameters adds the port params: "symbolic" the inertial parameters (10 bodies,) as in robot.parameters; or some of
    "inertia", "armature" and "viscous", in this order, the last two (nv,) each and viscous with friction=True alone;
    robot.parameter_values(parts) are the robot's own, robot.parameter_rows(parts) their names. columns of a regressor:
    the same parts, default the inertia. coriolis: which matrix C, for there are many with the same C v: "christoffel",
    the default of every quantity, "garofalo" (both admissible: dM/dt = C + C^T), or, of coriolis_matrix and
    eom_coefficients, "kumar_mueller" (not admissible); a method that is named gives the one that the table says.
    derivatives="analytic": CasADi, where it differentiates the Function, takes the registered partials, adjoint and
    Lagrangian Hessian instead of AD: for inverse_dynamics and forward_dynamics, in MX graphs, Opti, nlpsol, map and
    generated code. They are lost by saving and loading, but for the Jacobian: make the Function anew.
    normalize: quaternions stand for the rotation of the normalised one, in values and derivatives. Where they are
    numbers, a norm that differs from 1 by more than 1e-6 is refused nevertheless; True takes any but zero. Symbols,
    `map` and generated C are not checked. robot.normalized(q) is the same of numbers.
    Ports, shapes and units: od.ports(robot, quantity, order).
    Raises UnknownName, OrderError, ShapeError, ModelError, each listing what would be right.
    """
    record = get(quantity)
    _read(record, robot)
    order = _checked_order(quantity, record, order)
    settings = _settings(record, options)
    chosen = choose(quantity, robot, order, method, _coriolis(record, settings))
    name = checked_name(f"{quantity}_{order}" if name is None else name)
    # complete: a method's name cannot be registered twice, its model follows from the robot and the settings, and
    # these are names and truth values; True is not taken for an order of 1
    key = ("function", quantity, order, chosen.name, name, tuple(sorted(settings.items())))
    if not isinstance(normalize, (bool, np.bool_)):
        raise ShapeError(f"{quantity}: normalize is {normalize!r}, expected True or False")
    if normalize:
        strict = function(robot, quantity, order=order, method=method, name=name, derivatives=derivatives, **options)
        return cached(robot, ("normalizing", derivatives, *key), strict.normalizing)
    if derivatives == "ad":
        return cached(robot, key, lambda: _build(robot, record, chosen, order, settings, name))
    if derivatives != "analytic":
        raise UnknownName("kind of derivatives", derivatives, ("ad", "analytic"))
    _check_analytic(record, settings)

    def differentiated():
        plain = _build(robot, record, chosen, order, settings, name)
        kept = {k: x for k, x in settings.items() if k in ("external_wrenches", "friction")}
        return plain.with_base(analytic(robot, quantity, order, plain, kept, function), twin=plain)

    return cached(robot, ("analytic", *key), differentiated)


def _check_analytic(record, settings):
    able = [x for x in quantities() if f"{x}_lagrangian_hessian" in quantities()]
    if record.name not in able:
        raise OrderError(
            f"{record.name} has no registered derivatives; derivatives='analytic' is for {', '.join(able)}"
        )
    other = [k for k, x in settings.items() if x and k not in ("external_wrenches", "friction")]
    if other:
        raise OrderError(f"{record.name}: derivatives='analytic' cannot be had with {', '.join(other)}; use 'ad'")


def instructions(robot, quantity, model):
    """How many the default method of a quantity takes where it reads `model` for the robot's canonical form."""
    record = get(quantity)
    return _build(robot, record, choose(quantity, robot, 0), 0, _settings(record, {}), quantity, model).n_instructions()


def ports(robot, quantity, order=0, **options):
    """(inputs, outputs): the Port records of a quantity, in order."""
    record = get(quantity)
    _read(record, robot)
    return _ports(robot, record, _checked_order(quantity, record, order), _settings(record, options))


def _ports(robot, record, order, settings):
    both = record.inputs(robot, order, settings), record.outputs(robot, order, settings)
    if converts(record, robot, settings):
        both = tuple(described(robot, x, settings) for x in both)
    parts = _symbolic(record, settings)
    return ([*both[0], parameter_port(robot, parts)], both[1]) if parts else both


def _symbolic(record, settings):
    """The parts of the robot's parameters that are an input."""
    parts = checked_parts(f"{record.name}: parameters", settings.get("parameters"))
    if "viscous" in parts and not settings.get("friction"):
        known = "give friction=True" if "friction" in record.options else "leave it out"
        raise ShapeError(f"{record.name}: 'viscous' is a parameter only where friction counts; {known}")
    return parts


def _build(robot, record, chosen, order, settings, name, model=None):
    inputs, outputs = _ports(robot, record, order, settings)
    matrix = {"sx": ca.SX, "mx": ca.MX}[chosen.graph]
    symbols = {p.name: matrix.sym(p.name, *p.shape) for p in inputs}
    parts = _symbolic(record, settings)
    if parts and chosen.numeric_parameters:
        problem = f"{record.name}/{chosen.name} cannot take symbolic parameters: {chosen.numeric_parameters}"
        raise OrderError(problem)
    model = model or _read(record, robot) or canonical(robot, chosen.regroup and "inertia" not in parts)
    if parts:
        model = with_values(model, parts, symbols["params"])
    regular = _regular(record, model, settings)

    def run(values):
        given = {name: x for name, x in values.items() if name != "params"}
        return record.call(chosen.function, model, order, given, settings)

    if converts(record, robot, settings):
        results = converted(robot, order, inputs, outputs, symbols, settings, run)
    else:
        results = run(symbols)
    expressions = [matrix(results[p.name]) for p in outputs]
    if not record.sparse:
        expressions = [ca.densify(x) for x in expressions]
    if chosen.cse:
        expressions = ca.cse(expressions)
    base = ca.Function(name, list(symbols.values()), expressions, [p.name for p in inputs], [p.name for p in outputs])
    names = {p.name: p.rows for p in inputs if p.rows}
    bodies = tuple(b.name for b in robot.bodies)
    columns = {p.name: bodies for p in inputs if p.name.endswith("w_ext")}
    regular = None if parts else regular
    rotations = quaternions(robot) if "q" in symbols else ()
    return RobotFunction(base, names, columns, regular=regular, rotations=rotations)


def _regular(record, model, settings):
    """What looks, for a quantity that solves with the mass matrix, whether it can be solved with at a q; None for
    others. Raises ModelError if it can be nowhere."""
    if record.solves is None:
        return None
    from .model.massless import require_inertia, require_inertia_at

    robot, what = model.robot, record.name
    known = record.solves(robot, settings)
    require_inertia(model, what, known)
    return lambda q: require_inertia_at(robot, q, what, known)


def _read(record, robot):
    """What the methods of a quantity read of `robot`, None for its canonical form; raises if it has none such."""
    if record.admit:
        return record.admit(robot)
    check_robot(record.name, robot)
    if robot.nv == 0 and "frame" not in record.options:
        problem = "it has no moving joint; load it with floating_base=True, or give it one"
        raise ModelError(f"{record.name} of {robot.name}", [problem])
    return None


def _checked_order(quantity, record, order):
    if isinstance(order, bool) or not isinstance(order, (int, np.integer)) or order < 0:
        raise OrderError(f"{quantity}: order is {order!r}, expected an integer of at least 0")
    if record.max_order is not None and order > record.max_order:
        raise OrderError(f"{quantity}: got order {order}, it goes up to order {record.max_order}")
    return int(order)


def _settings(record, options):
    for key in options:
        if key not in record.options:
            raise UnknownName(f"option of {record.name!r}", key, record.options)
    given = {k: tuple(x) if isinstance(x, (list, set, frozenset)) else x for k, x in options.items()}
    for key, value in given.items():
        if isinstance(_OPTIONS[key], bool) and not isinstance(value, (bool, np.bool_)):
            raise ShapeError(f"{record.name}: {key} is {value!r}, expected True or False")
        if not all(x is None or isinstance(x, (bool, str)) for x in (value if isinstance(value, tuple) else (value,))):
            raise UnknownName(f"value of option {key} of {record.name!r}", value, ("a name", "a list of names"))
    return {k: given.get(k, _OPTIONS[k]) for k in record.options}


def _coriolis(record, settings):
    """The Coriolis matrix asked for, None for the method's own."""
    name = settings.get("coriolis")
    if name is not None and name not in CORIOLIS:
        raise UnknownName(f"Coriolis matrix of {record.name!r}", name, CORIOLIS)
    return name


def checked_name(name):
    """The name, if casadi takes it for a Function; ShapeError otherwise."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z](?:_?[A-Za-z0-9])*", name):
        raise ShapeError(
            f"{name!r} cannot name a Function: letters, digits and single underscores, starting with a letter"
        )
    return name
