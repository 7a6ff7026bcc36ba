"""od.function: ports, what it takes, and what it says when that is wrong."""

import pickle
import warnings

import casadi as ca
import numpy as np
import pytest
from samples import random_ports, relative, robot, scene

import oc_dyn as od
from oc_dyn.registry import get_method


def test_named_ports_and_shapes():
    f = od.function(robot("floating"), "inverse_dynamics", order=2, external_wrenches=True)
    assert f.name() == "inverse_dynamics_2"
    assert f.name_in() == ["q", "v", "dv", "d2v", "d3v", "w_ext", "dw_ext", "d2w_ext"]
    assert f.name_out() == ["tau", "dtau", "d2tau"]
    assert f.size_in("q") == (10, 1)
    assert f.size_in("v") == (9, 1)
    assert f.size_in("w_ext") == (6, 4)
    inputs, outputs = od.ports(robot("floating"), "inverse_dynamics", 2, external_wrenches=True)
    assert [p.name for p in inputs + outputs] == f.name_in() + f.name_out()
    assert all(p.unit and p.meaning for p in inputs + outputs)


def test_is_a_casadi_function_everywhere():
    r = robot("serial")
    f = od.function(r, "inverse_dynamics")
    x = random_ports(f, r)
    expected = np.array(f(**x)["tau"]).ravel()
    assert isinstance(f, ca.Function)
    batch = f.map(3)(*[np.tile(v.reshape(-1, 1), 3) for v in x.values()])
    assert relative(batch, np.tile(expected.reshape(-1, 1), 3)) < 1e-14
    opti = ca.Opti()
    dv = opti.variable(r.nv)
    opti.minimize(ca.sumsqr(f(x["q"], x["v"], dv) - expected))
    opti.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes"})
    assert relative(opti.solve().value(dv), x["dv"].ravel()) < 1e-6
    again = pickle.loads(pickle.dumps(f))
    assert relative(again(**x)["tau"].full().ravel(), expected) == 0
    with pytest.raises(od.ShapeError, match="joint1"):
        again(np.zeros(3), x["v"], x["dv"])


def test_flat_row_and_list_inputs():
    r = robot("serial")
    f = od.function(r, "inverse_dynamics")
    q = np.linspace(0, 1, 4)
    results = [f(q=value, v=0, dv=0)["tau"] for value in (q, q.tolist(), q.reshape(-1, 1), q.reshape(1, -1), ca.DM(q))]
    for result in results[1:]:
        assert relative(result, results[0]) == 0


def test_wrenches_by_body_name():
    r = robot("branching")
    f = od.function(r, "inverse_dynamics", external_wrenches=True)
    W = np.zeros((6, 5))
    W[:, 2] = np.arange(6)
    name = r.bodies[2].name
    x = {"q": np.linspace(0, 1, 5), "v": 0, "dv": 0}
    assert relative(f(**x, w_ext={name: np.arange(6.0)})["tau"], f(**x, w_ext=W)["tau"]) == 0
    assert relative(f(**x, w_ext={name: [0, 1, 2, 3, 4, 5]})["tau"], f(**x, w_ext=W)["tau"]) == 0
    with pytest.raises(od.UnknownName, match="link3"):
        f(**x, w_ext={"lnk3": np.zeros(6)})
    with pytest.raises(od.ShapeError, match=f"{name}.*3 entries, expected 6"):
        f(**x, w_ext={name: np.zeros(3)})


@pytest.mark.parametrize(
    "call, error, words",
    [
        (
            lambda r: od.function(r, "inverse_dynamic"),
            od.UnknownName,
            ["inverse_dynamic", "did you mean", "inverse_dynamics"],
        ),
        (lambda r: od.function(r, "inverse_dynamics", method="tailor"), od.UnknownName, ["tailor", "taylor"]),
        (lambda r: od.function(r, "inverse_dynamics", order=-1), od.OrderError, ["-1", "at least 0"]),
        (lambda r: od.function(r, "inverse_dynamics", order=1.5), od.OrderError, ["1.5"]),
        (lambda r: od.function(r, "inverse_dynamics", order=True), od.OrderError, ["True"]),
        (
            lambda r: od.function(r, "forward_dynamics", method="articulated_body", order=2),
            od.OrderError,
            ["order 2", "taylor"],
        ),
        (lambda r: od.function(r, "inverse_dynamics", name="a-b"), od.ShapeError, ["a-b", "letters"]),
        (lambda r: od.function(r, "inverse_dynamics", friktion=True), od.UnknownName, ["friktion", "friction"]),
        (lambda r: od.function(r, "frame_pose"), od.ShapeError, ["frame=", "link1"]),
        (lambda r: od.function(r, "frame_pose", frame="link"), od.UnknownName, ["link1"]),
        (lambda r: od.function(r, "frame_pose", frame=3), od.UnknownName, ["3; available: the name of a frame"]),
        (lambda r: od.function(r, "bias", representation=3), od.UnknownName, ["3; available: body, spatial, hybrid"]),
        (lambda r: od.function(r, "coriolis_matrix", coriolis=3), od.UnknownName, ["3; available: christoffel, garof"]),
        (
            lambda r: od.function(r, "inverse_dynamics")(q=np.zeros(5), v=0, dv=0),
            od.ShapeError,
            ["port q", "(5, 1)", "(4, 1)", "joint4"],
        ),
        (lambda r: od.function(r, "inverse_dynamics")(q=0, w=0, dv=0), od.UnknownName, ["'w'", "q, v, dv"]),
        (lambda r: od.function(r, "inverse_dynamics")(0, 0), od.ShapeError, ["2 arguments", "3", "q[4, 1]"]),
        (lambda r: od.function(r, "inverse_dynamics")(0, v=0, dv=0), od.ShapeError, ["by position or all by name"]),
        (lambda r: od.function(r, "inverse_dynamics")(q="abc", v=0, dv=0), od.ShapeError, ["port q"]),
        (lambda r: r.joint("joint"), od.UnknownName, ["joint1"]),
    ],
)
def test_errors_say_what_would_be_right(call, error, words):
    with pytest.raises(error) as caught:
        call(robot("serial"))
    for word in words:
        assert word in str(caught.value)


