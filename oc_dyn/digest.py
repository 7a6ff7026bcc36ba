"""What decides a result, as a short text: the same in every process, another one as soon as anything differs.

Values count by type and content, functions by their code, constants, closure, defaults, the object they are bound to
and the globals that their code names, all the way down. What belongs to Python or to an installed package counts by
name and version, what belongs to this package by name: version() tells its states apart. Private attributes count;
what an object keeps only to be faster (_made) does not, nor do seconds that computing a Trajectory took, nor the
folder that a robot was read from and what it looks like. Addresses, the order of sets, files and lines of code have no
part in it.
"""

import copyreg
import ctypes
import dis
import enum
import functools
import hashlib
import importlib
import importlib.util
import platform
import re
import sys
import sysconfig
import types
import typing
from contextlib import contextmanager
from pathlib import Path

import casadi as ca
import numpy as np

from .errors import ShapeError

_PACKAGE = Path(__file__).resolve().parent
_PLAIN = (type(None), bool, int, float, complex, str, bytes, np.float64)
_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_SEES_ALL = ("globals", "eval", "exec")  # built-in functions by which code may read any global
_SEEN_BY_TEXT = {"__import__", "import_module"}, "imports modules by a text"
_SEEN_BY_OBJECTS = {"__globals__", "f_globals", "f_locals"}, "reads the globals of an object"
_OF_CLASSES = {  # what a class has besides what its author wrote
    "__dict__", "__weakref__", "__module__", "__qualname__", "__annotate__", "__annotate_func__",
    "__annotations_cache__", "__firstlineno__", "__static_attributes__", "__abstractmethods__", "_abc_impl",
    "__dataclass_fields__", "__dataclass_params__", "__parameters__", "__slotnames__", "__slots__", "__classcell__",
}  # fmt: skip
_OF_TYPING = tuple({type(x) for x in (list[int], int | str, typing.List[int], typing.Any, typing.TypeVar("T"))})  # noqa: UP006
_NAMED_BY_TYPING = [
    getattr(typing, name)
    for name in ("TypeVar", "ParamSpec", "TypeVarTuple", "NewType", "TypeAliasType")
    if hasattr(typing, name)  # some are of later versions
]
_OF_TYPING += tuple(_NAMED_BY_TYPING)
_CACHED = type(functools.lru_cache(len))
_CONTENTS = (  # of instances of subclasses, whatever their methods make of it
    (dict, dict.items), (list, list.__iter__), (tuple, tuple.__iter__), (set, set.copy), (frozenset, frozenset.copy),
    (str, str.__str__), (int, int.__int__), (float, float.__float__), (complex, lambda x: [x.real, x.imag]),
    ((bytes, bytearray), bytes), (functools.partial, lambda x: [x.func, x.args, x.keywords]),
    (property, lambda x: [x.fget, x.fset, x.fdel]), ((staticmethod, classmethod), lambda x: [x.__func__]),
)  # fmt: skip
_DESCRIPTORS = (
    types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType, types.MethodDescriptorType,
    types.ClassMethodDescriptorType, types.MethodWrapperType,
)  # fmt: skip


def digest(value, what="value", known=None):
    """32 digits (hexadecimal) of a value.

    what: what it is called in messages. known: a dict that calls may share, so that what several values hold is gone
    through once; it must not outlive a change of them. Raises ShapeError that names the part that cannot be digested.
    """
    known = {} if known is None else known
    while True:
        loaded, walk = len(sys.modules), _Walk(what, known)
        try:
            found = _hash("value", walk.of(value), walk.symbols()).hex()
        except RecursionError:
            raise walk.refused("it is nested too deeply") from None
        if len(sys.modules) == loaded:
            return found
        known.clear()  # an import in a function was followed, after which its package may have one more attribute


@functools.cache  # what is changed on the disk while this runs is not what runs
def version(aside=()):
    """16 digits (hexadecimal) that tell states of this package apart, with its data files, and versions of Python,
    CasADi and NumPy. aside: files and folders of the package that do not count."""
    facts = [".".join(platform.python_version_tuple()[:2]), ca.__version__, np.__version__]
    for path in sorted(_PACKAGE.rglob("*"), key=lambda p: p.relative_to(_PACKAGE).as_posix()):
        name = path.relative_to(_PACKAGE)
        names = {p.as_posix() for p in (name, *name.parents)}
        if path.suffix != ".pyc" and path.is_file() and names.isdisjoint(aside):
            facts += [name.as_posix(), path.read_bytes()]
    return _hash("version", *facts).hex()[:16]


