"""Dynamic feedback linearisation of the complete model (De Luca and Lucibello 1998).

Row i of the links reads  phi_i = [M q'' + n]_i = tau_i - c_i,  tau_i the torque of its spring and c_i what the motors
behind it add: S theta'' and terms of Coriolis. c_i needs theta_j up to its second derivative, so theta_j has to be
differentiated the oftener the more joints are before it: mu_j times, 2 for the first joint and up to 2 n for the last
(motor_orders); N is the largest. The law keeps as its memory

    theta_j'', .., theta_j^(mu_j - 1)   and   phi_j^(mu_j), .., phi_j^(N - 1),

n (N - 2) numbers in all, 2 n (n - 1) at most, as chains of integrators. With the robot's state they give q up to its
derivative N + 1, from the lowest to the highest; the wanted derivative N + 2 of q gives phi^(N) by inverse dynamics,
and with it, from the last joint to the first, the highest derivatives of theta, that of joint 1 being its acceleration.
Every step is explicit, whatever the triangular matrix S(q); nothing is inverted but M(q) and the springs' stiffness.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import casadi as ca

from ..errors import ModelError
from ..function import function
from ..lie.time_derivatives import time_derivatives
from ..ports import derivative_name
from .drives import drive_torques
from .linear_errors import wanted_derivative
from .model import ElasticRobot
from .motor_side import deflections, spring_torques


class CompleteLaw:
    """The law of the complete model; memory: size of its state."""

    def __init__(self, elastic: ElasticRobot, inverse_dynamics: str | None = None) -> None:
        other = elastic.rigid or elastic.sigma_names or any(len(j.theta) > 1 for j in elastic.joints)
        if elastic.damped or other:
            kind = "damped springs" if elastic.damped else "joints that are rigid or of variable stiffness"
            problem = f"{kind} in the complete model; take the law of the reduced one, or undamped()"
            raise ModelError(elastic.name, [f"feedback_linearization: {problem}"])
        self.elastic, self.orders, self.top = elastic, elastic.motor_orders, max(elastic.motor_orders)
        self.memory = elastic.nv * (self.top - 2)
        self.method = inverse_dynamics
        self._coupling: dict[int, ca.Function] = {}

    def first(self, ref: dict[str, Any]) -> Any:
        """The memory at the start of a reference."""
        position = [ref[name] for name in _names(self.top + 3)]
        phi = drive_torques(self.elastic, self.top, self.method).call(position)
        theta: list[list[Any]] = [[] for _ in self.orders]
        for i in reversed(range(len(theta))):
            torque = [phi[m][i] + self._extra(m, position, theta)[i] for m in range(self.orders[i] + 1)]
            z = self.elastic.joints[i].spring.deflections(torque, [])[0]
            theta[i] = [x + position[m][i] for m, x in enumerate(z)]
        chains = [theta[i][2:mu] + [phi[m][i] for m in range(mu, self.top)] for i, mu in enumerate(self.orders)]
        return ca.vertcat(*(x for chain in chains for x in chain))

    def torques(self, ref: dict[str, Any], state: dict[str, Any], gains: dict[str, Any]) -> dict[str, Any]:
        """{output: expression}, friction apart."""
        elastic, top, n = self.elastic, self.top, self.elastic.nv
        memory, size = ca.vertsplit(state["memory"]), top - 2
        chains = [memory[i * size : (i + 1) * size] for i in range(n)]
        theta = [
            [state["theta"][i], state["dtheta"][i], *chains[i][: mu - 2]] for i, mu in enumerate(self.orders)
        ]  # fmt: skip
        ahead = [dict(zip(range(mu, top), chains[i][mu - 2 :], strict=True)) for i, mu in enumerate(self.orders)]
        position, tau = self._motion(state["q"], state["v"], theta, ahead)
        wanted = wanted_derivative(ref, position, gains)
        phi = drive_torques(elastic, top, self.method).call([*position, wanted])[top]
        for i in reversed(range(n)):
            mu = self.orders[i]
            tau[i].append((ahead[i][mu] if mu < top else phi[i]) + self._extra(mu, position, theta)[i])
            z = [x - position[m][i] for m, x in enumerate(theta[i])]
            theta[i].append(elastic.joints[i].spring.deflection(mu, [z], tau[i], [])[0] + position[mu][i])
        rates = [[*theta[i][3 : mu + 1], *list(ahead[i].values())[1:]] for i, mu in enumerate(self.orders)]
        rates = [r + [phi[i]] * (self.orders[i] < top) for i, r in enumerate(rates)]
        q, v, a = position[:3]
        carried = ca.jtimes(elastic.coupling.momentum(q, v), ca.vertcat(q, v), ca.vertcat(v, a))  # type: ignore[union-attr]
        second = ca.vertcat(*(x[2] for x in theta))
        tau_m = ca.DM(elastic.motor_inertia) @ second + carried + ca.vertcat(*(x[0] for x in tau))
        out = {"tau_m": tau_m}
        return {**out, "memory_rate": ca.vertcat(*(x for r in rates for x in r))} if self.memory else out

    def _motion(self, q: Any, v: Any, theta: Any, ahead: Any) -> tuple[list[Any], list[list[Any]]]:
        """([q, v, .., derivative top + 1 of q], [torque of each spring with its derivatives below mu]).

        theta: [jet below mu]; ahead: [{order: derivative of phi} from mu on], of each joint.
        """
        elastic, position = self.elastic, [q, v]
        M = function(elastic.links, "mass_matrix")(q)
        factors = ca.ldl(ca.triu2symm(ca.triu(ca.sparsify(M))), False)
        tau: list[list[Any]] = [[] for _ in theta]
        for m in range(self.top):
            springs, extra = self._springs(m, position, theta), self._extra(m, position, theta)
            phi = []
            for i, mu in enumerate(self.orders):
                if m < mu:
                    tau[i].append(springs[i])
                phi.append(springs[i] - extra[i] if m < mu else ahead[i][m])
            rest = drive_torques(elastic, m, self.method).call([*position, ca.DM.zeros(elastic.nv)])[m]
            position.append(ca.ldl_solve(ca.densify(ca.vertcat(*phi) - rest), *factors))
        return position, tau

    def _springs(self, m: int, position: list[Any], theta: list[list[Any]]) -> Any:
        """Derivative m of the springs' torques; what theta does not give yet counts as zero."""
        z = deflections(self.elastic, position[: m + 1], [_column(theta, k) for k in range(m + 1)])
        return spring_torques(self.elastic, m, z, [])[m]

    def _extra(self, m: int, position: list[Any], theta: list[list[Any]]) -> Any:
        """Derivative m of what the coupling adds to the rows of the links; rows that need more of theta are wrong."""
        if m not in self._coupling:
            self._coupling[m] = _force_rate(self.elastic, m)
        return self._coupling[m](*position[: m + 2], *(_column(theta, k) for k in range(1, m + 3)))


def _column(theta: list[list[Any]], k: int) -> Any:
    return ca.vertcat(*(jet[k] if k < len(jet) else ca.DM(1, 1) for jet in theta))


def _force_rate(elastic: ElasticRobot, m: int) -> ca.Function:
    """casadi.Function (q, v, .. [m + 2 of them], theta', .. [m + 2]) -> derivative m of the coupling's forces."""
    n = elastic.nv
    q, theta = ([ca.SX.sym("x", n) for _ in range(m + 2)] for _ in range(2))
    coupling: Any = elastic.coupling
    force = coupling.forces(q[0], q[1], theta[0], theta[1])
    rate = time_derivatives(force, m, [*pairwise(q), *pairwise(theta)], cse=True)[m]
    return ca.Function("force_rate", [*q, *theta], [rate])


def _names(count: int) -> list[str]:
    return ["q", *(derivative_name("v", k) for k in range(count - 1))]
