"""Studies that no paper has: which method is cheapest where, what building costs, gradients, single precision."""
