"""What all figures have in common."""

from functools import wraps


def without_tex(draw):
    """The function, in whose figures no text is read by TeX, whatever matplotlib's settings say: names of joints are
    not written for it, and an underscore would already end it."""

    @wraps(draw)
    def drawn(*args, **options):
        from matplotlib import rc_context

        with rc_context({"text.usetex": False}):
            return draw(*args, **options)

    return drawn
