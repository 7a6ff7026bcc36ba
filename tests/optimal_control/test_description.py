"""Problem.description: a value that never changes, and what is read at every solve besides."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.errors import ShapeError, UnknownName


def double_integrator():
    ocp = od.Problem(10, 1.0)
    x, v = ocp.state("x"), ocp.state("v")
    u = ocp.control("u", lower=-30, upper=30)
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 0})
    ocp.goal({x: 1, v: 0})
    ocp.minimize(integral=u**2)
    return ocp, x, v, u


def test_a_description_is_taken_once_and_stays_as_it_is():
    ocp, x, v, _ = double_integrator()
    before = ocp.description
    assert ocp.description is before
    rows, rates = before.phases[0].rows, dict(before.phases[0].rates)
    ocp.limit(-1, v, 1.4)
    ocp.rate(x, 2 * v)
    ocp.state("y")
    assert before.phases[0].rows is rows
    assert dict(before.phases[0].rates) == rates
    assert [s.name for s in before.states] == ["x", "v"]
    after = ocp.description
    assert after is not before
    assert len(after.phases[0].rows) == 1
    assert [s.name for s in after.states] == ["x", "v", "y"]


def test_a_description_cannot_be_written_to():
    description = double_integrator()[0].description
    with pytest.raises(FrozenInstanceError):
        description.states = ()
    with pytest.raises(FrozenInstanceError):
        description.phases[0].nodes = 3
    with pytest.raises(TypeError, match="does not support item assignment"):
        description.phases[0].rates[0] = 1


def test_a_solution_goes_by_the_description_that_was_solved():
    ocp, x, v, _ = double_integrator()
    found = ocp.solve()
    ocp.limit(-1, v, 1.2)
    assert found.transcribed.description.phases[0].rows == ()
    assert found.check().ok()
    assert np.abs(found[v]).max() > 1.4
    assert np.abs(ocp.solve()[v]).max() < 1.2 + 1e-6


def test_ends_and_guesses_are_read_at_every_solve_and_leave_the_description():
    ocp, x, v, _ = double_integrator()
    description, transcribed = ocp.description, ocp.transcribed()
    ocp.guess({x: [0.25], "v": lambda share: [share]})
    ocp.goal({x: 2})
    assert ocp.description is description
    assert ocp.transcribed() is transcribed
    nodes = np.split(transcribed.guess(None), transcribed.assembly.first[1:-1])
    assert np.allclose([z[0] for z in nodes], 0.25)
    assert np.allclose([z[1] for z in nodes], np.linspace(0, 1, 11))
    assert ocp.solve()[x][-1, 0] == pytest.approx(2)


def test_guesses_of_what_there_is_not():
    ocp, *_ = double_integrator()
    with pytest.raises(UnknownName, match="y"):
        ocp.guess({"y": 0})
    with pytest.raises(ShapeError, match="guess"):
        ocp.guess([0])
