"""A page with a robot that moves: od.view."""
