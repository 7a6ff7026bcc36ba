"""Arithmetic operations of Functions, also of those that call others: the same on every machine.

Counted are scalar additions, multiplications, sines and the like, one each, as often as they are made: those of a
product of matrices where neither operand is structurally zero, those of a called Function at every call. Copies are
free.
"""

import casadi as ca

from ..errors import ModelError
from ..series.nodes import LINEAR

_ADDING = (ca.OP_ADDNONZEROS, ca.OP_HORZREPSUM)
_FREE = (set(LINEAR) - set(_ADDING)) | {ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST, ca.OP_PARAMETER}


def operations(f):
    """Arithmetic operations of a call of a Function; ModelError where one is not known."""
    kind = f.class_name()
    if kind in ("Map", "OmpMap", "ThreadMap"):
        facts = f.info()
        return facts["n"] * operations(facts["f"])
    if kind == "SXFunction":
        return sum(f.instruction_id(k) not in _FREE for k in range(f.n_instructions()))
    if kind != "MXFunction":
        raise ModelError(f.name(), [f"operations of a {kind} are not known"])
    called, total = {}, 0
    for k in range(f.n_instructions()):
        op = f.instruction_id(k)
        if op in _FREE:
            continue
        node = f.instruction_MX(k)
        if op == ca.OP_CALL:
            g = node.which_function()
            if g.__hash__() not in called:
                called[g.__hash__()] = operations(g), g  # g stays alive, so that its hash is not another one's
            total += called[g.__hash__()][0]
        else:
            total += _of_node(f, op, node)
    return total


def _of_node(f, op, node):
    if op == ca.OP_MTIMES:
        start, a, b = (node.dep(k) for k in range(3))
        products = ca.DM(a.sparsity(), 1) @ ca.DM(b.sparsity(), 1)
        added = 0 if start.is_zero() else start.nnz()
        return product_operations(products) + added
    if op in _ADDING:
        return max(node.dep(k).nnz() for k in range(node.n_dep()))
    if node.is_unary() or node.is_binary():
        return node.nnz()
    raise ModelError(f.name(), [f"operations of {node.info().get('op', f'operation {op}')} are not known"])


def product_operations(counts):
    """Operations of a product of which this was found with ones: multiplications, and one addition less an entry."""
    return 2 * int(ca.sum1(ca.sum2(counts))) - counts.nnz()
