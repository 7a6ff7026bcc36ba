"""Second partials of inverse and forward dynamics are what they say: derivatives of the first partials, with the
stated order, symmetry and structural zeros, with wrenches and friction."""

import casadi as ca
import numpy as np
import pytest
from samples import build, random_ports, relative, robot

import oc_dyn as od
from oc_dyn.errors import OrderError, ShapeError
from oc_dyn.lie.se3 import ad
from oc_dyn.model.canonical import canonical
from oc_dyn.partials.implicit import mass_matrix
from oc_dyn.registry import get_method
from oc_dyn.second_partials.forward_composite import inverse_factors
from oc_dyn.second_partials.tensor import as_tensor, pattern

INVERSE, FORWARD = "inverse_dynamics_second_partials", "forward_dynamics_second_partials"
STEP = 1e-5
FIRST = {  # output: (first partial, what it is differentiated by)
    "d2tau_dqdq": ("dtau_dq", "q"),
    "d2tau_dvdv": ("dtau_dv", "v"),
    "d2tau_dqdv": ("dtau_dq", "v"),
    "dM_dq": ("dtau_ddv", "q"),
    "d2dv_dqdq": ("ddv_dq", "q"),
    "d2dv_dvdv": ("ddv_dv", "v"),
    "d2dv_dqdv": ("ddv_dq", "v"),
    "dMinv_dq": ("ddv_dtau", "q"),
}


def damped(seed=21):
    """A branching robot with viscous and Coulomb friction, armature and a mimic joint."""
    b = od.RobotBuilder("damped")
    rng = np.random.default_rng(seed)
    b.add_link("base")
    for k, parent in enumerate(["base", "l0", "l1", "l1"]):
        extra = {"mimic": ("j0", -0.7, 0.2)} if k == 3 else {}
        b.add_body(
            f"l{k}",
            "revolute",
            parent,
            joint=f"j{k}",
            xyz=rng.uniform(-0.4, 0.4, 3),
            rpy=rng.uniform(-1, 1, 3),
            mass=rng.uniform(0.5, 2),
            com=rng.uniform(-0.2, 0.2, 3),
            inertia=np.diag([0.02, 0.03, 0.04]),
            damping=0.3 + k,
            friction=0.2,
            armature=0.05,
            **extra,
        )
    return b.build()


def differences(r, first, ports, port, by):
    """Tensor (i, j, k) by central differences of a first partial along q (+) e_k or v + e_k."""
    pages = []
    for k in range(r.nv):
        e = STEP * np.eye(r.nv)[k]
        sides = []
        for s in (1, -1):
            moved = dict(ports)
            moved[by] = r.integrate(ports["q"], s * e) if by == "q" else ports["v"].ravel() + s * e
            sides.append(np.array(first(**moved)[port]))
        pages.append((sides[0] - sides[1]) / (2 * STEP))
    return np.stack(pages, axis=2)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "quantity, name",
    [
        *((INVERSE, name) for name in ("floating", "spherical", "planar", "free", "mimic", "transform")),
        *((FORWARD, name) for name in ("spherical", "planar", "mimic")),
    ],
)
def test_derivative_of_the_first_partials(quantity, name):
    r = robot(name)
    f = od.function(r, quantity)
    ports = random_ports(f, r)
    first = od.function(r, quantity.replace("_second", ""))
    for port, value in f(**ports).items():
        error = relative(as_tensor(value), differences(r, first, ports, *FIRST[port]))
        assert error < 1e-7, f"{port} is off by {error:.1e}"


@pytest.mark.sample(1)
@pytest.mark.parametrize("quantity", [INVERSE, FORWARD])
def test_wrenches_and_friction_count(quantity):
    r = damped()
    options = {"external_wrenches": True, "friction": True}
    f = od.function(r, quantity, **options)
    ports = random_ports(f, r)
    ports["v"] = 0.02 * ports["v"]  # where Coulomb friction bends
    first = od.function(r, quantity.replace("_second", ""), **options)
    for port, value in f(**ports).items():
        error = relative(as_tensor(value), differences(r, first, ports, *FIRST[port]))
        assert error < 1e-6, f"{port} is off by {error:.1e}"
    plain = od.function(r, quantity)(**{k: x for k, x in ports.items() if k != "w_ext"})
    changed = [port for port, value in f(**ports).items() if relative(plain[port], value) > 1e-3]
    assert set(changed) >= {name for name in FIRST if name in plain and ("dqdq" in name or "dvdv" in name)}


@pytest.mark.sample(1)
@pytest.mark.parametrize("quantity", [INVERSE, FORWARD])
def test_every_method_takes_wrenches_and_friction(quantity):
    r = damped()
    reference = od.function(r, quantity, external_wrenches=True, friction=True)
    ports = random_ports(reference, r)
    expected = reference(**ports)
    for m in od.methods(quantity):
        if get_method(quantity, m).refusal(r, 0):
            continue
        got = od.function(r, quantity, method=m, external_wrenches=True, friction=True)(**ports)
        for port, value in expected.items():
            bound = get_method(quantity, m).tolerance or 1e-9
            assert relative(got[port], value) < bound, (m, port)


