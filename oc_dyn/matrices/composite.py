"""Mass matrix by composite bodies: each column is the wrench that moves all bodies beyond a joint, as one."""

from dataclasses import dataclass

from ..registry import method
from ..working_axes.assembly import assembled
from ..working_axes.fields import product
from ..working_axes.sums import MassIntegrals, constants
from ..working_axes.tree import Carried, WorkingTree


@method(
    "mass_matrix",
    "composite",
    kind="analytic",
    source="Walker and Orin 1982, composite rigid bodies, with base parameters",
    max_order=0,
    regroup=True,
)
def composite_method(model, order, q, V):
    """Mass matrix [M] (nv, nv); see od.describe("mass_matrix")."""
    return [composite(model, q)]


def composite(model, q):
    """Mass matrix (nv, nv) at q (nq,), sparse where the robot branches, in working axes. Cost O(n depth)."""
    S = {i: (x[0][:3, :], x[0][3:, :]) for i, x in model.subspaces(q, [], 0).items()}
    trees, blocks = WorkingTree(model, q), {}
    trees.collect(CompositeInertia, lambda i, _, turn: CompositeInertia(*constants(model.inertia[i])[:3]).turned(turn))
    for i in model.reversed_bodies:
        column = trees.sum(i).inertia(S[i])
        blocks[i, i] = product(S[i], column) + model.rotor(i)
        for j, carried, _ in trees.climb(i, Carried([column])):
            blocks[j, i] = product(S[j], carried.wrenches[0])  # a screw along z is the same on both sides of the turn
    return assembled(model, blocks, mirrored=True)


@dataclass
class CompositeInertia(MassIntegrals):
    """Mass, first moment and tensor of a composite body."""

    m: object
    h: object
    T: object
