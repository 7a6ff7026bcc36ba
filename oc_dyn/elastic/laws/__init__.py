"""Laws of control by passivity and by modes, each with the conditions of its proof checked, and rules for gains."""