def _hash(*parts):
    out = hashlib.sha256()
    for part in parts:
        part = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        out.update(len(part).to_bytes(8, "little") + part)
    return out.digest()[:16]


def unwound(function):
    """(function, arguments, keywords) of functools.partial, those within one another taken together."""
    args, keywords = (), {}
    while type(function) is functools.partial:
        args, keywords = (*function.args, *args), {**function.keywords, **keywords}
        function = function.func
    return function, args, keywords


class _Walk:
    """One value on its way: of(x) gives the digest of a part of it."""

    def __init__(self, what, known):
        self.trail = [what]  # to the part at hand, for messages
        self.known = known  # by id: (object, digest), whatever it is part of
        self.here = {}  # by id: (object, number), of what has a meaning only within this value
        self.open = {}  # by id: depth, of what the part at hand is within
        self.tied = 0  # parts so far that have a meaning only within this value
        self.expressions = {ca.SX: [], ca.MX: []}

    def of(self, x):
        if type(x) in _PLAIN:
            x = float(x) if isinstance(x, float) else x  # np.float64 is one
            return _hash(f"{type(x).__name__} {x!r}")
        if id(x) in self.open:  # a cycle
            self.tied += 1
            return _hash("up", str(len(self.open) - self.open[id(x)]))
        if id(x) in self.known:
            return self.known[id(x)][1]
        if id(x) in self.here:
            self.tied += 1
            return _hash("again", str(self.here[id(x)][1]))
        tied, self.open[id(x)] = self.tied, len(self.open)
        told = self.told(x)
        del self.open[id(x)]
        if self.tied == tied:
            self.known[id(x)] = x, told  # with the object, so that no other gets its id
        else:
            self.here[id(x)] = x, len(self.here)
        return told

    @contextmanager
    def at(self, place):
        self.trail.append(place)
        yield
        self.trail.pop()

    def part(self, place, x):
        with self.at(place):
            return self.of(x)

    def refused(self, why):
        return ShapeError(f"{', '.join(self.trail)}: {why}")

    # -- values ---------------------------------------------------------------------------------------------------

    def told(self, x):
        kind = type(x)
        steps = self.container, self.numbers, self.of_casadi, self.of_typing, _by_name, self.callable, self.of_class
        for step in steps:
            found = step(x, kind)
            if found is not None:
                return found
        return self.of_library(x, kind) or self.instance(x)

    def container(self, x, kind):
        if kind in (list, tuple):
            return _hash(kind.__name__, *(self.part(f"[{k}]", y) for k, y in enumerate(x)))
        if kind in (dict, types.MappingProxyType):
            pairs = ((self.of(k), self.part(f"[{k!r:.40}]", y)) for k, y in x.items())
            return _hash("dict", *(part for pair in pairs for part in pair))
        if kind in (set, frozenset):
            return _hash(kind.__name__, *sorted(self.member(y) for y in x))
        return None

    def numbers(self, x, kind):
        if kind is np.ndarray or isinstance(x, np.generic):
            return self.array(np.asarray(x), kind.__name__)
        if isinstance(x, np.dtype):
            return _hash("dtype", repr(x))
        if isinstance(x, (ca.DM, ca.Sparsity)):
            sparsity = x.sparsity() if isinstance(x, ca.DM) else x
            numbers = np.array(x.nonzeros(), float).tobytes() if isinstance(x, ca.DM) else b""
            return _hash(kind.__name__, str((x.shape, sparsity.colind(), sparsity.row())), numbers)
        return None

    def of_casadi(self, x, kind):
        if kind in self.expressions:
            self.tied += 1
            self.expressions[kind].append(x)
            return _hash("expression", kind.__name__, str(len(self.expressions[kind])))
        return self.casadi_function(x) if isinstance(x, ca.Function) else None

    def of_typing(self, x, kind):
        """Of modules, code and annotations."""
        if isinstance(x, types.ModuleType):
            return self.module(x)
        if isinstance(x, types.CodeType):
            return self.code(x)
        if isinstance(x, _OF_TYPING):
            return self.typing(x)
        if isinstance(x, typing.ForwardRef):
            return _hash("typing", kind.__name__, x.__forward_arg__)
        return None

    def callable(self, x, kind):
        if isinstance(x, types.FunctionType):
            return self.function(x)
        if isinstance(x, types.MethodType):
            return _hash("method", self.of(x.__func__), self.part("the object it is bound to", x.__self__))
        if kind is functools.partial:
            function, args, keywords = unwound(x)
            own = x.__reduce__()[2][-1] or {}  # vars(x) would make a dict, and partial(x) another thing
            parts = self.part("its arguments", args), self.part("its arguments", keywords), self.attributes(own)
            return _hash("partial", self.of(function), *parts)
        return None

    def of_class(self, x, kind):
        """Of classes, members of an Enum, and what stands in the body of a class."""
        if isinstance(x, type):
            return self.klass(x)
        if isinstance(x, enum.Enum):
            return _hash("enum", self.of(kind), self.of(x.name), self.of(x.value))
        if kind is property:
            return _hash("property", *(self.of(f) for f in (x.fget, x.fset, x.fdel)))
        if kind in (staticmethod, classmethod):
            return _hash(kind.__name__, self.of(x.__func__))
        if isinstance(x, functools.cached_property):
            own = {k: y for k, y in _attributes_of(x).items() if k != "lock"}
            return _hash("cached_property", self.of(kind), self.attributes(own))
        return _hash("cached", self.attributes(vars(x))) if kind is _CACHED else None

    def of_library(self, x, kind):
        """Of libraries, and of functions and descriptors that are written in C."""
        if isinstance(x, ctypes.CDLL):
            return self.loaded(x)
        if isinstance(x, ctypes._CFuncPtr):
            raise self.refused("a function of a library cannot be digested; keep the ctypes.CDLL, and take it of that")
        if isinstance(x, types.BuiltinFunctionType) and x.__self__ is not None:
            return _hash("method", x.__name__, self.part("the object it is bound to", x.__self__))
        return _hash(kind.__name__, x.__qualname__) if isinstance(x, _DESCRIPTORS) else None

    def member(self, x):
        """Of a set, which has no order, so that what it shares with the rest cannot be told."""
        walk = _Walk(self.trail[0], self.known)
        found = _hash("value", walk.of(x))
        if any(walk.expressions.values()):
            raise self.refused("a set of CasADi expressions cannot be digested; give a list or a dict of them")
        return found

    def typing(self, x):
        args = getattr(x, "__args__", None)
        if args is not None:
            more = getattr(x, "__origin__", None), args, getattr(x, "__metadata__", None)
            return _hash("alias", type(x).__name__, *(self.of(y) for y in more))
        if type(x) not in _NAMED_BY_TYPING:
            return _hash("typing", repr(x))
        more = (getattr(x, k, None) for k in ("__bound__", "__constraints__", "__supertype__", "__value__"))
        return _hash("typing", type(x).__name__, x.__name__, *(self.of(y) for y in more))

    def array(self, x, kind):
        if x.dtype.hasobject:
            return _hash("array", kind, repr(x.dtype), str(x.shape), self.of(x.tolist()))
        return _hash("array", kind, repr(x.dtype), str(x.shape), np.ascontiguousarray(x).tobytes())

    def instance(self, x):
        kind = type(x)
        foreign = _named(kind) is not None
        if kind.__name__ == "SwigPyObject":
            raise self.refused("an object of CasADi that is no Function, matrix or expression cannot be digested")
        parts, reduced, seen = [self.part(f"class {kind.__name__}", kind)], None, _attributes_of(x)
        content = next((of(x) for base, of in _CONTENTS if isinstance(x, base)), None)
        try:
            reduce = copyreg.dispatch_table.get(kind)
            reduced = reduce(x) if reduce else x.__reduce_ex__(4)
        except Exception:  # what it raises where it cannot be pickled is its own affair
            if foreign or (content is None and (not seen or _hides(kind))):
                raise self.refused(f"a {kind.__module__}.{kind.__qualname__} cannot be digested") from None
        if isinstance(reduced, str):
            parts.append(self.by_name(x, reduced))
        elif reduced is not None:
            make, given, state, *more = (*reduced, None, None, None, None)[:5]
            parts += [self.of(make), *(self.of(y) for y in given)]
            parts += [self.of(list(y)) if y is not None else b"" for y in more]
            parts += [self.state(y, kind) for y in (state if isinstance(state, tuple) else [state])]
        if not foreign:  # whatever it leaves out when it is pickled
            content = content if type(content) in (*_PLAIN, set, frozenset) else list(content)
            parts += [self.state(seen, kind), self.of(content)]
        return _hash("object", *parts)

    def by_name(self, x, name):
        """Of what is pickled by a name alone, which has to lead to it."""
        foreign = _named(type(x)) is not None  # so that it may hold what is not looked at
        found = [m for m in list(sys.modules.values()) if isinstance(m, types.ModuleType) and _at(m, name) is x]
        found = [m for m in found if not foreign or _origin(m) is not None]
        if not found:
            raise self.refused(f"a {type(x).__name__} named {name!r} cannot be digested: no installed module has it")
        home = getattr(x, "__module__", None) or type(x).__module__
        top = home.partition(".")[0]
        places = {(m.__name__.partition(".")[0] != top, _origin(m) or "") for m in found}
        return _hash("name", name, min(places)[1])

    def loaded(self, x):
        """Of a library by its file, and by what was set of its functions."""
        if not x._name or not Path(x._name).is_file():
            raise self.refused(f"the library {x._name!r} cannot be digested: give the path of its file")
        own = {k: y for k, y in vars(x).items() if k not in ("_name", "_handle", "_FuncPtr")}
        functions = {k: y for k, y in own.items() if isinstance(y, ctypes._CFuncPtr)}
        told = {k: [y.restype, y.argtypes, getattr(y, "errcheck", None)] for k, y in functions.items()}
        told = {k: y for k, y in told.items() if y != [ctypes.c_int, None, None]}  # asking for one makes it
        own = {k: y for k, y in own.items() if k not in functions}
        facts = str(x._FuncPtr._flags_), Path(x._name).read_bytes()
        return _hash("library", self.of(type(x)), *facts, self.attributes(told), self.attributes(own))

    def state(self, state, kind):
        if not isinstance(state, dict):
            return self.of(state)
        if kind is np.vectorize:
            state = {k: y for k, y in state.items() if k != "_ufunc"}  # is made when it is first called
        if any(_origin(sys.modules.get(base.__module__)) == "oc_dyn" for base in kind.__mro__):
            state = _lasting(state, kind)
        return self.attributes(state)

    def attributes(self, found):
        """Of {name: value} in any order."""
        items = sorted(found.items(), key=lambda item: str(item[0]))
        return _hash("attributes", *(p for k, y in items for p in (str(k), self.part(f"attribute {k!r}", y))))

    # -- CasADi ---------------------------------------------------------------------------------------------------

    def casadi_function(self, f):
        own = {k: y for k, y in vars(f).items() if k != "this"} if hasattr(f, "__dict__") else {}
        if isinstance(f, ca.Callback):
            return _hash("callback", self.of(type(f)), self.attributes(own))
        return _hash("Function", type(f).__name__, self.serialized(f), self.attributes(own))

    def serialized(self, f):
        libraries = b""
        for g in (f, *f.find_functions()):
            if g.class_name() in ("CallbackInternal", "FmuFunction"):
                raise self.refused(f"its Function {g.name()!r} is a {g.class_name()}, whose code CasADi does not tell")
            if "External" in g.class_name():
                libraries += self.library(g)
        try:
            return _hash(f.serialize(), libraries)
        except RuntimeError as error:
            raise self.refused(f"Function {f.name()!r}: {str(error).strip().splitlines()[-1]}") from None

    def library(self, f):
        """Of a compiled Function the file, whose name stands in what CasADi writes: two letters a byte."""
        text = f.serialize()
        data = bytes(ord(a) - 97 + 16 * (ord(b) - 97) for a, b in zip(text[::2], text[1::2], strict=True))
        for name in re.findall(rb"[^\x00-\x1f]{3,}", data):
            path = Path(name.decode("utf-8", "replace"))
            if path.is_absolute() and path.is_file():
                return _hash(path.read_bytes())
        raise self.refused(f"the library of the compiled Function {f.name()!r} is not found")

    def symbols(self):
        """Of all expressions together, so that it counts which symbols they share."""
        told = []
        for kind, some in self.expressions.items():
            if some:
                f = ca.Function("expressions", ca.symvar(ca.veccat(*some)), some)
                told += [kind.__name__, self.serialized(f)]
        return _hash(*told)

    # -- code -----------------------------------------------------------------------------------------------------

    def function(self, f):
        with self.at(f"function {f.__name__}"):
            if f.__globals__ is vars(functools) and isinstance(vars(f).get("registry"), types.MappingProxyType):
                return _hash("singledispatch", self.of(f.registry), self.of(vars(f).get("__wrapped__")))
            kept = zip(f.__code__.co_freevars, f.__closure__ or (), strict=True)
            parts = [
                self.code(f.__code__),
                self.part("its defaults", f.__defaults__),
                self.attributes(f.__kwdefaults__ or {}),
                *(self.part(f"its variable {name!r}", _content(cell)) for name, cell in kept),
                self.part("its annotations", f.__annotations__),
                *(self.of(x) for x in (f.__name__, f.__doc__)),
                self.attributes(vars(f)),
            ]
            module = sys.modules.get(f.__globals__.get("__name__"))  # f.__module__ is what a decorator makes of it
            known = module is not None and vars(module) is f.__globals__ and _origin(module)
            return _hash("function", *parts, known or self.globals(f.__code__, f.__globals__))

    def code(self, code):
        shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        table = getattr(code, "co_exceptiontable", b"")
        return _hash("code", code.co_code, table, str((shape, names)), *(self.of(x) for x in code.co_consts))

    def globals(self, code, space):
        """What code reads of the namespace of its module, and imports."""
        parts = []
        for one in _codes(code):
            for names, what in (_SEEN_BY_TEXT, _SEEN_BY_OBJECTS):
                if names & set(one.co_names):
                    raise self.refused(f"it {what}, which is not followed")
            if {"sys", "modules"} <= set(one.co_names):
                raise self.refused("it reads sys.modules, which is not followed")
        for name, chain in sorted(_read(code)):
            if name in space:
                x, path = space[name], name
                while isinstance(x, types.ModuleType) and _origin(x) is None and chain and hasattr(x, chain[0]):
                    x, path, chain = getattr(x, chain[0]), f"{path}.{chain[0]}", chain[1:]
                parts.append(_hash("global", path, self.part(f"global {path}", x)))
            elif name in _SEES_ALL:
                with self.at(f"all globals, by {name}"):
                    parts.append(self.names(space))
            else:
                parts.append(_hash("no global", name))
        for name, level, names in sorted(_imported(code)):
            parts.append(_hash("import", name, str(level), *self.imports(name, level, names, space)))
        return _hash(*parts)

    def imports(self, name, level, names, space):
        with self.at(f"import {'.' * level}{name}"):
            name = importlib.util.resolve_name("." * level + name, space.get("__package__") or "") if level else name
            try:
                spec = importlib.util.find_spec(name.partition(".")[0])
            except (ImportError, ValueError):
                spec = None
            if spec is not None and _place(spec.origin):
                return [_place(spec.origin, name)]
            try:
                module = importlib.import_module(name)
            except Exception as error:  # as it will be when the function runs
                return [type(error).__name__]
            if not names:
                above = name.split(".")
                return [self.of(sys.modules[".".join(above[: k + 1])]) for k in range(len(above))]
            return [self.part(k, self.imported(module, k)) for k in names]

    def imported(self, module, name):
        """What `from module import name` finds."""
        try:
            return getattr(module, name)
        except AttributeError:
            pass
        try:
            return importlib.import_module(f"{module.__name__}.{name}")
        except Exception as error:
            raise self.refused(f"{module.__name__} has no {name!r}: {type(error).__name__}: {error}") from None

    def module(self, module):
        origin = _origin(module)
        if origin is not None:
            return _hash("module", module.__name__, origin)
        file = getattr(module, "__file__", None) or ""
        compiled = not file.endswith((".py", ".pyc")) and Path(file).is_file()
        kind = self.of(type(module)) if type(module) is not types.ModuleType else ""
        return _hash("module", kind, Path(file).read_bytes() if compiled else "", self.names(vars(module)))

    def names(self, space):
        return self.attributes({k: y for k, y in space.items() if not (k[:2] == "__" == k[-2:])})

    def klass(self, kind):
        found = {k: y for k, y in vars(kind).items() if k not in _OF_CLASSES}
        found = {k: y for k, y in found.items() if not (k == "__annotations__" and not y)}  # asking for them makes them
        parts = [kind.__name__, self.of(type(kind)), *(self.of(base) for base in kind.__bases__)]
        if isinstance(kind, enum.EnumMeta):
            for name, member in kind.__members__.items():
                own = {k: y for k, y in vars(member).items() if k not in _OF_MEMBERS}
                parts.append(_hash(name, self.part(name, member.value), self.attributes(own)))
            found = {k: y for k, y in found.items() if k not in kind.__members__ and _in_body(k, y)}
        if "__dataclass_fields__" in vars(kind):
            parts.append(repr(vars(kind)["__dataclass_params__"]))
            for f in vars(kind)["__dataclass_fields__"].values():
                facts = f.name, f.init, f.repr, f.hash, f.compare, getattr(f, "kw_only", None), f.metadata
                parts += [self.part(f"field {f.name!r}", y) for y in (facts, f.default, f.default_factory, f.type)]
            found = {k: y for k, y in found.items() if not _generated(k, y, kind)}  # of the fields
        return _hash("class", *parts, self.attributes(found))