@pytest.mark.sample("planar-inverse_dynamics_second_partials", "planar-forward_dynamics_second_partials")
@pytest.mark.parametrize("quantity", [INVERSE, FORWARD])
@pytest.mark.parametrize("name", ["spherical", "planar", "free"])
def test_symmetry_and_the_stated_asymmetry(name, quantity):
    r, model = robot(name), canonical(robot(name))
    f, first = od.function(r, quantity), od.function(r, quantity.replace("_second", ""))
    ports = random_ports(f, r)
    out = {port: as_tensor(x) for port, x in f(**ports).items()}
    qq, vv, dM = (out[port] for port in out if not port.endswith("dqdv"))
    assert relative(vv, vv.transpose(0, 2, 1)) < 1e-12
    assert relative(dM, dM.transpose(1, 0, 2)) < 1e-12
    by_q = np.array(first(**ports)["dtau_dq" if quantity == INVERSE else "ddv_dq"])
    expected = np.zeros_like(qq)
    for i in model.bodies:  # [S_k, S_j] = sum_m c_kjm S_m, in one joint
        S, (_, _, start, size) = np.array(model.S[i]), model.coordinates[i]
        at = slice(start, start + size)
        for k in range(size):
            c = np.linalg.lstsq(S, np.array(ad(ca.DM(S[:, k]))) @ S, rcond=None)[0]  # (m, j)
            expected[:, at, start + k] += by_q[:, at] @ c
    assert np.abs(expected).max() > 0.1
    assert relative(qq - qq.transpose(0, 2, 1), expected) < 1e-11


