"""Motions of robots on joints: planning within limits, trajectories, their checks, pictures and files."""