class _Enum(enum.Enum):
    A = 1


class _Flag(enum.Flag):
    A = 1


_WRITTEN = (types.FunctionType, property, staticmethod, classmethod)
_OF_MEMBERS = {*vars(_Enum.A), *vars(_Flag.A), "_sort_order_"}
_OF_ENUMS = ({*vars(_Enum), *vars(_Flag)} - {"A", "_boundary_"}) | {"_unhashable_values_", "_order_", "_ignore_"}


def _in_body(name, x):
    """Whether an attribute of an Enum is of its author; functions that enum itself adds are told by name anyway."""
    return name not in _OF_ENUMS or isinstance(x, _WRITTEN)


_BY_DATACLASS = {
    "__init__", "__repr__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__setattr__", "__delattr__",
    "__replace__",
}  # fmt: skip


def _generated(name, x, kind):
    if name == "__doc__":  # may show addresses of defaults
        return isinstance(x, str) and x.startswith(f"{kind.__name__}(")
    code = getattr(getattr(x, "__wrapped__", x), "__code__", None)  # __repr__ is wrapped
    if name not in _BY_DATACLASS or code is None or code.co_filename != "<string>":
        return name in ("__getstate__", "__setstate__") and getattr(x, "__module__", None) == "dataclasses"
    return code.co_qualname.startswith("__create_fn__") if hasattr(code, "co_qualname") else code.co_firstlineno == 2


