"""Small problems whose optimum is known, by every method and solver: nothing ends below, errors fall as promised.

Statements and closed forms are those of public collections. `python tests/test_known_optima.py` prints the table.
"""

from dataclasses import dataclass
from functools import lru_cache

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.planning.integrators import METHODS

SOLVERS = ("ipopt", "fatrop", "sqpmethod")


def brachistochrone(nodes):
    """Fastest slide to a point 2 m away and 2 m below, g = 9.8 m/s^2."""
    ocp = od.Problem(nodes, (0.3, 3.0))
    x, y, v = (ocp.state(n, guess=lambda s, k=k: k * s) for n, k in (("x", 2.0), ("y", 2.0), ("v", 6.0)))
    u = ocp.control("u", lower=0, upper=np.pi, guess=lambda s: 0.1 + 1.5 * s)
    ocp.rate(x, v * ca.sin(u))
    ocp.rate(y, v * ca.cos(u))
    ocp.rate(v, 9.8 * ca.cos(u))
    ocp.start({x: 0, y: 0, v: 0})
    ocp.goal({x: 2, y: 2})
    ocp.minimize(terminal=ocp.duration)
    return ocp


def integrators(nodes, order, bounds, guess=1.0):
    """Rest to rest over 1 m in least time; bounds of the derivatives, the last one the control."""
    ocp = od.Problem(nodes, (0.5, 10.0))
    x = [
        ocp.state(f"x{k}", lower=-b, upper=b, guess=(lambda s: s) if k == 0 else 0.0)
        for k, b in enumerate([np.inf, *bounds[:-1]])
    ]
    u = ocp.control("u", lower=-bounds[-1], upper=bounds[-1])
    for a, b in zip(x, [*x[1:], u], strict=True):
        ocp.rate(a, b)
    ocp.start(dict.fromkeys(x, 0))
    ocp.goal({**dict.fromkeys(x, 0), x[0]: 1})
    ocp.minimize(terminal=ocp.duration)
    return ocp


def bryson_denham(nodes, limit):
    """Least effort from 1 m/s to -1 m/s at the same place, below a ceiling."""
    ocp = od.Problem(nodes, 1.0)
    x, v, u = ocp.state("x", upper=limit), ocp.state("v", guess=lambda s: 1 - 2 * s), ocp.control("u")
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 1})
    ocp.goal({x: 0, v: -1})
    ocp.minimize(integral=u**2 / 2)
    return ocp


def least_effort(nodes):
    ocp = od.Problem(nodes, 1.0)
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u")
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 0})
    ocp.goal({x: 1, v: 0})
    ocp.minimize(integral=u**2 / 2)
    return ocp


def rate_limited(nodes):
    ocp = od.Problem(nodes, 2.0)
    x, v, w = ocp.state("x"), ocp.state("v"), ocp.state("w")
    r = ocp.control("r", lower=-4, upper=4)
    ocp.rate(x, v)
    ocp.rate(v, w)
    ocp.rate(w, r)
    ocp.start({x: 0, v: 0, w: 0})
    ocp.goal({x: 1, v: 0})
    ocp.minimize(integral=w**2)
    return ocp


def hypersensitive(nodes, duration):
    ocp = od.Problem(nodes, duration)
    x, u = ocp.state("x", guess=0.1), ocp.control("u")
    ocp.rate(x, -x + u)
    ocp.start({x: 1.5})
    ocp.goal({x: 1})
    ocp.minimize(integral=(x**2 + u**2) / 2)
    return ocp


