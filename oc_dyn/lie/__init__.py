"""Lie groups SO(3), SE(3) and Taylor coefficients of curves; twists are [angular; linear], wrenches [moment; force]."""
