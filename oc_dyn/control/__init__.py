"""Model-predictive control, in Python and as C."""
