"""What code may look at beyond values and functions: kinds of classes, decorators, modules, libraries."""

import ctypes
import subprocess
import sys
import textwrap

import casadi as ca
import numpy as np
import pytest

from oc_dyn.digest import digest
from oc_dyn.errors import ShapeError

CODE = {  # f by a text with one thing that decides, and two values of it
    "called enum": ("2", "3", """
        import enum
        class Mode(enum.Enum):
            A = 1
            def __call__(self, x): return $ * x
        def f(x): return Mode.A(x)"""),
    "operator of an enum": ("2", "3", """
        import enum
        class Mode(enum.IntEnum):
            A = 1
            def __mul__(self, x): return $ * x
        def f(x): return Mode.A * x"""),
    "private method of an enum": ("2", "3", """
        import enum
        class Mode(enum.Flag):
            A = 1
            def _scaled(self, x): return $ * x
        def f(x): return Mode.A._scaled(x)"""),
    "other name in an enum": ("A", "B", """
        import enum
        class Mode(enum.Enum):
            A = 1
            B = 2
            C = $
        def f(x): return Mode.C.value * x"""),
    "alias": ("2", "3", """
        import typing
        T = typing.TypeVar("T")
        class Scale(typing.Generic[T]):
            def of(self, x): return $ * x
        V = Scale[float]
        def f(x): return V().of(x)"""),
    "alias of types": ("2", "3", """
        import types
        class Scale:
            __class_getitem__ = classmethod(types.GenericAlias)
            def of(self, x): return $ * x
        V = Scale[float]
        def f(x): return V().of(x)"""),
    "argument of an alias": ("2", "3", """
        import typing
        V = typing.Literal[$]
        def f(x): return typing.get_args(V)[0] * x"""),
    "new type": ("int", "float", """
        import typing
        V = typing.NewType("V", $)
        def f(x): return V.__supertype__(x / 2)"""),
    "__dict__ of a module": ("2", "3", """
        import types
        m = types.ModuleType("m")
        m.K = $
        def f(x): return m.__dict__["K"] * x"""),
    "vars of a module": ("2", "3", """
        import types
        m = types.ModuleType("m")
        m.K = $
        def f(x): return vars(m)["K"] * x"""),
    "__wrapped__": ("2", "3", """
        import functools
        def outer(g):
            @functools.wraps(g)
            def w(x): return w.__wrapped__(x)
            return w
        @outer
        def f(x): return $ * x"""),
    "eq of a dataclass": ("True", "False", """
        import dataclasses
        @dataclasses.dataclass(eq=$)
        class P: a: int
        def f(x): return P(x) == P(x)"""),
    "compared fields": ("True", "False", """
        import dataclasses
        @dataclasses.dataclass
        class P: a: int = dataclasses.field(compare=$)
        def f(x): return P(x) == P(2 * x)"""),
    "metadata of a field": ("2", "3", """
        import dataclasses
        @dataclasses.dataclass
        class P: a: int = dataclasses.field(default=0, metadata={"k": $})
        def f(x): return x * dataclasses.fields(P)[0].metadata["k"]"""),
    "own method of a dataclass": ("2", "3", """
        import dataclasses
        @dataclasses.dataclass
        class P:
            a: int
            def __eq__(self, other): return $
        def f(x): return P(1) == x"""),
    "annotations": ("2", "3", """
        def g(a: $): pass
        def f(x): return g.__annotations__["a"] * x"""),
    "__hash__": ("2", "3", """
        class P:
            def __hash__(self): return $
        def f(x): return hash(P()) * x"""),
    "doc": ("two", "three", """
        class P:
            "$"
        def f(x): return P.__doc__ * x"""),
    "__match_args__": ("a", "b", """
        class P:
            __match_args__ = ("$",)
            a, b = 1, 2
        def f(x):
            match P():
                case P(y): return y * x"""),
    "property": ("2", "3", """
        class Own(property):
            def __init__(self, g, k): super().__init__(g); self.k = k
            def __get__(self, o, t=None): return self.k
        class P: a = Own(len, $)
        def f(x): return P().a * x"""),
    "cached_property": ("2", "3", """
        import functools
        class Own(functools.cached_property):
            def __get__(self, o, t=None): return $
        class P: a = Own(len)
        def f(x): return P().a * x"""),
    "staticmethod": ("2", "3", """
        class Own(staticmethod):
            def __init__(self, g, k): super().__init__(g); self.k = k
            def __call__(self, x): return self.k * x
        s = Own(len, $)
        def f(x): return s(x)"""),
    "partial": ("2", "3", """
        import functools
        class Own(functools.partial):
            def __call__(self, x): return $ * x
        s = Own(len)
        def f(x): return s(x)"""),
    "own cache": ("2", "3", """
        class Memo:
            def __init__(self, g, k): self.__wrapped__, self.k = g, k
            def cache_info(self): pass
            def __call__(self, x): return self.k * x
        m = Memo(len, $)
        def f(x): return m(x)"""),
    "items of a list": ("2", "3", """
        class Own(list):
            def __init__(self, *a): super().__init__(*a); self.tag = 1
            def __reduce_ex__(self, p): raise TypeError
        m = Own([$])
        def f(x): return m[0] * x"""),
    "items that pickling leaves out": ("2", "3", """
        class Own(dict):
            def __reduce_ex__(self, p): return Own, ()
        m = Own(k=$)
        def f(x): return m["k"] * x"""),
    "singledispatch": ("2", "3", """
        import functools
        @functools.singledispatch
        def g(x): return 0
        @g.register
        def _(x: int): return $ * x
        def f(x): return g(x)"""),
}  # fmt: skip


