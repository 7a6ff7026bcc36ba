"""Scenes: convex shapes on links and in the world, and the distances between them."""

from . import by_ad, distances  # registers quantities and methods
from .examples import example as example
from .examples import examples as examples
from .numeric import separation as separation
from .poses import exact_distances as exact_distances
from .scene import PORT as PORT
from .scene import Item as Item
from .scene import Scene as Scene