def _hides(kind):
    """Whether instances hold more than attributes, as of a base in C: what object.__reduce_ex__ looks at."""
    slots = len(copyreg._slotnames(kind))
    size = object.__basicsize__ + 8 * (slots + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0))
    return bool(kind.__itemsize__) or kind.__basicsize__ > size


def _at(module, path):
    for step in path.split("."):
        module = getattr(module, step, None)
    return module


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:  # not set yet
        return "nothing"


def _attributes_of(x):
    """{name: value} of an object, those in slots included."""
    found = dict(getattr(x, "__dict__", {}))
    for kind in type(x).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                name = f"_{kind.__name__.lstrip('_')}{name}" if name[:2] == "__" != name[-2:] else name
                if hasattr(x, name):
                    found[name] = getattr(x, name)
    return found


def _lasting(state, kind):
    """State of an object of this package without what can be made of the rest of it, or tells of times alone."""
    state = {k: y for k, y in state.items() if k != "_made"}
    if {"_torques", "robot", "info"} <= set(state):  # a Trajectory or Samples
        if state["robot"] is not None:
            del state["_torques"]
        state["info"] = {k: y for k, y in state["info"].items() if k != "seconds"}
    if kind.__name__ in ("Robot", "LoopRobot"):  # the place of its file, wherever that was copied to, and its looks
        state = {k: y for k, y in state.items() if k not in ("folder", "visuals")}
    if kind.__name__ == "Solution":
        state = {k: y for k, y in state.items() if k != "seconds"}
    return state