def interior_point(nodes):
    """Two phases of three quarters and one quarter of a second; the place between them is given: a state that is zero
    takes what is missing at the join to the end, where it has to be zero again."""
    ocp = od.Problem(3 * nodes // 4, 0.75)
    x, u, miss = ocp.state("x", guess=0.9), ocp.control("u"), ocp.state("miss")
    for number in range(2):
        if number:
            ocp.phase(nodes // 4, 0.25)
        ocp.rate(x, u)
        ocp.rate(miss, 0)
        ocp.minimize(integral=x**2 + u**2)
        if not number:
            ocp.join(miss, x - 0.9)
    ocp.start({x: 1, miss: 0})
    ocp.goal({x: 0.75, miss: 0})
    return ocp


def singular_arc(nodes):
    ocp = od.Problem(nodes, (1.0, 10.0))
    x, v = ocp.state("x", guess=lambda s: 2 + 3 * s), ocp.state("v", guess=0.8)
    u = ocp.control("u", lower=-1, upper=1)
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 2, v: 0})
    ocp.goal({x: 5, v: 0})
    ocp.minimize(integral=(1 + v**2) / 2)
    return ocp


def fuller(nodes):
    """Bang-bang controls whose switches accumulate."""
    ocp = od.Problem(nodes, 5.0)
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u", lower=-1, upper=1)
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 1})
    ocp.minimize(integral=x**2)
    return ocp


def goddard(nodes):
    """The rocket that is to rise highest, with drag; full thrust, a singular arc, none."""
    ocp = od.Problem(nodes, (0.05, 0.5))
    h = ocp.state("h", lower=1, guess=lambda s: 1 + 0.01 * s)
    v = ocp.state("v", lower=0, scale=0.1, guess=lambda s: 0.4 * s * (1 - s))
    m = ocp.state("m", lower=0.6, upper=1, guess=lambda s: 1 - 0.4 * s)
    thrust = ocp.control("thrust", lower=0, upper=3.5, guess=lambda s: 3.5 * (1 - s))
    ocp.rate(h, v)
    ocp.rate(v, (thrust - 310 * v**2 * ca.exp(-500 * (h - 1))) / m - 1 / h**2)
    ocp.rate(m, -2 * thrust)
    ocp.start({h: 1, v: 0, m: 1})
    ocp.goal({m: 0.6})
    ocp.minimize(terminal=-h)
    return ocp


if __name__ == "__main__":
    import sys, time, warnings
    warnings.simplefilter("ignore")
    P={"brach":(brachistochrone,0.824759143157,(10,20,40)),
    "dint":(lambda n: integrators(n,2,[np.inf,1]),2.0,(10,20,40)),
    "tint":(lambda n: integrators(n,3,[np.inf,np.inf,1]),32**(1/3),(10,20,40)),
    "tint5":(lambda n: integrators(n,3,[.5,1,4]),2.75,(11,22,44)),
    "bd9":(lambda n: bryson_denham(n,1/9),4.0,(10,20,40)),
    "bd10":(lambda n: bryson_denham(n,.1),40/9,(10,20,40)),
    "le":(least_effort,6.0,(10,20,40)),
    "rate":(rate_limited,24/13,(10,20,40)),
    "hyp10":(lambda n: hypersensitive(n,10.),1.67309397841219,(20,40,80)),
    "hyp100":(lambda n: hypersensitive(n,100.),1.67309703885628,(100,200,400)),
    "int":(interior_point,0.920531441473003,(8,16,32)),
    "sing":(singular_arc,10/3,(10,20,40)),
    "fuller":(fuller,0.268393830569,(25,50,100)),
    "goddard":(goddard,-1.012837,(30,60,120)),}
    for name in sys.argv[1:] or P:
        build,opt,ns=P[name]
        for m in METHODS:
            for sol in SOLVERS:
                line=[]
                for n in ns:
                    made=build(n); par=None
                    if isinstance(made,tuple): made,par=made
                    try:
                        t=time.time()
                        s=made.solve(method=m,solver=sol,parameters=par,check="off"); c=s.check()
                        line.append(f"{s.objective-opt:10.2e} def {c.defect:7.1e} w {c.worst:7.1e} J {c.objective-opt:9.1e} it {s.iterations} {time.time()-t:.1f}s")
                    except Exception as e: line.append(str(e)[:60])
                print(f"{name:7s} {m:16s} {sol:10s}"," | ".join(line),flush=True)
