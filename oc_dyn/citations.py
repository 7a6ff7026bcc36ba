"""od.cite: what to cite for a method, as BibTeX."""

from __future__ import annotations

import re

from ._version import __version__
from .errors import UnknownName
from .registry import get_method, methods, quantities

# by the words with which sources of methods begin: type, key, fields
_WORKS: dict[str, tuple[str, str, dict[str, str]]] = {
    "Kumar and Mueller 2021": ("inproceedings", "KumarMueller2021", {
        "author": "Kumar, Shivesh and M{\\\"u}ller, Andreas",
        "title": "Nth Order Analytical Time Derivatives of Inverse Dynamics in Recursive and Closed Forms",
        "booktitle": "IEEE International Conference on Robotics and Automation (ICRA)", "year": "2021"}),
    "Ali et al. 2026": ("misc", "AliGabellieriFranchi2026", {
        "author": "Ali, Ahmed and Gabellieri, Chiara and Franchi, Antonio",
        "title": "Lie Group Formulation of Recursive Dynamics Algorithms of Higher Order for Floating-Base Robots",
        "note": "Preprint", "year": "2026"}),
    "Garofalo et al. 2013": ("inproceedings", "GarofaloOttAlbuSchaeffer2013", {
        "author": "Garofalo, Gianluca and Ott, Christian and Albu-Sch{\\\"a}ffer, Alin",
        "title": "On the closed form computation of the dynamic matrices and their differentiations",
        "booktitle": "IEEE/RSJ International Conference on Intelligent Robots and Systems (IROS)", "year": "2013",
        "doi": "10.1109/IROS.2013.6696688"}),
    "Singh et al. 2023": ("misc", "SinghRussellWensing2023", {
        "author": "Singh, Shubham and Russell, Ryan P. and Wensing, Patrick M.",
        "title": "On Second-Order Derivatives of Rigid-Body Dynamics: Theory \\& Implementation",
        "eprint": "2302.06001", "archiveprefix": "arXiv", "year": "2023"}),
    "Kim 2012": ("techreport", "Kim2012", {
        "author": "Kim, Junggon", "title": "Lie Group Formulation of Articulated Rigid Body Dynamics",
        "institution": "Carnegie Mellon University", "type": "Technical report, version 1.01", "year": "2012"}),
    "De Luca and Book 2008": ("incollection", "DeLucaBook2008", {
        "author": "De Luca, Alessandro and Book, Wayne", "title": "Robots with Flexible Elements",
        "booktitle": "Springer Handbook of Robotics", "publisher": "Springer", "year": "2008"}),
    "Spong 1987": ("article", "Spong1987", {
        "author": "Spong, Mark W.", "title": "Modeling and Control of Elastic Joint Robots",
        "journal": "Journal of Dynamic Systems, Measurement, and Control", "volume": "109", "number": "4",
        "year": "1987"}),
    "Featherstone 2008": ("book", "Featherstone2008", {
        "author": "Featherstone, Roy", "title": "Rigid Body Dynamics Algorithms", "publisher": "Springer",
        "year": "2008"}),
    "Featherstone 1983": ("article", "Featherstone1983", {
        "author": "Featherstone, Roy",
        "title": "The Calculation of Robot Dynamics Using Articulated-Body Inertias",
        "journal": "The International Journal of Robotics Research", "volume": "2", "number": "1", "year": "1983"}),
    "Featherstone 2005": ("article", "Featherstone2005", {
        "author": "Featherstone, Roy",
        "title": "Efficient Factorization of the Joint-Space Inertia Matrix for Branched Kinematic Trees",
        "journal": "The International Journal of Robotics Research", "volume": "24", "number": "6", "year": "2005"}),
    "Carpentier and Mansard 2018": ("inproceedings", "CarpentierMansard2018", {
        "author": "Carpentier, Justin and Mansard, Nicolas",
        "title": "Analytical Derivatives of Rigid Body Dynamics Algorithms",
        "booktitle": "Robotics: Science and Systems (RSS)", "year": "2018"}),
    "Carpentier et al. 2021": ("inproceedings", "Carpentier2021", {
        "author": "Carpentier, Justin and Budhiraja, Rohan and Mansard, Nicolas",
        "title": "Proximal and Sparse Resolution of Constrained Dynamic Equations",
        "booktitle": "Robotics: Science and Systems (RSS)", "year": "2021"}),
    "Walker and Orin 1982": ("article", "WalkerOrin1982", {
        "author": "Walker, Michael W. and Orin, David E.",
        "title": "Efficient Dynamic Computer Simulation of Robotic Mechanisms",
        "journal": "Journal of Dynamic Systems, Measurement, and Control", "volume": "104", "year": "1982"}),
    "Orin, Goswami and Lee 2013": ("article", "OrinGoswamiLee2013", {
        "author": "Orin, David E. and Goswami, Ambarish and Lee, Sung-Hee",
        "title": "Centroidal dynamics of a humanoid robot", "journal": "Autonomous Robots", "volume": "35",
        "year": "2013"}),
    "Balafoutis and Patel 1991": ("book", "BalafoutisPatel1991", {
        "author": "Balafoutis, Constantinos A. and Patel, Rajnikant V.",
        "title": "Dynamic Analysis of Robot Manipulators: A Cartesian Tensor Approach", "publisher": "Kluwer",
        "year": "1991"}),
    "Niemeyer and Slotine 1991": ("article", "NiemeyerSlotine1991", {
        "author": "Niemeyer, G{\\\"u}nter and Slotine, Jean-Jacques E.",
        "title": "Performance in Adaptive Manipulator Control",
        "journal": "The International Journal of Robotics Research", "volume": "10", "number": "2", "year": "1991"}),
    "Atkeson, An and Hollerbach 1986": ("article", "AtkesonAnHollerbach1986", {
        "author": "Atkeson, Christopher G. and An, Chae H. and Hollerbach, John M.",
        "title": "Estimation of Inertial Parameters of Manipulator Loads and Links",
        "journal": "The International Journal of Robotics Research", "volume": "5", "number": "3", "year": "1986"}),
    "Lantoine, Russell and Dargent 2012": ("article", "LantoineRussellDargent2012", {
        "author": "Lantoine, Gregory and Russell, Ryan P. and Dargent, Thierry",
        "title": "Using Multicomplex Variables for Automatic Computation of High-Order Derivatives",
        "journal": "ACM Transactions on Mathematical Software", "volume": "38", "number": "3", "year": "2012"}),
    "Griewank and Walther 2008": ("book", "GriewankWalther2008", {
        "author": "Griewank, Andreas and Walther, Andrea",
        "title": "Evaluating Derivatives: Principles and Techniques of Algorithmic Differentiation",
        "edition": "2nd", "publisher": "SIAM", "year": "2008", "doi": "10.1137/1.9780898717761"}),
    "Ericson 2005": ("book", "Ericson2005", {
        "author": "Ericson, Christer", "title": "Real-Time Collision Detection", "publisher": "Morgan Kaufmann",
        "year": "2005"}),
}  # fmt: skip
_OWN = ("software", "oc_dyn", {"author": "{the oc\\_dyn authors}", "title": "oc\\_dyn", "version": __version__})