METHODS = ("composite", "compact", "spatial_vector", "chain_rule", "ad", "ad_symmetric", "ad_pure", "bicomplex")


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", METHODS)
def test_zeros_of_branching_are_structural(method):
    r = build(["revolute", "revolute", "spherical", "revolute", "revolute"], [0, 1, 1, 3, 0], seed=3)
    f = od.function(r, INVERSE, method=method)
    model = canonical(r)
    bodies = {n: i for i in model.bodies for n in range(model.coordinates[i][2], sum(model.coordinates[i][2:]))}
    for k in range(f.n_out()):
        assert f.size_out(k) == (r.nv * r.nv, r.nv)
        rows, columns = f.sparsity_out(k).get_triplet()
        assert 0 < len(rows) < 0.5 * r.nv**3
        for row, column in zip(rows, columns, strict=True):
            found = {bodies[row % r.nv], bodies[row // r.nv], bodies[column]}
            assert any(found <= set(model.support(i)) for i in found)  # on one path
    assert f.sparsity_out(0).is_subset(pattern(model))


def test_other_orders_are_refused():
    with pytest.raises(OrderError, match="goes up to order 0"):
        od.function(robot("serial"), INVERSE, order=1)


def test_as_tensor():
    n = 3
    matrix = np.array([[100 * (row % n) + 10 * (row // n) + k for k in range(n)] for row in range(n * n)], float)
    T = as_tensor(ca.DM(matrix))
    assert all(T[i, j, k] == 100 * i + 10 * j + k for i in range(n) for j in range(n) for k in range(n))
    assert as_tensor(np.zeros((0, 0))).shape == (0, 0, 0)
    for wrong in (np.zeros((3, 3)), np.zeros(9), np.zeros((4, 2, 2))):
        with pytest.raises(ShapeError, match="expected"):
            as_tensor(wrong)


@pytest.mark.slow
def test_instructions_of_the_panda():
    panda = od.robots.panda()
    ways = "composite", "ad", "ad_symmetric", "ad_pure"
    count = {m: od.function(panda, INVERSE, method=m).n_instructions() for m in ways}
    assert count["composite"] <= 10_000
    assert count["composite"] < 0.4 * count["ad_pure"]
    assert count["composite"] < 0.75 * count["ad_symmetric"]
    assert count["ad_symmetric"] < 0.6 * count["ad"]
    assert od.function(panda, INVERSE).n_instructions() == count["composite"]  # the default takes the fewest


def test_limbs_on_a_fixed_base_know_nothing_of_each_other():
    """Of two pendulums d2dv_dqdq alone is left, an entry each."""
    b = od.RobotBuilder("two_arms")
    b.add_link("base")
    for k in (1, 2):
        b.add_body(f"arm{k}", "revolute", "base", mass=1.0, com=(0, 0, -0.3), axis=(1, 0, 0), inertia=0.1 * np.eye(3))
    f = od.function(b.build(), FORWARD, method="composite")
    assert [f.sparsity_out(k).nnz() for k in range(4)] == [2, 0, 0, 0]


@pytest.mark.parametrize(
    "name, share",
    [("tree:4", 0.8), ("chain:4", 0.8), pytest.param("quadruped", 0.97, marks=pytest.mark.slow)],
)
def test_composite_takes_fewer_instructions_than_ad(name, share):
    """Of forward dynamics; on a quadruped, between M^-1 and M^-1 instead of its factors, it was 1.04 of AD."""
    r = od.robots.by_name(name)
    count = {m: od.function(r, FORWARD, method=m).n_instructions() for m in ("composite", "ad_symmetric")}
    assert count["composite"] < share * count["ad_symmetric"]


def test_where_a_free_base_is_matters_to_its_own_fall_alone():
    """Partials by its coordinates and any others are zero, those by two of its angles are of gravity alone."""
    r = robot("floating")
    f = od.function(r, FORWARD)
    qq = od.as_tensor(ca.DM(f.sparsity_out(0), 1))
    assert not qq[:, :6, 6:].any()
    assert not qq[:, 6:, :6].any()
    assert qq[:6, 6:, 6:].any()
    ports = random_ports(f, r)
    still = {**ports, "v": 0 * ports["v"], "tau": 0 * ports["tau"]}
    moving, resting = (od.as_tensor(f(**x)["d2dv_dqdq"])[:, :6, :6] for x in (ports, still))
    assert np.array_equal(moving, resting)
    assert moving.any()
    first = od.function(r, "forward_dynamics_partials", method="ad")
    for k in range(3):  # first by one angle, then by angle k
        step = 1e-6 * np.eye(r.nv)[k]
        after, before = (np.array(first(**{**ports, "q": r.integrate(ports["q"], x)})["ddv_dq"]) for x in (step, -step))
        assert relative(moving[:, :, k], (after - before)[:, :6] / 2e-6) < 1e-7


@pytest.mark.parametrize("name", ["floating", "branching", "mimic", "planar"])
def test_factors_of_the_inverse_mass_matrix(name):
    """M^-1 = E^T G, and G has entries for joints on the path to a joint alone, where joints move independently."""
    r = robot(name)
    q, model = ca.SX.sym("q", r.nq), canonical(r, regroup=True)
    M = mass_matrix(model, q)
    G, E = inverse_factors(M)
    f = ca.Function("f", [q], [ca.densify(ca.mtimes([M, E.T, G]))])
    assert np.abs(np.array(f(r.random_configuration(1))) - np.eye(r.nv)).max() < 1e-12
    assert G.sparsity().is_triu()
    if name != "mimic":
        columns = {i: range(model.coordinates[i][2], sum(model.coordinates[i][2:])) for i in model.bodies}
        on_paths = {(a, b) for i in model.bodies for j in model.support(i) for a in columns[j] for b in columns[i]}
        assert set(zip(*G.sparsity().get_triplet(), strict=True)) <= on_paths


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["floating", "spherical", "mimic"])
@pytest.mark.parametrize("what", ["inverse", "forward"])
def test_contraction_is_the_lagrangian_hessian(what, name):
    """With multipliers the tensors make the Hessian; of those that are not symmetric it has the symmetric part."""
    r = robot(name)
    f, H = od.function(r, f"{what}_dynamics_second_partials"), od.function(r, f"{what}_dynamics_lagrangian_hessian")
    ports = random_ports(H, r)
    lam = ports["lam"].ravel()
    out = f(**{port: x for port, x in ports.items() if port != "lam"})
    y, x = ("dv", "tau") if what == "forward" else ("tau", "dv")
    mixed = "dMinv_dq" if what == "forward" else "dM_dq"
    names = f"d2{y}_dqdq", f"d2{y}_dvdv", f"d2{y}_dqdv", mixed
    qq, vv, qv, xq = (np.einsum("i,ijk->jk", lam, as_tensor(out[port])) for port in names)
    zero = np.zeros((r.nv, r.nv))
    expected = np.block([[0.5 * (qq + qq.T), qv, xq.T], [qv.T, vv, zero], [xq, zero, zero]])
    assert relative(H(**ports)["H"], expected) < 1e-10


@pytest.mark.parametrize("name", ["branching", "planar"])
def test_mass_matrix_partials_are_those_of_the_matrices(name):
    r = robot(name)
    f, matrices = od.function(r, INVERSE), od.function(r, "matrix_partials")
    ports = random_ports(f, r)
    got = f(**ports)["dM_dq"]
    assert relative(got, matrices(q=ports["q"], v=ports["v"])["dM_dq"]) < 1e-10


def test_as_tensor_is_a_public_name():
    """Entry (i, j, k) stands at row i + n j, column k."""
    matrix = np.arange(27.0).reshape(9, 3)
    tensor = od.as_tensor(matrix)
    assert tensor.shape == (3, 3, 3)
    assert all(tensor[i, j, k] == matrix[i + 3 * j, k] for i in range(3) for j in range(3) for k in range(3))