@pytest.mark.parametrize("kind", CODE)
def test_all_that_code_may_look_at_counts(kind):
    one, other, text = CODE[kind]
    values = []
    for value in (one, other, one):
        space = {"__name__": "__main__"}
        exec(textwrap.dedent(text).replace("$", value), space)
        values.append((space["f"](3), digest(space["f"])))
    assert values[0][0] != values[1][0]  # so that they must not be filed under one key
    assert values[0][1] != values[1][1]
    assert values[0] == values[2]


def test_modules_that_a_function_imports_count(tmp_path, monkeypatch):
    """Before and after it is loaded, and in a package that has no name for it yet."""
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("gains", None)
    found = []
    for k in (2, 3):
        (tmp_path / "gains").mkdir(exist_ok=True)
        (tmp_path / "gains" / "__init__.py").write_text("")
        (tmp_path / "gains" / "model.py").write_text(f"def k(): return {k}" + "  #" * k)  # of another length
        text = "def f(x):\n    import gains\n    from gains import model\n    return model.k() * x"
        space = {"__name__": "__main__"}
        exec(text, space)
        before = digest(space["f"])
        found.append((space["f"](1.0), before))
        assert digest(space["f"]) == before
        for name in ("gains", "gains.model"):
            del sys.modules[name]
    assert [x for x, _ in found] == [2.0, 3.0]
    assert found[0][1] != found[1][1]


def test_libraries_count_by_their_file(tmp_path):
    try:
        subprocess.run(["cc", "--version"], check=True, capture_output=True)
    except OSError:
        pytest.skip("no C compiler")
    found = []
    for k in (2, 3):
        (tmp_path / "f.c").write_text(f"double f(double x) {{ return {k} * x; }}")
        name = str(tmp_path / f"{k}.so")
        subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "f.c", "-o", name], check=True)
        one, again, typed = (ctypes.CDLL(name) for _ in range(3))
        assert digest(one) == digest(again)  # though they lie at other addresses
        assert again.f
        assert digest(one) == digest(again)
        typed.f.restype = ctypes.c_double
        found += [digest(one), digest(typed)]
    assert len(set(found)) == 4


def test_what_a_call_keeps_does_not_count():
    doubled = np.vectorize(lambda x: 2 * x, otypes=[float])
    before = digest(doubled)
    assert doubled(1.0) == 2.0
    assert digest(doubled) == before


def imports_what_is_not_there(x):
    from test_digest_of_code import LOST

    return LOST * x


@pytest.mark.parametrize(
    "value, words",
    [
        (lambda x: digest.__globals__["GAIN"], "reads the globals of an object"),
        (lambda x: sys.modules[x], "reads sys.modules"),
        (np.frompyfunc(lambda x: 2 * x, 1, 1), "ufunc named .* no installed module has it"),
        ({ca.MX.sym("m")}, "set of CasADi expressions"),
        (ctypes.pythonapi, "the library .* cannot be digested"),
        (ctypes.pythonapi.Py_IncRef, "function of a library"),
        (imports_what_is_not_there, "test_digest_of_code has no 'LOST'"),
    ],
    ids=["globals", "modules", "ufunc", "set", "library", "function", "import"],
)
def test_what_is_not_followed_is_refused(value, words):
    with pytest.raises(ShapeError, match=words):
        digest(value)
