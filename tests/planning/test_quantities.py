"""The table of the quantities of a motion, and what reads it."""

from dataclasses import fields

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.planning.arguments import check_smooth
from oc_dyn.planning.quantities import BY_NAME, DRAWN, DYNAMIC, KINEMATIC, ORDERS, QUANTITIES, TABLE, order_name


def test_limits_have_the_quantities_of_the_table():
    assert [f.name for f in fields(od.Limits)] == ["joints", *QUANTITIES, "v_of_q", "followers"]


def test_motions_have_the_quantities_of_the_table():
    motion = od.Trajectory([0.0, 1.0], np.ones((1, 4, 1)), joints=["a"], units=["m"], torques=np.zeros((2, 2, 1)))
    assert all(getattr(motion, name).shape == (2, 1) for name in QUANTITIES)


def test_a_limit_is_refused_where_its_derivative_does_not_exist():
    for name in KINEMATIC[4:]:
        with pytest.raises(od.OrderError, match=f"limits of {name} need continuity {BY_NAME[name].order - 1}"):
            check_smooth("plan", BY_NAME[name].order - 2, od.Limits(["a"], **{name: 1.0}))
        check_smooth("plan", BY_NAME[name].order - 1, od.Limits(["a"], **{name: 1.0}))


def test_derivatives_are_named_by_their_order():
    assert KINEMATIC == tuple(order_name(k) for k in range(ORDERS))
    assert order_name(7) == "d6v"
    assert [BY_NAME[k].order for k in KINEMATIC] == list(range(ORDERS))
    assert KINEMATIC + DYNAMIC == QUANTITIES


def test_units_follow_the_coordinate():
    powers = ["", *(f"/s{x}" for x in ("", *"²³⁴⁵⁶⁷⁸⁹"))][:ORDERS]
    assert [x.unit_of("rad") for x in TABLE] == [*(f"rad{x}" for x in powers), "Nm", "Nm/s"]
    assert [x.unit_of("m") for x in TABLE] == [*(f"m{x}" for x in powers), "N", "N/s"]


def test_a_figure_has_a_panel_for_each_usual_quantity():
    motion = od.Trajectory([0.0, 1.0], np.ones((1, 4, 1)), joints=["a"], units=["m"])
    titles = [axis.get_title().split(",")[0] for axis in motion.plot().axes]
    assert titles == [f"{BY_NAME[k].title} {k}" for k in DRAWN]


def test_old_names_work_and_say_so():
    limits = od.Limits(["a"], v=2.0)
    with pytest.warns(DeprecationWarning, match="assert_within"):
        limits.require("start", v=1.0)
    with pytest.warns(DeprecationWarning, match="assert_within"), pytest.raises(od.LimitError, match="its limit 2"):
        limits.require("start", v=3.0)
    motion = od.Trajectory([0.0, 1.0], np.ones((1, 4, 1)), joints=["a"], units=["m"], limits=limits)
    with pytest.warns(DeprecationWarning, match="utilization"):
        used = motion.sample(0.1).used()
    assert np.array_equal(used["v"], motion.sample(0.1).utilization()["v"])
