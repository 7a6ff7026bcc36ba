"""Taylor-mode automatic differentiation: truncated Taylor series through the instructions of a casadi.Function."""
