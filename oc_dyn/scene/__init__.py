"""Scenes: convex shapes on links and in the world, and the distances between them."""

from .scene import PORT as PORT
from .scene import Item as Item
from .scene import Scene as Scene
