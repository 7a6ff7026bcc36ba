"""Names of what a Problem has. Guesses, ends, bounds and values of parameters are kept by name, so that no two of its
states, controls, parameters and chains' quantities may share one, nor a limit and a chain that `bound` addresses."""

from ..errors import ShapeError


def chain_names(name, order):
    """Names of q, dq, ... of a chain."""
    return [f"d{j}{name}" if j else name for j in range(order + 1)]


def quantities(problem):
    """{name of q, dq, ...: name of its chain} of the chains whose quantities are no states."""
    splines = ((points[0].name().removesuffix("_0"), len(points) - 1) for points in problem._splines)
    of_bernstein = ((chain.name, chain.order) for chain in problem._bernstein)
    return {q: name for name, order in (*splines, *of_bernstein) for q in chain_names(name, order)}


def taken(problem):
    """{name: what has it} of all but limits."""
    found = {q: f"quantity of the chain {name!r}" for q, name in quantities(problem).items()}
    for what in ("state", "control", "parameter"):
        found |= {x.name: what for x in getattr(problem, f"_{what}s")}
    return found | {x.name: "varying parameter" for x in problem._varying}


def claim(problem, what, name):
    """Raise ShapeError where something has the name already."""
    has = taken(problem).get(name)
    if has:
        raise ShapeError(f"{what} {name!r}: there is a {has} {name!r} already; choose another name")


def claim_chain(problem, name, order, basis):
    """The same for all names that a chain takes."""
    has, own = taken(problem), chain_names(name, order)
    if basis != "taylor":
        has = dict.fromkeys(limits(problem) & set(own), "limit") | has
        own += [f"{name}_{j}" for j in range(order + 1)]  # its unknowns
    for one in own:
        if one in has:
            text = "" if one == name else f"it takes the name {one!r}, and "
            raise ShapeError(f"chain {name!r}: {text}there is a {has[one]} {one!r} already; choose another name")


def limits(problem):
    """Names of the limits that have one."""
    rows = (row for p in problem._phases for row in (*p.rows, *(w.constraint for w in p.within if w.fixed is None)))
    return {row.name for row in rows if row.name}
