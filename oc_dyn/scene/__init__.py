"""Scenes: convex shapes on links and in the world, and the distances between them."""

from . import quantities  # registers the quantities
from . import distances  # the methods
from . import by_ad
from .examples import example as example
from .examples import examples as examples
from .scene import PORT as PORT
from .scene import Item as Item
from .scene import Scene as Scene
