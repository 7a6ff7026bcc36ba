"""Optimal-control problems as they are written down, and their solution stage by stage."""
