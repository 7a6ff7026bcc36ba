"""Time derivatives of y = A x for a matrix that changes as A' = a A, such as the adjoint of a moving pose.

| A         | a        | V is the      |
|-----------|----------|---------------|
| Ad(C)     | ad(V)    | spatial twist |
| Ad(C)^-1  | -ad(V)   | body twist    |
| Ad(C)^-T  | -ad(V)^T | spatial twist |
| Ad(C)^T   | ad(V)^T  | body twist    |
"""

from math import comb

from .jets import total


def product_derivative(a, b, k):
    """Derivative k of the product a b, from lists of derivatives of both."""
    return total(comb(k, j) * (a[j] @ b[k - j]) for j in range(k + 1))


def carry(A, rates, x):
    """[y, y', ...] from rates = [a, a', ...], at least one less, and x = [x, x', ...]; None where x is zero from there
    on. x may have several columns."""
    rows = []
    for value in x:
        grow(rows, A, rates, value)
    return rows[0]


def grow(rows, A, rates, x):
    """One more derivative of y, for recursions that learn the rates on the way; returns it.

    rows: start with []; then rows[r] holds the derivatives of A x^(r), and rows[0] those of y. x: its next derivative.
    Equation:  (A x^(r))^(k) = sum_l C(k-1,l) a^(l) (A x^(r))^(k-1-l) + (A x^(r+1))^(k-1)
    """
    rows.append(None if x is None else [A @ x])
    for row, below in zip(rows[-2::-1], rows[:0:-1], strict=True):  # from the highest derivative of x down
        if row is None:
            continue
        k = len(row)
        value = total(comb(k - 1, l) * (rates[l] @ row[k - 1 - l]) for l in range(k))
        row.append(value if below is None else value + below[k - 1])
    return rows[0][-1]
