"""Animated GIFs of matplotlib Figures, of which only what moves is drawn for every picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..files import replacing
from ..types import Figure, StrPath

_COLORS = 255  # of a GIF's palette, in which one is left for "as before"
_EXACT = 128  # of them, those that most pixels have, kept as they are; the rest stand for all other colours
_Pixels = tuple[Any, Any]  # places in the picture, flat, and their colours


def write_gif(
    figure: Figure, moving: Sequence[Any], show: Callable[[int], object], count: int, path: StrPath, duration: int
) -> None:
    """Write `count` pictures of a Figure on an Agg canvas, each shown for `duration` ms, again and again.

    show(k) sets the artists `moving` for picture k: they are drawn over all else in the order given, and all else is
    drawn once. One palette serves all pictures, exact where they have no more than 255 colours.
    """
    from PIL import Image

    still, changed = _drawn(figure, moving, show, count)
    palette, number = _palette(still, changed)
    flat = palette.ravel().tolist()

    def picture(k: int) -> Any:
        places, colors = changed[k]
        found = base.copy()
        found.ravel()[places] = number(colors)
        image = Image.fromarray(found)
        image.putpalette(flat)  # makes its mode "P"
        return image

    base = number(still)
    with replacing(path) as part:
        rest: Iterator[Any] = map(picture, range(1, count))
        picture(0).save(part, save_all=True, append_images=rest, duration=duration, loop=0)


def _drawn(figure: Any, moving: Sequence[Any], show: Callable[[int], object], count: int) -> tuple[Any, list[_Pixels]]:
    """Colours of what stays, (height, width), and of each picture those of the pixels that differ from it."""
    canvas = figure.canvas
    show(0)
    for artist in moving:
        artist.set_animated(True)  # left out by draw()
    canvas.draw()
    renderer, background = canvas.get_renderer(), canvas.copy_from_bbox(figure.bbox)
    still = _colors(canvas)
    changed = []
    for k in range(count):
        show(k)
        canvas.restore_region(background)
        for artist in moving:
            artist.draw(renderer)
        colors = _colors(canvas)
        places = np.flatnonzero(colors != still)
        changed.append((places, colors.ravel()[places]))
    return still, changed


def _colors(canvas: Any) -> Any:
    """(height, width) red, green and blue of the pixels in one number each."""
    return np.asarray(canvas.buffer_rgba()).view("<u4")[..., 0] & 0xFFFFFF


def _palette(still: Any, changed: Sequence[_Pixels]) -> tuple[Any, Callable[[Any], Any]]:
    """Palette (colours, 3), and a function: colours as numbers -> their places in it."""
    from PIL import Image

    stay, move = (np.unique(x, return_counts=True) for x in (still, np.concatenate([x for _, x in changed])))
    colors, places = np.unique(np.concatenate([stay[0], move[0]]), return_inverse=True)
    counts = np.bincount(places, np.concatenate([len(changed) * stay[1], move[1]]))
    order = np.argsort(-counts, kind="stable")
    colors, counts = colors[order], counts[order]
    parts = np.stack([colors & 255, colors >> 8 & 255, colors >> 16], axis=1).astype(np.uint8)
    palette: Any = parts
    if len(parts) > _COLORS:
        often = np.repeat(parts[_EXACT:], np.ceil(np.sqrt(counts[_EXACT:])).astype(int), axis=0)
        others: Any = Image.fromarray(often[None]).quantize(_COLORS - _EXACT, method=Image.Quantize.MEDIANCUT)
        palette = np.concatenate([parts[:_EXACT], np.reshape(others.getpalette(), (-1, 3)).astype(np.uint8)])[:_COLORS]
    nearest = np.zeros(len(parts), np.uint8)
    for start in range(0, len(parts), 4096):
        apart = parts[start : start + 4096, None].astype(int) - palette.astype(int)
        nearest[start : start + 4096] = np.square(apart).sum(axis=-1).argmin(axis=1)
    table = np.zeros(1 << 24, np.uint8)
    table[colors] = nearest
    return palette, lambda numbers: table[numbers]