def _codes(code):
    """A code object and those of the functions within it."""
    yield code
    for x in code.co_consts:
        if isinstance(x, types.CodeType):
            yield from _codes(x)


def _read(code):
    """{(name of a global, attributes read of it at once)}."""
    found = set()
    for one in _codes(code):
        steps = list(dis.get_instructions(one))
        for k, step in enumerate(steps):
            if step.opname in _LOADS:
                chain = []
                for after in steps[k + 1 :]:
                    if after.opname not in (*_ATTRIBUTES, "EXTENDED_ARG", "CACHE"):
                        break
                    chain += [after.argval] if after.opname in _ATTRIBUTES else []
                found.add((step.argval, tuple(chain)))
    return found


def _imported(code):
    """{(module, level, names)} of the import statements within functions; no names: the module itself."""
    found = set()
    for one in _codes(code):
        steps = [s for s in dis.get_instructions(one) if s.opname not in ("EXTENDED_ARG", "CACHE")]
        for k, step in enumerate(steps):
            if step.opname == "IMPORT_NAME":
                level, names = (s.argval for s in steps[k - 2 : k])
                found.add((step.argval, level, names or ()))
    return found


# -- what is not of the project -----------------------------------------------------------------------------------


@functools.cache
def _folders():
    paths = sysconfig.get_paths()
    return (
        tuple({Path(paths[k]).resolve() for k in ("purelib", "platlib")}),
        tuple({Path(paths[k]).resolve() for k in ("stdlib", "platstdlib")}),
    )


