"""The benchmarks: the one against Pinocchio's own routines is built against its headers, and run on generated C.

Its headers come with the wheel of Pinocchio, those of Eigen with the wheel of CasADi or of cmeel-eigen, or with the
system.
"""

import csv
import io
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import casadi as ca

from ...codegen.build import find_compiler, run_compiler
from ...codegen.source import c_source, prepared
from ...compiled_files import built as kept
from ...compiled_files import cache_folder, digest
from ...errors import SolveError
from .robots import model_text

FAST = ("-O3", "-march=native")
BOOST = (  # what Pinocchio's own build asks of Boost: it has more kinds of joints than the defaults allow
    "-DBOOST_MPL_LIMIT_LIST_SIZE=30",
    "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "-DBOOST_FUSION_INVOKE_MAX_ARITY=12",
)
SOURCES = ("benchmark.cpp", "model.hpp", "timed.hpp")


def _cxx():
    own = shlex.split(os.environ.get("CXX", ""))
    for words in (*([own] if own else []), ["c++"], ["g++"], ["clang++"]):
        if shutil.which(words[0]):
            return words
    raise SolveError("no C++ compiler was found; looked for $CXX, c++, g++, clang++")


def compiler_version():
    """First line of what the C compiler says about itself."""
    return run_compiler([*find_compiler(), "--version"]).splitlines()[0]


def includes():
    """Folders of the headers of Pinocchio, Boost and Eigen; SolveError that says which are not there."""
    try:
        import pinocchio
    except ImportError:
        raise SolveError("Pinocchio is not installed (pip install pin)") from None
    near = _near(pinocchio) + _near(ca)
    out = [
        _folder("Pinocchio", "pinocchio/algorithm/rnea-second-order-derivatives.hpp", near),
        _folder("Boost", "boost/variant.hpp", near),
        eigen(near),
    ]
    return list(dict.fromkeys(out))


def eigen(near=()):
    """Folder of Eigen's headers, those of the wheel of CasADi at the latest; SolveError where there are none."""
    places = [*near, *_near(ca), *_SYSTEM]
    return _folder("Eigen", "unsupported/Eigen/CXX11/Tensor", [p / "eigen3" for p in places] + places)


_SYSTEM = (Path("/usr/include"), Path("/usr/local/include"))


def _near(module):
    """Folders where the wheel of a module may keep headers."""
    return [parent / "include" for parent in Path(module.__file__).resolve().parents[:6]]


def _folder(what, header, places):
    place = next((p for p in (*places, *_SYSTEM) if (p / header).is_file()), None)
    if place is None:
        raise SolveError(f"the headers of {what} were not found ({header})")
    return place


def built():
    """Path of the benchmark: compiled, in minutes, where the cache of compiled code does not hold it.

    Raises SolveError that says what is missing, or what the compiler says.
    """
    find_compiler()
    places = includes()
    import pinocchio

    return program("peers", SOURCES, places, pinocchio.__version__, BOOST)


def program(name, sources, places, version, options=(), libraries=()):
    """Path of a program of this folder's C++ sources, the first of which is compiled, kept in the cache of compiled
    code. places: folders of headers. version: of the library that it measures."""
    here, words = Path(__file__).parent, _cxx()
    texts = {source: (here / source).read_text(encoding="utf-8") for source in sources}
    compiler = run_compiler([*words, *FAST, "-dM", "-E", "-x", "c++", os.devnull])
    flags = [word for place in places for word in ("-isystem", str(place))]
    flags = ["-std=c++17", *FAST, "-DNDEBUG", "-w", *options, *flags]
    command = [*words, *flags, sources[0], "-o", name, *map(str, libraries), "-ldl"]
    # complete: the sources, the command, the compiler and processor by its macros, the headers by their version
    key = digest([list(texts.items()), command, compiler, version])

    def make(folder):
        for source, text in texts.items():
            Path(folder, source).write_text(text, encoding="utf-8")
        run_compiler(command, folder, time_limit=None)
        return Path(folder, name)

    return kept(cache_folder(), name, key, make, "", shlex.join(words))


def compiled(function, folder, name, flags=FAST, parts=None):
    """C code of a Function as a shared library `folder`/name.so: {"library", "bytes", "seconds", "library_bytes"}."""
    text = c_source([prepared(function, name, parts)], name)
    source, library = Path(folder, f"{name}.c"), Path(folder, f"{name}.so")
    source.write_text(text, encoding="utf-8")
    start = time.perf_counter()
    run_compiler([*find_compiler(), *flags, "-fPIC", "-shared", "-o", str(library), str(source), "-lm"])
    seconds = time.perf_counter() - start
    return {"library": library, "bytes": len(text), "seconds": seconds, "library_bytes": library.stat().st_size}


def times(robot, model, functions, milliseconds=2.0, rounds=101):
    """Rows of the benchmark, {column: text}: those of Pinocchio's routines, then those of the functions.

    functions: [(label, library, symbol, routine)].
    """
    benchmark = built()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model.txt").write_text(model_text(robot, model), encoding="utf-8")
        write_functions(Path(folder, "functions.txt"), functions)
        return measured([benchmark, "model.txt", "functions.txt", milliseconds, rounds], folder, robot.name)


def write_functions(path, functions):
    """What a benchmark reads of functions: lines "label library symbol routine"."""
    path.write_text("".join(" ".join(map(str, words)) + "\n" for words in functions), encoding="utf-8")


def measured(words, folder, name):
    """Rows {column: text} that a benchmark of the robot `name` writes; SolveError with its own words if it fails.

    It runs on one core, if the system lets one choose.
    """
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=_stay_on_one_core if hasattr(os, "sched_setaffinity") else None,
    )
    if done.returncode:
        raise SolveError(f"the benchmark of {name} ended with status {done.returncode}: {done.stderr.strip()}")
    return list(csv.DictReader(io.StringIO(done.stdout)))


def _stay_on_one_core():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
