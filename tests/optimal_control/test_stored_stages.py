"""Stages on the disk: a later process loads what was built, which computes the same, or builds it again."""

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import function_store as store
from oc_dyn.derivatives import with_derivatives
from oc_dyn.optimal_control import stages
from oc_dyn.optimal_control.registered_calls import unrolled

NAMES = ("value", "jacobian", "cost", "gradient", "hessian", "gauss_newton")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "functions"
    monkeypatch.setenv(store.ENVIRONMENT, str(folder))
    monkeypatch.setattr(store, "SLOW", 0.0)
    monkeypatch.setattr(stages, "_made", {})  # as of a new process
    return folder


@pytest.fixture
def built(monkeypatch):
    """Names of the stages that are built."""
    names = []

    def counted(f):
        names.append(f.name())
        return unrolled(f)

    monkeypatch.setattr(stages, "unrolled", counted)
    return names


def torque(derivatives="analytic"):
    return od.function(od.robots.planar_2r(), "inverse_dynamics", derivatives=derivatives, cache=False)


def kind(f, weight=1.0, name="arm"):
    """Of an arm whose acceleration is its control."""

    def build(x, u, p, s):
        tau = f(x[:2], x[2:], u)
        return {
            "next": ca.vertcat(x[:2] + 0.1 * x[2:], x[2:] + 0.1 * u),
            "rows": tau,
            "cost": weight * p * ca.sumsqr(u),
            "residuals": tau - s,
        }

    return stages.kind(name, 4, 2, build, n_p=1, n_s=2, graph="mx")


def numbers(f):
    rng = np.random.default_rng(1)
    return [x.full() for x in f.call([ca.DM(rng.uniform(-1, 1, f.size_in(i))) for i in range(f.n_in())])]


@pytest.mark.sample(1)
@pytest.mark.parametrize("derivatives", ["analytic", "ad"])
def test_a_stage_of_a_later_process_is_loaded(derivatives, built, folder):
    first, again = (kind(torque(derivatives)) for _ in range(2))
    assert built == ["arm"]
    assert len(list(folder.glob("*.functions"))) == 1
    for name in NAMES:
        f, g = getattr(first, name), getattr(again, name)
        assert (g.name(), g.name_in(), g.name_out()) == (f.name(), f.name_in(), f.name_out())
        assert g.n_instructions() == f.n_instructions()
        assert g.sparsity_out(0) == f.sparsity_out(0)
        for a, b in zip(numbers(f), numbers(g), strict=True):
            assert np.array_equal(a, b)


def other_derivatives(factor):
    """x^2, with `factor` times its Hessian registered."""
    x = ca.SX.sym("x", 2)
    return with_derivatives(
        "square", [x], [x**2], {(0, 0): 2 * ca.diag(x)}, lambda seeds: [2 * x * seeds[0]],
        lambda seeds: {(0, 0): 2 * factor * ca.diag(seeds[0])}, ["x"], ["y"],
    )  # fmt: skip


@pytest.mark.slow
def test_what_decides_a_stage_is_in_its_key(built):
    """Registered derivatives, too, of which CasADi writes no Hessian."""

    for factor in (1, 3, 1):
        f = other_derivatives(factor)
        stages.kind("own", 2, 1, lambda x, u, p, s, f=f: {"rows": f(x), "cost": u**2}, graph="mx")
    kind(torque())
    kind(torque(), weight=2.0)
    kind(torque(), name="leg")
    assert built == ["own", "own", "arm", "arm", "leg"]


def test_a_damaged_file_is_built_again(built, folder):
    first = kind(torque())
    (path,) = folder.glob("*.functions")
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    with pytest.warns(od.ModelWarning, match="is not as it was written"):
        again = kind(torque())
    assert built == ["arm", "arm"]
    assert np.array_equal(numbers(again.hessian)[0], numbers(first.hessian)[0])


def test_what_has_no_scalar_form_is_not_kept(built, folder):
    class Python(ca.Callback):
        def __init__(self):
            super().__init__()
            self.construct("python", {"enable_fd": True})

        def eval(self, given):
            return [ca.sin(given[0])]

    f = Python()
    for _ in range(2):
        stages.kind("called", 1, 1, lambda x, u, p, s: {"rows": f(x)}, graph="mx")
    assert len(built) == 2
    assert not folder.exists() or list(folder.glob("*.functions")) == []


@pytest.mark.slow
def test_other_source_makes_other_keys(built, monkeypatch):
    kind(torque())
    monkeypatch.setattr(store, "_source", lambda *more: f"changed {more}")
    kind(torque())
    assert built == ["arm", "arm"]


@pytest.mark.slow
def test_plans_are_the_same(built):
    ends = [-1.2, 0.5], [-0.5, -0.8]
    options = {"nodes": 10, "objective": "effort", "duration": 2.0, "check": "off"}
    first, again = (od.plan_point_to_point(od.robots.planar_2r(), *ends, **options) for _ in range(2))
    assert built == ["phase0", "end"]
    assert np.array_equal(first.q, again.q)
    assert first.info["iterations"] == again.info["iterations"]