@functools.cache
def _place(file, module=""):
    """By the file of a module: "oc_dyn", "python 3.11", "numpy 2.1.0"; None for what is of the project."""
    if file in ("built-in", "frozen"):
        return f"python {platform.python_version()}"
    if not file:
        return None
    path, (packages, standard) = Path(file).resolve(), _folders()
    if _PACKAGE in path.parents:
        return "oc_dyn"
    if {"site-packages", "dist-packages"} & set(path.parts) or any(p in path.parents for p in packages):
        return _version_of(module.partition(".")[0])
    if any(p in path.parents for p in standard):
        return f"python {platform.python_version()}"
    return None


def _origin(module):
    """What _place says of a module, or of None."""
    if module is None or module.__name__ in ("__main__", "__mp_main__"):
        return None
    spec = getattr(module, "__spec__", None)
    file = getattr(module, "__file__", None) or getattr(spec, "origin", None)
    if not file and module.__name__ in sys.builtin_module_names:
        file = "built-in"
    return _place(file, module.__name__)


@functools.cache
def _version_of(top):
    """Name and version of the installed package that a module is of; None if nothing tells."""
    import importlib.metadata  # few programs need it, and it brings email and socket

    names = sorted(_distributions().get(top, ()))
    versions = [f"{name} {importlib.metadata.version(name)}" for name in names]
    version = getattr(sys.modules.get(top), "__version__", None)
    return ", ".join(versions) or (f"{top} {version}" if version else None)


@functools.cache
def _distributions():
    import importlib.metadata

    return importlib.metadata.packages_distributions()


def _by_name(x, kind):
    return _named(x)


def _named(x):
    """Digest by name of what is found under it in Python, this package or an installed one; None of all else."""
    name = getattr(x, "__qualname__", None) or getattr(x, "__name__", None)
    if not isinstance(name, str):
        return None
    for module in (getattr(x, "__module__", None), type(getattr(x, "__self__", None)).__module__):
        module = sys.modules.get(module) if isinstance(module, str) else None
        origin = _origin(module)
        for path in (name, getattr(x, "__name__", None)) if origin is not None else ():
            if isinstance(path, str) and _at(module, path) is x:
                return _hash("named", origin, module.__name__, path)
    return None