def cite(method: str | None = None, quantity: str | None = None) -> str:
    """What to cite for a method, as BibTeX, the toolkit last; by a method's name alone, for all quantities with one.

    method: a name of od.methods, None for the toolkit alone. quantity: a name of od.quantities. The first lines, which
    BibTeX takes for a comment, say what each source gave; of works that the toolkit has no entry for they are all.
    Raises UnknownName for a method that is not there; of a quantity's name, it tells the methods.
    """
    if method is None:
        if quantity is not None:
            return "\n\n".join(dict.fromkeys(cite(m, quantity) for m in methods(quantity)))
        return _entry(_OWN)
    found = [quantity] if quantity is not None else [q for q in quantities() if method in methods(q)]
    if not found and method in quantities():
        more = f"{method!r} is a quantity, cite(quantity={method!r}) is of all its methods"
        raise UnknownName("method", method, methods(method), more)
    if not found:
        raise UnknownName("method", method, sorted({m for q in quantities() for m in methods(q)}))
    sources = {q: get_method(q, method).source for q in found}
    told = [f"{q}, {method}: {source}" for q, source in sources.items()]
    works = [work for words, work in _WORKS.items() if any(_mentions(source, words) for source in sources.values())]
    return "\n\n".join(["\n".join(told), *map(_entry, [*works, _OWN])])


def _mentions(source: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\d)", source) is not None


def _entry(work: tuple[str, str, dict[str, str]]) -> str:
    kind, key, fields = work
    return "\n".join([f"@{kind}{{{key},", *(f"  {name} = {{{x}}}," for name, x in fields.items()), "}"])
