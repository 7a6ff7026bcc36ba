"""The robot: links and joints, read from a file or written in code, and the canonical form that algorithms read."""
