"""Figures of motions: many joints, long names, unequal limits."""

import numpy as np
import pytest

import oc_dyn as od


def motion(n, name="joint_{}", **limits):
    """Cubics from 0, of n joints."""
    joints = tuple(name.format(i) for i in range(n))
    pieces = np.zeros((1, 4, n))
    pieces[0, 1], pieces[0, 3] = 1.0, np.linspace(-12, -6, n)
    found = od.Limits(joints, **limits)
    return od.Trajectory([0, 1], pieces, joints=joints, units=("rad",) * n, limits=found)


NAMES = [(3, "j{}"), (7, "panda_joint{}"), (9, "W_W_{}"), (14, "joint_{}"), (40, "robot_left_leg_ankle_{}_joint")]


@pytest.mark.sample(1)
@pytest.mark.parametrize("n, name", [*NAMES, (60, "a{}")])
def test_joints_are_told_apart_and_the_legend_is_whole(n, name):
    figure = motion(n, name, v=5.0).plot()
    lines = figure.axes[0].lines[:n]
    assert len({(str(x.get_color()), x.get_linestyle()) for x in lines}) == n
    assert len({str(x.get_color()) for x in lines}) == (n if n <= 7 or n > 28 else 7)  # more hues nobody tells apart
    figure.canvas.draw()
    box, whole = figure.legends[0].get_window_extent(), figure.bbox
    assert box.x0 >= whole.x0
    assert box.y0 >= whole.y0
    assert box.x1 <= whole.x1
    assert box.y1 <= whole.y1
    for axis in figure.axes:
        assert not box.overlaps(axis.get_window_extent())
        assert axis.get_window_extent().width > 0.25 * 10 * figure.dpi  # panels stay as wide as they are


def curves(axis, n):
    return np.array([line.get_ydata() for line in axis.lines[:n]])


def test_unequal_limits_are_at_one_and_minus_one():
    """v = 1 - 6 t^2 to 1 - 3 t^2: from 1 to -5."""
    drawn = curves(motion(2, v=(-10, 2)).plot().axes[1], 2)
    assert drawn[:, 0] == pytest.approx([0.5, 0.5])
    assert drawn[:, -1] == pytest.approx([-0.5, -0.2])
    one = curves(motion(2, v=(-10, np.inf)).plot().axes[1], 2)  # without a limit above
    assert one[:, 0] == pytest.approx([0.1, 0.1])
    none = curves(motion(2, v=(-10, [0.0, 4.0])).plot().axes[1], 2)
    assert none[0, 0] == pytest.approx(1.0)  # over a limit of 0, by a tenth of the other


def test_both_limits_are_drawn_where_values_are():
    figure = motion(2, v=(-6, 1.5)).plot(normalized=False)
    levels = {float(line.get_ydata()[0]) for line in figure.axes[1].lines if len(line.get_xdata()) == 2}
    assert levels == {-6.0, 1.5}
