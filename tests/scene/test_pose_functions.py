"""Poses that are Functions of the time: told apart by content, refused where there is none."""

import pickle

import casadi as ca
import pytest

import oc_dyn as od


class Moved(ca.Callback):
    """A pose at x, whose state CasADi does not write."""

    def __init__(self, x):
        super().__init__()
        self.x = x
        self.construct("moved", {})

    def get_sparsity_out(self, i):
        return ca.Sparsity.dense(4, 4)

    def eval(self, arguments):
        out = ca.DM.eye(4)
        out[0, 3] = self.x
        return [ca.densify(out)]


def add(f):
    return od.Scene().add("ball", od.shapes.Sphere(0.1), f)


def test_functions_without_content_are_refused():
    t, own = ca.MX.sym("t"), Moved(1.0)
    inner = ca.Function("inner", [t], [own(t)], {"never_inline": True})
    chosen = ca.Function.if_else("chosen", own, own)
    for f in (
        own,
        ca.Function("f", [t], [own(t)]),
        ca.Function("f", [t], [inner(t)]),
        ca.Function("f", [t], [own.map(2)(ca.horzcat(t, t))[:, :4]]),
        ca.Function("f", [t], [chosen(t > 0, t)]),
    ):
        with pytest.raises(od.ShapeError, match="pose of 'ball'.*CallbackInternal.*SX or MX"):
            add(f)
        with pytest.raises(od.ShapeError, match="CallbackInternal"):
            add(None).released("ball", f)


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_functions_with_content_are_told_apart(kind):
    def at(x):
        t = kind.sym("t")
        return add(
            ca.Function("f", [t], [ca.densify(ca.blockcat([[kind.eye(3), ca.vertcat(t, x, 0)], [kind(1, 3), 1]]))])
        )

    assert at(1.0) == at(1.0) == pickle.loads(pickle.dumps(at(1.0)))
    assert at(1.0) != at(2.0)


@pytest.mark.parametrize("wrong", [5, None, (1, 2), ([], "ball"), "ball", ("ball",)])
def test_leave_out_tells_what_it_expects(wrong):
    with pytest.raises(od.ShapeError, match="leave_out got .*expected pairs of two names"):
        add(None).leave_out(wrong)
