"""Quadratic programs that are not solved, in the C that CasADi writes: no error of the Function, as in Python."""

from __future__ import annotations

import re

from ..errors import SolveError

# what the C of a solver ends with where it has not solved
_NOT_SOLVED = {
    "qrqp": """  } else if (d.status == QP_NO_SEARCH_DIR) {
    return 4;
  } else {
    return -1;
  }
""",
    "osqp": """      return 4;
    } else {
      return 1;
    }
  }
""",
    "daqp": """  if (!d_qp.success) {
    return -1;
  }
""",
}


def going_on(code: str, qpsol: str) -> str:
    """C text in which a quadratic program that was not solved is no error of its function: the residuals tell.

    Raises SolveError where the text is not as this version of CasADi writes it: without the change a step in C would
    end in its fallback where Python goes on.
    """
    failed = _NOT_SOLVED.get(qpsol)
    if failed is None:
        return code
    if failed not in code:
        problem = f"the C that this CasADi writes for {qpsol} does not end as expected where a program is not solved"
        raise SolveError(f"mpc: codegen: {problem}; take another qpsol, or the CasADi that oc_dyn names")
    return code.replace(failed, re.sub("return -?[0-9]+;", "return 0;", failed))
