"""What all figures have in common."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def without_tex(draw: Callable[P, T]) -> Callable[P, T]:
    """The function, in whose figures no text is read by TeX, whatever matplotlib's settings say: names of joints are
    not written for it, and an underscore would already end it."""

    @wraps(draw)
    def drawn(*args: P.args, **options: P.kwargs) -> T:
        from matplotlib import rc_context

        with rc_context({"text.usetex": False}):
            return draw(*args, **options)

    return drawn
