"""Digits that spatial forms lose far from the origin: inverse dynamics and derivatives of a Panda 1 m to 10 km from it.

Spatial twists and wrenches are about one point for all bodies. Ali et al. 2026 take the origin of the inertial frame:
inertias about it grow with the square of the distance, torques are differences of large moments. recursive_spatial
takes where the first body is. Body-fixed forms do not know the distance. What is exact is the body-fixed recursion of
the same robot at the origin, whose torques are the same.
"""

from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np

from .. import robots
from ..inverse_dynamics.recursive_body import recursive_body
from ..inverse_dynamics.recursive_spatial import joint_wrenches, recursive_spatial, wrench_on_screw
from ..inverse_dynamics.taylor import taylor
from ..kinematics.recursive_body import body_poses
from ..model.canonical import canonical
from ..runs.manifest import manifest, write_json
from ..runs.stored_table import StoredTable
from ..text import in_columns
from . import apart

ROBOT, ORDER, SAMPLES = "panda", 4, 50
DISTANCES = (0, 1, 10, 100, 1000, 10_000)  # [m]
EXACT = 2.0**-52

CAPTIONS = {
    "precision.csv": "Largest error of torques and their derivatives, relative to the largest entry of each order, by "
    "form and distance from the origin; digits: decimal ones that are right.",
    "precision.png": "Digits that are right over the distance from the origin, by form and order.",
}


def about_origin(model, order, q, V):
    """As recursive_spatial, but about the root's origin, as published."""
    S, Wd = joint_wrenches(model, order, q, V, poses=body_poses)
    out = []
    for k in range(order + 1):
        dv = model.joint_v(V[k + 1])
        out.append(model.stack({i: wrench_on_screw(S[i], Wd[i], k) + model.armature[i] * dv[i] for i in model.bodies}))
    return out


FORMS = {
    "about origin": about_origin,
    "about first body": recursive_spatial,
    "body-fixed": recursive_body,
    "taylor": taylor,
}


def run(out, quick=False, progress=None):
    """Measure and draw; returns the table as a text.

    out: folder for precision.csv, precision.png, manifest.json. quick: two distances and orders.
    """
    from .paper_figures import plot_series

    out, order, distances = Path(out), 1 if quick else ORDER, DISTANCES[::5] if quick else DISTANCES
    table = StoredTable(out / "precision.csv", ("form", "distance", "order"), ("error", "digits"), quick=quick)
    model = canonical(robots.by_name(ROBOT))
    points = motions(model, order)
    exact = torques(recursive_body, model, order, points)
    for name, form in FORMS.items():
        for distance in distances:
            got = torques(form, moved(model, distance), order, points)
            for k in range(order + 1):
                error = np.abs(got[:, k] - exact[:, k]).max() / np.abs(exact[:, k]).max()
                table.add(form=name, distance=distance, order=k, error=f"{error:.2e}", digits=f"{digits(error):.1f}")
    table.close()
    plot_series(_panels(table.rows), out / "precision.png", "Inverse dynamics of the Panda far from the origin")
    command = apart.typed("precision", out, quick)
    write_json(out / "manifest.json", manifest(command, robot=ROBOT, samples=SAMPLES))
    return in_columns([list(table.rows[0])[:-1], *([*row.values()][:-1] for row in table.rows)])


def moved(model, distance):
    """The model with its bodies on the ground carried away by `distance` [m], along (1, 1, 1)."""
    way = distance / np.sqrt(3) * np.ones(3)
    places = [p if i == 0 or model.parent[i] else p + way for i, p in enumerate(model.p)]
    return replace(model, p=tuple(places))


def motions(model, order):
    """[(q, V)] at random, V = [v, dv, ...]."""
    rng, robot = np.random.default_rng(0), model.robot
    return [(robot.random_configuration(k), rng.normal(size=(order + 2, robot.nv))) for k in range(SAMPLES)]


def torques(form, model, order, points):
    """(samples, orders, joints) by a form."""
    q, V = ca.SX.sym("q", model.robot.nq), [ca.SX.sym(f"v{k}", model.robot.nv) for k in range(order + 2)]
    f = ca.Function("f", [q, *V], form(model, order, q, V))
    return np.array([[np.array(x).ravel() for x in f.call([at, *rates])] for at, rates in points])


def digits(error):
    """Decimal digits that are right."""
    return -np.log10(max(error, EXACT))


def _panels(rows):
    panels = []
    for order in dict.fromkeys(row["order"] for row in rows):
        lines = []
        for form in FORMS:
            of = [row for row in rows if (row["form"], row["order"]) == (form, order) and row["distance"] != "0"]
            points = [float(row["distance"]) for row in of], [max(float(row["error"]), EXACT) for row in of]
            lines.append((form, *points, "-" if form.startswith("about") else "--"))
        panels.append((f"order {order}", "distance [m]", "relative error", "log", lines))
    return panels
