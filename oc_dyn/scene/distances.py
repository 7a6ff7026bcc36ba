"""Distances of the pairs of a scene, by the form that fits the kinds of both shapes, and their derivatives."""

from __future__ import annotations

import numpy as np

from ..registry import method
from . import quantities as quantities  # registered before their methods
from .closed_forms import closed_form, has_closed_form
from .contacts import add_hessian, gradient, hessian, rows, summed_gradient
from .placed import ROOT, chain, joint_screws, placed, reference
from .smooth_support import bound, smooth_support

_BY_KIND = "closed forms where there are, else smooth_support"
_CLOSED = "Ericson 2005, Real-Time Collision Detection, 5.1.9; support functions against half-spaces"
_SMOOTH = "maximum over unit normals of smoothed support functions, by Newton steps of falling smoothing"
_ENVELOPE = ": envelope theorem, on screws in the root frame"
_CANNOT = {"transform": "its screws are constant in the body"}


def by_kind(a, b):
    """Contact of a pair, and whether a and b changed places in it, by the form that fits their kinds."""
    return closed_form(a, b) if has_closed_form(a.shape, b.shape) else smooth_support(a, b)


FORMS = {
    "by_kind": (by_kind, "analytic", _BY_KIND),
    "closed_forms": (closed_form, "closed_form", _CLOSED),
    "smooth_support": (smooth_support, "analytic", _SMOOTH),
}


def _register(name, form, kind, source):
    left = {"tolerance": 1e-8} if name == "smooth_support" else {}  # what its steps leave of the nearest points

    @method("distances", name, kind=kind, source=source)
    def distances(model, scene, q, poses, t, witnesses=False):
        """[(d, p_a, p_b)] of all pairs; see od.describe("distances"). Without witnesses points are in the frame of
        `reference`."""
        shapes, _ = placed(model, scene, q, poses, t, ROOT if witnesses else reference(model, scene))
        out = []
        for a, b in scene.pairs:
            x, swapped = form(shapes[a], shapes[b])
            out.append((x.d, x.point_b, x.point_a) if swapped else (x.d, x.point_a, x.point_b))
        return out

    @method("distances_partials", name, kind=kind, source=source + _ENVELOPE, **left)
    def partials(model, scene, q, poses, t):
        """(pairs, nv); see od.describe("distances_partials")."""
        contacts, joints = _contacts(form, model, scene, q, poses, t)
        return [rows(model, gradient(x, joints, chain(model, *ends))) for x, ends in contacts]

    @method("distances_adjoint", name, kind=kind, source=source + _ENVELOPE + "; wrenches summed over subtrees", **left)
    def adjoint(model, scene, q, poses, t, lam):
        """(nv,); see od.describe("distances_adjoint")."""
        contacts, joints = _contacts(form, model, scene, q, poses, t)
        return summed_gradient(model, contacts, joints, lam)

    @method(
        "distances_lagrangian_hessian",
        name,
        kind=kind,
        source=source + _ENVELOPE + " and implicit function theorem",
        cannot=_CANNOT,
        **left,
    )
    def lagrangian_hessian(model, scene, q, poses, t, lam):
        """(nv, nv); see od.describe("distances_lagrangian_hessian")."""
        contacts, joints = _contacts(form, model, scene, q, poses, t)
        blocks = {}
        for k, (x, ends) in enumerate(contacts):
            add_hessian(blocks, x, joints, chain(model, *ends), lam[k])
        return hessian(model, blocks)

    return distances, adjoint


def _contacts(form, model, scene, q, poses, t):
    """([(Contact, (body of its a, of its b))], screws of the joints)."""
    shapes, bodies = placed(model, scene, q, poses, t, reference(model, scene))
    out = []
    for a, b in scene.pairs:
        x, swapped = form(shapes[a], shapes[b])
        ends = (shapes[b].body, shapes[a].body) if swapped else (shapes[a].body, shapes[b].body)
        out.append((x, ends))
    return out, joint_screws(model, q, bodies)


METHODS = {name: _register(name, *facts) for name, facts in FORMS.items()}


def smoothed_by(scene):
    """(pairs,) [m] by how much by_kind is below the distance at most: 0 for pairs of closed forms."""
    both = ([scene[name].shape for name in pair] for pair in scene.pairs)
    return np.array([0.0 if has_closed_form(a, b) else bound(a) + bound(b) for a, b in both])