def test_an_impossible_order_is_a_value_error():
    with pytest.raises(ValueError):
        od.function(robot("serial"), "forward_dynamics", method="articulated_body", order=1)


def test_method_that_cannot_do_the_robot_says_why():
    assert get_method("forward_dynamics", "articulated_body").refusal(robot("mimic"), 0)
    with pytest.raises(od.OrderError, match="mimic"):
        od.function(robot("mimic"), "forward_dynamics", method="articulated_body")
    assert od.function(robot("mimic"), "forward_dynamics").n_out() == 1  # the default goes another way


def test_same_function_is_built_once():
    r = robot("serial")
    assert od.function(r, "inverse_dynamics") is od.function(r, "inverse_dynamics")
    assert od.function(r, "inverse_dynamics") is not od.function(r, "inverse_dynamics", order=1)


def test_no_free_symbols():
    for quantity in od.quantities():
        if od.registry.get(quantity).admit:
            continue  # of another kind of robot
        options = {"frame": "link2"} if "frame" in od.registry.get(quantity).options else {}
        if "representation" in od.registry.get(quantity).options and "frame" in options:
            options["representation"] = "body"
        if "scene" in od.registry.get(quantity).options:
            options["scene"] = scene()
        assert not od.function(robot("spherical"), quantity, **options).has_free()


def test_friction():
    b = od.RobotBuilder("one")
    b.add_link("base")
    b.add_body("arm", "revolute", "base", joint="j", mass=1, inertia=np.eye(3), damping=0.7, friction=0.3)
    r = b.build()
    off, on = (od.function(r, "inverse_dynamics", order=1, friction=x) for x in (False, True))
    x = {"q": 0, "v": 0.7, "dv": 0.2, "d2v": 0}
    assert float(on(**x)["tau"] - off(**x)["tau"]) == pytest.approx(0.49 + 0.3)
    x["v"] = 0.01
    h = 1e-6
    slope = sum(s * float(on(**{**x, "v": 0.01 + s * h * 0.2})["tau"]) for s in (1, -1)) / (2 * h)
    assert float(on(**x)["dtau"] - off(**x)["dtau"]) == pytest.approx(slope, rel=1e-6)
    tau = on(**x)["tau"]
    dv = od.function(r, "forward_dynamics", friction=True)(q=0, v=0.01, tau=tau)["dv"]
    assert float(dv) == pytest.approx(0.2)
    tau = on(**x)
    found = od.function(r, "forward_dynamics", order=1, friction=True)(q=0, v=0.01, tau=tau["tau"], dtau=tau["dtau"])
    assert float(found["dv"]) == pytest.approx(0.2)
    assert float(found["d2v"]) == pytest.approx(0.0, abs=1e-9)


def test_armature_counts_in_all_quantities():
    b = od.RobotBuilder("one")
    b.add_link("base")
    b.add_body("arm", "revolute", "base", joint="j", mass=1, rotor_inertia=1e-4, gear_ratio=100)
    r = b.build()
    assert float(od.function(r, "mass_matrix")(q=0)["M"]) == pytest.approx(1.0)
    assert float(od.function(r, "inverse_dynamics")(q=0, v=0, dv=1)["tau"]) == pytest.approx(1.0)
    assert float(od.function(r, "forward_dynamics")(q=0, v=0, tau=1)["dv"]) == pytest.approx(1.0)


@pytest.mark.slow
def test_robots_and_their_functions_are_freed():
    import gc
    import weakref

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        r = od.robots.chain(3)
    od.function(r, "inverse_dynamics")
    alive = weakref.ref(r)
    del r
    gc.collect()
    assert alive() is None


def test_table_lists_every_method():
    text = od.table()
    for quantity in od.quantities():
        for method in od.methods(quantity):
            assert any(quantity in line and method in line for line in text.splitlines())


def test_every_method_names_its_source_and_default_exists():
    for quantity in od.quantities():
        record = od.registry.get(quantity)
        assert record.default
        assert set(record.default) <= set(od.methods(quantity))
        for method in od.methods(quantity):
            m = get_method(quantity, method)
            assert m.source
            assert m.kind in ("analytic", "closed_form", "ad", "numeric")
            assert m.function.__doc__


def test_a_robot_without_joints_has_no_dynamics_but_floats():
    b = od.RobotBuilder("stone")
    b.add_link("stone", mass=3)
    with pytest.raises(od.ModelError, match="no moving joint.*floating_base"):
        od.function(b.build(), "inverse_dynamics")
    assert od.function(b.build(), "frame_pose", frame="stone")()["p"].full().tolist() == [[0], [0], [0]]
    tau = od.function(b.build(floating_base=True), "inverse_dynamics")(q=[1, 0, 0, 0, 0, 0, 0], v=0, dv=0)["tau"]
    assert tau.full().ravel() == pytest.approx([0, 0, 0, 0, 0, 3 * 9.81])
