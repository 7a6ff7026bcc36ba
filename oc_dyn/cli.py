"""The command oc-dyn: demo, plan, study, codegen, list, describe, check, doctor, completion."""

import argparse
import math
import os
import signal
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

import oc_dyn as od

from . import plan_options
from .codegen.build import find_compiler
from .command_line import (
    Parser,
    as_options,
    fitted,
    floating_number,
    named_numbers,
    numbers_of,
    whole_number,
    width_of,
)
from .errors import ALL, CheckWarning, FileError, ModelError, ModelWarning, ShapeError, SolveError
from .files import read_text
from .interrupts import recorded, watched
from .model.robot import assemble
from .planning.quantities import BOUNDED, BY_NAME, QUANTITIES
from .runs.script import results_folder
from .text import json_text, terminal, terminal_lines
from .validation import switch

_VECTORS = ("--from", "--via", "--to", "--to-pose", "--start-velocity")
_MANY = {"nargs": "+", "action": "extend", "default": []}  # an option with several values, which may be repeated
_TABLE_START, _TABLE_END = "<!-- table -->", "<!-- /table -->"


def main(argv=None):
    """Run one command, as typed in `argv` (default: of this process); returns the exit status.

    0: done; 1: a result did not pass its check; 2: a wrong command or input, explained in one line on stderr; 130:
    stopped by Ctrl-C.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    with recorded(signal.SIGINT, default=signal.default_int_handler) as interrupts:
        try:
            with watched():
                return _run(words)
        except BrokenPipeError:  # the reader of our output has ended, which is no error
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except KeyboardInterrupt as stop:
            interrupts.append(stop)
        except (*ALL, OSError) as error:
            message = f"error: {as_options(_one_line(error))}"
        except Exception as error:
            if switch(os.environ.get("OC_DYN_TRACEBACK") or "off") is not False:
                raise
            kind = type(error).__name__
            message = f"internal error: {kind}: {_one_line(error)} (set OC_DYN_TRACEBACK=1 to see where)"
        if interrupts:  # a solver may have turned the interrupt into an error of its own
            _complain("oc-dyn: stopped")
            return 130
        _complain(f"oc-dyn: {message}")
        return 2


def _open_streams():
    """Open standard streams that the caller has closed, as `oc-dyn list >&-` does, on the null device. Otherwise a file
    opened later could get the number of such a stream, and with it what a solver prints."""
    while (number := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(number)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, open until the end


def _run(words):
    try:
        options = _parser().parse_args(_with_vectors_joined(words))
    except SystemExit as stop:  # help, or a wrong command
        return stop.code
    options.command = ["oc-dyn", *words]
    with warnings.catch_warnings():
        _show_warnings(options.quiet)
        status = options.run(options)
    sys.stdout.flush()
    return status


# -- the commands ---------------------------------------------------------------------------------------------


def _list(options):
    if options.update is None:
        from . import listing

        width = width_of(sys.stdout)
        if options.json:
            _print(options, json_text(listing.records()))
        else:
            narrow = width is not None and not options.markdown
            _print(options, listing.listing(width) if narrow else od.table(markdown=options.markdown))
        return 0
    from .files import write_text

    text = _text_of(options.update)
    before, start, rest = text.partition(_TABLE_START)
    _, end, after = rest.partition(_TABLE_END)
    if not end:
        raise ModelError(options.update, [f"it has no lines {_TABLE_START} and {_TABLE_END}"])
    write_text(options.update, f"{before}{start}\n{od.table(markdown=True)}\n{end}{after}")
    _print(options, f"table of {options.update} is up to date")
    return 0


def _check(options):
    from .robot_check import check_robot

    more = {"floating_base": True} if options.floating else {}
    found = check_robot(options.robot, trusted=options.trusted, **more)
    rows = [vars(x) for x in found.findings]
    _print(options, json_text(rows) if options.json else str(found))
    return 1 if found.of("error") else 0


def _doctor(options):
    from . import doctor

    found = doctor.findings()
    _print(options, json_text(doctor.as_json(found)) if options.json else doctor.report(found))
    return 1 if any(x.ok is False for x in found) else 0


def _completion(options):
    from . import completion, study

    robots, quantities = tuple(od.robots.names()), tuple(od.quantities())
    words = {"robot": robots, "quantity": quantities, "study name": ("list", "all", *study.STUDIES)}
    _say(completion.script(options.shell, "oc-dyn", completion.commands_of(_parser(), words)), sys.stdout)
    return 0


def _describe(options):
    robot = None if options.robot is None else _robot(options.robot, [], options.floating)
    _print(options, od.describe(options.quantity, robot, order=options.order))
    return 0


def _plan(options):
    out = _writable(options.out)
    bare = _robot(options.robot, options.lock)
    robot = plan_options.equipped(bare, options.tool, options.payload)
    among = plan_options.scene_of(robot, options.scene, options.clearance)
    if options.path is not None or options.via:
        return _plan_along_path(options, out, robot, bare, among)
    _require_ends(options)
    start = _positions(robot, "from", getattr(options, "from"))
    goal, told = _goal(options, robot, bare, start, among)
    note = plan_options.turned_far(robot, goal) if robot.nq == robot.nv else None
    if note and not options.quiet:
        _complain(f"oc-dyn: note: {note}")
    speed = None if options.start_velocity is None else _velocity(robot, options.start_velocity)
    limits = _limits(options, robot)
    plan = od.plan_point_to_point(
        robot,
        start,
        goal,
        continuity=options.continuity,
        objective=options.objective,
        duration=options.duration,
        limits=limits,
        scale=_numbers_by_name("--scale", options.scale),
        ignore=options.ignore,
        nodes=options.nodes,
        v_start=speed,
        solver=options.solver,
        progress=False if options.quiet else None,
        time_limit=options.time_limit,
        **among,
    )
    told |= {} if speed is None else {"start_velocity": speed}
    return _checked_and_written(options, out, plan, {"from": start, "to": list(goal), **told}, among)


def _goal(options, robot, bare, start, among):
    """(Configuration of --to or --to-pose, what the manifest tells of the pose)."""
    if options.to_pose is None:
        return _positions(robot, "to", options.to), {}
    goal, told = plan_options.goal_at(robot, options.to_pose, options.frame, start, bare, among)
    return goal, {"to_pose": told}


def _velocity(robot, text):
    try:
        values = numbers_of(text)
    except ValueError as error:
        raise ShapeError(f"--start-velocity: expected numbers with blanks or commas between: {error}") from None
    return _one_each("--start-velocity", values, robot.velocity_names)


def _one_each(source, values, names):
    """The values, if there is one for each of the names."""
    if len(values) != len(names):
        raise ShapeError(f"{source}: got {len(values)} numbers, expected {len(names)}: {', '.join(names)}")
    return values


def _require_ends(options):
    if options.to is not None and options.to_pose is not None:
        raise ShapeError("plan: --to and --to-pose both say where the motion ends; give one of them")
    if options.frame is not None and options.to_pose is None:
        raise ShapeError("plan: --frame is what --to-pose is of; give that too, or leave it out")
    for end in ("from", "to"):
        if getattr(options, end) is None and not (end == "to" and options.to_pose is not None):
            raise ShapeError(f"plan: --{end} is missing; give --from and --to (or --to-pose), or --path FILE")


def _plan_along_path(options, out, robot, bare, among):
    if options.objective != "time" or options.duration is not None:
        raise ShapeError("plan: a motion along a path takes the least time; omit --objective and --duration")
    if options.start_velocity is not None:
        raise ShapeError("plan: a motion along a path starts at rest; omit --start-velocity")
    if options.path is None:
        _require_ends(options)
        way = [_positions(robot, "from", getattr(options, "from"))]
        way += [_positions(robot, "via", text) for text in options.via]
        goal, told = _goal(options, robot, bare, way[-1], among)
        way.append(list(goal))
    else:
        if options.frame is not None:
            raise ShapeError("plan: --frame is what --to-pose is of; --path gives all way points; omit it")
        ends = (getattr(options, "from"), options.to, options.to_pose)
        if options.via or any(x is not None for x in ends):
            raise ShapeError("plan: --path gives all way points; omit --from, --via, --to and --to-pose")
        way, told = _way_points(robot, options.path), {}
    plan = od.plan_along_path(
        robot,
        way,
        continuity=options.continuity,
        limits=_limits(options, robot),
        scale=_numbers_by_name("--scale", options.scale),
        ignore=options.ignore,
        nodes=options.nodes,
        solver=options.solver,
        time_limit=options.time_limit,
        **among,
    )
    return _checked_and_written(options, out, plan, {"way": [list(q) for q in way], **told}, among)


def _checked_and_written(options, out, plan, facts, among):
    """Check a motion, print the report and write the files; returns the exit status."""
    report = plan.check(**among)
    if not options.json:
        _print(options, f"{_headline(plan)}\n\n{report}\n")
    facts = {**facts, "continuity": options.continuity, "plan": _facts(plan, report)}
    scene = among.get("scene")
    names = _write(options, out, "plan", plan, facts, options.gif, options.view, scene, options.report)
    if options.json:
        from .listing import plan_record

        _print(options, json_text(plan_record(plan, report, str(out), names)))
    else:
        _print(options, _written(out, names))
    if not report.ok():
        _complain(f"oc-dyn: the motion exceeds a limit: it reaches {100 * report.worst:.2f} %; try more --nodes")
        return 1
    return 0


def _way_points(robot, path):
    """Rows of a CSV file, one per way point, with or without a heading."""
    rows = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            values = _numbers_of_file(line)
        except ValueError as error:
            if not rows and number == 1:
                continue  # the heading
            raise ShapeError(f"{path}:{number}: expected numbers with blanks or commas between: {error}") from None
        rows.append(_one_each(f"{path}:{number}", values, robot.coordinate_names))
    if len(rows) < 2:
        raise ShapeError(f"{path}: got {len(rows)} way points, expected at least two lines of numbers")
    return rows


def _demo(options):
    from . import demo

    out = _writable(options.out)
    plan = demo.plan(options.nodes, progress=False if options.quiet else None)
    report = plan.check(dt=demo.DT)
    second = demo.second_opinion(plan)
    _print(options, f"{demo.TASK}\n{_headline(plan)}\n\n{report}\n\n{second}\n")
    facts = {"from": demo.START, "to": demo.GOAL, "plan": _facts(plan, report), "second_method": vars(second)}
    _print(options, _written(out, _write(options, out, "demo", plan, facts, animated=True, shown=True)))
    if not (report.ok() and second.ok()):
        _complain("oc-dyn: the demo did not pass its own check, see above")
        return 1
    return 0


def _study(options):
    from . import study

    if options.name == "list":
        _print(options, "\n".join(study.STUDIES))
        return 0
    if options.name == "all":
        return _all_studies(options)
    study.load(options.name)
    out = _writable(options.out or study.folder(options.name, options.quick))
    report = ""
    if not (options.report and study.has_results(out)):
        shown, more = False if options.quiet else None, (options.against, options.only)
        report = study.run(options.name, out, options.quick, options.executor, shown, *more)
        _print(options, report)
    written = study.write_page(options.name, out, report) if options.report else out
    _print(options, f"written to {written}")
    return 0


def _all_studies(options):
    from .study.all_studies import run_all

    if options.against or options.report:
        raise od.ShapeError("study all: it takes no --against and no --report; give them with the name of a study")

    def say(text):
        _print(options, text)
        sys.stdout.flush()

    out = None if options.out is None else _writable(options.out)
    told, failed = run_all(out, options.quick, options.executor, options.only, say)
    _print(options, told)
    return 1 if failed else 0


def _codegen(options):
    out = _writable(options.out)
    robot = _robot(options.robot, options.lock, options.floating)
    if options.compile_test:
        find_compiler()  # before any work is done
    functions, points = [], {}
    for wanted in options.quantity:
        quantity, order, method = (wanted.get(k) for k in ("quantity", "order", "method"))
        twice = sum(w["quantity"] == quantity and w.get("order") == order for w in options.quantity) > 1
        name = f"{quantity}_{order or 0}_{method or 'default'}" if twice else None
        f = od.function(robot, quantity, order=order or 0, method=method, name=name, **wanted.get("options", {}))
        functions.append(f)
        parts = wanted.get("options", {}).get("parameters")
        points[f.name()] = [_random_point(robot, f, parts, seed) for seed in (1, 2)]
        _print(options, f"{f.name()}: {f.n_instructions()} instructions")
    generated = od.codegen(
        functions,
        out,
        name=options.name,
        precision="single" if options.single else "double",
        separate=options.separate,
        points=points,
    )
    _print(options, f"written to {out}: {', '.join(path.name for path in generated.files)}")
    if options.compile_test:
        try:
            _print(options, generated.test().strip())
        except SolveError as error:
            if error.status is None:
                raise
            _complain(f"oc-dyn: {_one_line(error)}")
            return 1
    return 0


def _random_point(robot, function, parts, seed):
    """{port: numbers} at which the self-test compares: unit quaternions, parameters of the robot."""
    rng = np.random.default_rng(seed)
    point = {name: rng.uniform(-1, 1, function.size_in(i)) for i, name in enumerate(function.name_in())}
    if "q" in point:
        point["q"] = robot.random_configuration(seed)
    if "params" in point:
        point["params"] = robot.parameter_values(parts)
    return point


def _headline(plan):
    info = plan.info
    solved = (
        f", {info['iterations']} iterations of {info['solver']} in {info['seconds']:.3g} s" if "solver" in info else ""
    )
    return f"T = {plan.duration:.5g} s{solved}; {len(plan.t) - 1} pieces, {plan.continuity} times differentiable"


def _facts(plan, report):
    recorded_info = ("robot", "objective", "nodes", "iterations", "rounds", "solver", "status", "seconds", "clearance")
    return {
        "duration": plan.duration,
        **{key: plan.info[key] for key in recorded_info if key in plan.info},
        "share_of_limits": {row.quantity: row.share for row in report.rows if math.isfinite(row.limit)},
    }


def _write(options, out, stem, plan, facts, animated=False, shown=False, scene=None, paged=False):
    """Write the files of a plan; returns their names."""
    from .files import together
    from .runs.manifest import manifest, write_json

    names = [f"{stem}.csv", f"{stem}.npz", f"{stem}.png"]
    with together(out) as part:
        plan.save(part / f"{stem}.csv", dt=options.dt)
        plan.save(part / f"{stem}.npz")
        plan.plot(part / f"{stem}.png")
        if animated:
            plan.animate(part / f"{stem}.gif")
            names.append(f"{stem}.gif")
        if shown:
            od.view(plan.robot, plan, scene=scene, path=part / f"{stem}.html")
            names.append(f"{stem}.html")
        if paged:
            plan.report(part / "report.html", scene=scene)
            names.append("report.html")
        if stem != "demo":
            plan.save(part / "joint_trajectory.json", options.dt, layout="joint_trajectory")
            names.append("joint_trajectory.json")
        write_json(part / "manifest.json", manifest(options.command, **facts))
    return [*names, "manifest.json"]


def _written(out, names):
    return f"written to {out}: {', '.join(names)}"


# -- reading what was typed -----------------------------------------------------------------------------------


class _OfQuantity(argparse.Action):
    """Collects [{"quantity": ..., "order": ..., "method": ..., "options": {...}}]."""

    def __call__(self, parser, space, value, option):
        wanted, what = list(getattr(space, self.dest) or []), option.lstrip("-")
        if what == "quantity":
            wanted.append({"quantity": value})
        elif not wanted:
            parser.error(f"{option} must follow the --quantity it belongs to")
        elif what == "option":
            name, equals, text = value.partition("=")
            if not (name and equals and text):
                parser.error(f"--option: got {value!r}, expected NAME=VALUE")
            if name in ("robot", "quantity", "order", "method", "name"):
                parser.error(f"--option: {name} is no option of a quantity, but an argument of its own")
            words = tuple(text.split(",")) if "," in text or name == "prescribed" else text
            wanted[-1].setdefault("options", {})[name] = {"true": True, "false": False}.get(text, words)
        elif what in wanted[-1]:
            parser.error(f"{option} is given twice for {wanted[-1]['quantity']}")
        else:
            wanted[-1][what] = value
        setattr(space, self.dest, wanted)


def _parser():
    parser = Parser(
        prog="oc-dyn",
        description="Rigid-body dynamics with derivatives of any order, and motion planning.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"oc-dyn {od.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    more = (_add_list, _add_describe, _add_check, _add_doctor, _add_completion)
    for add in (_add_demo, _add_plan, _add_study, _add_codegen, *more):
        add(commands)
    return parser


def _command(commands, name, run, summary, details=""):
    sub = commands.add_parser(name, help=summary, description=f"{summary} {details}".strip(), allow_abbrev=False)
    sub.set_defaults(run=run)
    sub.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return sub


def _add_demo(commands):
    sub = _command(
        commands,
        "demo",
        _demo,
        "Plan a fast, smooth motion of the Panda, check it, and draw it.",
        "The motion is the fastest one between two poses, three times continuously differentiable, within the vendor's "
        "limits of position, velocity, acceleration, jerk, torque and torque rate.",
    )
    out = results_folder("demo", quick=True)  # results/demo is committed
    sub.add_argument("--out", default=out, metavar="DIR", help="folder for the results (%(default)s)")
    sub.add_argument("--nodes", type=_count, default=50, metavar="N", help="pieces of the motion (%(default)s)")
    sub.set_defaults(dt=1e-3)


def _add_plan(commands):
    sub = _command(
        commands,
        "plan",
        _plan,
        "Plan a motion from rest to rest between two configurations, or along a path, within the robot's limits.",
        "Writes plan.csv (sampled), plan.npz (exact; along a path sampled), joint_trajectory.json (the fields of ROS's "
        "trajectory_msgs/JointTrajectory, sampled), plan.png and manifest.json.",
    )
    sub.add_argument("robot", metavar="URDF|NAME", help=f"URDF file, or one of: {', '.join(od.robots.names())}")
    for option, what in (("--from", "first"), ("--to", "last")):
        help = f"{what} position of each joint [rad or m]: numbers with blanks or commas between, or a file of them"
        sub.add_argument(option, metavar="Q", help=help)
    help = "pose of a frame [m, rad] where the motion ends, instead of --to: position, and angles or unit quaternion"
    sub.add_argument("--to-pose", metavar="POSE", help=f"{help}: {plan_options.POSE}")
    help = "which frame --to-pose is of: by default the tool, or the outermost link"
    sub.add_argument("--frame", metavar="NAME", help=help)
    help = "velocity of each joint at the start [rad/s or m/s], by default at rest"
    sub.add_argument("--start-velocity", metavar="V", help=help)
    help = "a position to pass on the way from the first to the last, on a spline; may be repeated"
    sub.add_argument("--via", action="append", default=[], metavar="Q", help=help)
    help = 'a frame "tool" fixed to another one, at a pose in it [m, rad]: FRAME=POSE as for --to-pose'
    sub.add_argument("--tool", metavar="FRAME=POSE", help=help)
    help = "a body fixed to a frame: mass [kg], centre [m], inertia about that [kg m^2]"
    help = f"{help}: {plan_options.PAYLOAD}; may be repeated"
    sub.add_argument("--payload", **_MANY, metavar="FRAME=MASS", help=help)
    help = "CSV file of all way points, one per line, instead of --from, --via and --to"
    sub.add_argument("--path", metavar="FILE", help=help)
    help = "YAML file of shapes to keep clear of, besides those of the robot, which those of the same name replace"
    sub.add_argument("--scene", metavar="FILE", help=help)
    sub.add_argument("--clearance", type=float, metavar="M", help="distance to keep from them [m] (0)")
    sub.add_argument("--out", required=True, metavar="DIR", help="folder for the results; it is created")
    sub.add_argument("--continuity", type=_count, default=3, metavar="C", help="times differentiable (%(default)s)")
    sub.add_argument("--objective", choices=("time", "effort"), default="time", help="what is minimized (%(default)s)")
    sub.add_argument(
        "--duration", type=_positive, metavar="S", help="time from start to end [s], for --objective effort"
    )
    sub.add_argument("--nodes", type=_count, default=50, metavar="N", help="pieces of the motion (%(default)s)")
    sub.add_argument("--scale", **_MANY, metavar="LIMIT=F", help=f"factors on limits: {', '.join(BOUNDED)}")
    sub.add_argument("--ignore", **_MANY, metavar="LIMIT", help=f"limits to ignore: {', '.join(QUANTITIES)}")
    sub.add_argument("--lock", **_MANY, metavar="JOINT=X", help="hold joints at these positions [rad or m]")
    sub.add_argument(
        "--limits", metavar="FILE", help='limits that replace the robot\'s: {"joint": {"v": 1.5, ...}, ...}'
    )
    for name in BOUNDED:
        what = f"limit of the {BY_NAME[name].title}: one number, one per joint with blanks or commas between, or"
        what = f"{what} LOWER:UPPER, as --{name}=-5:20"
        sub.add_argument(f"--{name}", metavar="LIMIT", help=what)
    sub.add_argument("--solver", default="ipopt", metavar="NAME", help="NLP solver of CasADi (%(default)s)")
    sub.add_argument("--time-limit", type=_positive, metavar="S", help="give up after this time [s]")
    sub.add_argument("--gif", action="store_true", help="draw the moving robot, plan.gif")
    sub.add_argument("--view", action="store_true", help="a page for the browser that plays the motion, plan.html")
    sub.add_argument("--report", action="store_true", help="a page of limits, figures and the motion, report.html")
    sub.add_argument("--json", action="store_true", help="print one record instead of tables, for machines")
    sub.add_argument("--dt", type=_positive, default=1e-3, metavar="S", help="time step of samples [s] (%(default)s)")


def _add_study(commands):
    summary = "Measure something: tables, figures, a manifest; resumes where it stopped."
    sub = _command(commands, "study", _study, summary)
    help = 'the study; "list" prints the names; "all" runs one after the other, and goes on where it was stopped'
    sub.add_argument("name", metavar="NAME", help=help)
    sub.add_argument("--quick", action="store_true", help="a small version that takes seconds")
    help = "where points are computed: serial, processes:N, dask:N, dask:ADDRESS (%(default)s)"
    sub.add_argument("--executor", default="serial", metavar="WHERE", help=help)
    help = "an earlier checkout of the repository to measure beside this one (studies of waiting times; embedded)"
    sub.add_argument("--against", metavar="FOLDER", help=help)
    help = "measure only what has one of these texts in its name, semicolons between them (planning, tasks, all, ...)"
    sub.add_argument("--only", metavar="TEXTS", help=help)
    sub.add_argument("--out", metavar="DIR", help="folder for the results (results/NAME; quick: results/quick/NAME)")
    help = "write report.html, one page of all tables and figures; measures only if the folder has no results"
    sub.add_argument("--report", action="store_true", help=help)


def _add_codegen(commands):
    sub = _command(
        commands,
        "codegen",
        _codegen,
        "Write quantities of a robot as C99, with header, example, self-test and CMakeLists.txt.",
        "--order, --method and --option belong to the --quantity before them.",
    )
    sub.add_argument("robot", metavar="URDF|NAME", help=f"URDF file, or one of: {', '.join(od.robots.names())}")
    many_of = {"dest": "quantity", "action": _OfQuantity}
    sub.add_argument("--quantity", **many_of, required=True, metavar="NAME", help="what to compute; may be repeated")
    sub.add_argument("--order", **many_of, type=_whole, metavar="R", help="time derivatives 0..R of it (0)")
    sub.add_argument("--method", **many_of, metavar="NAME", help="method to compute it (the default one)")
    help = "option of it, as frame=NAME, friction=true or prescribed=JOINT,JOINT"
    sub.add_argument("--option", **many_of, metavar="NAME=VALUE", help=help)
    sub.add_argument("--out", required=True, metavar="DIR", help="folder for the files; it is created")
    sub.add_argument("--name", metavar="NAME", help="of the files, and the start of all C names (that of the folder)")
    sub.add_argument("--single", action="store_true", help="numbers are float instead of double")
    sub.add_argument("--separate", action="store_true", help="one .c file for each quantity")
    sub.add_argument("--floating", action="store_true", help="let the root link float")
    sub.add_argument("--lock", **_MANY, metavar="JOINT=X", help="hold joints at these positions [rad or m]")
    sub.add_argument("--compile-test", action="store_true", help="compile the self-test and run it")


def _add_list(commands):
    sub = _command(commands, "list", _list, "Print all quantities and the methods that compute them.")
    sub.add_argument("--json", action="store_true", help="as a list of records, for machines")
    sub.add_argument("--markdown", action="store_true", help="as a Markdown table")
    marks = f"{_TABLE_START} and {_TABLE_END}"
    sub.add_argument("--update", metavar="FILE", help=f"write that table into a file, between its lines {marks}")


def _add_describe(commands):
    summary = "Print what a quantity takes and gives: equation, shapes, units, options, methods."
    sub = _command(commands, "describe", _describe, summary)
    sub.add_argument("quantity", metavar="QUANTITY", help="name of the quantity; oc-dyn list prints them all")
    sub.add_argument("--order", type=_whole, default=0, metavar="N", help="order of derivatives (%(default)s)")
    sub.add_argument("--robot", metavar="URDF|NAME", help="robot for whose ports the shapes are numbers")
    sub.add_argument("--floating", action="store_true", help="give the robot a floating base")


def _add_check(commands):
    summary = "Tell what is wrong, doubtful or missing in the description of a robot."
    sub = _command(commands, "check", _check, summary, "The exit status is 1 where it cannot be loaded.")
    sub.add_argument("robot", metavar="FILE|NAME", help="URDF, SDF, MJCF or xacro file, or a name, as od.load takes it")
    sub.add_argument("--floating", action="store_true", help="let the root link float")
    sub.add_argument("--trusted", action="store_true", help="expand a xacro file, which runs what is written in it")
    sub.add_argument("--json", action="store_true", help="as a list of records, for machines")


def _add_doctor(commands):
    summary = "Print what is installed, and what each missing part costs."
    sub = _command(commands, "doctor", _doctor, summary, "The exit status is 1 where something needed is missing.")
    sub.add_argument("--json", action="store_true", help="as a list of records, for machines")


def _add_completion(commands):
    from .completion import SHELLS

    summary = "Print a script that completes this command on Tab."
    sub = _command(commands, "completion", _completion, summary, 'In ~/.bashrc: eval "$(oc-dyn completion bash)".')
    sub.add_argument("shell", choices=SHELLS, help="which shell it is for")


def _with_vectors_joined(words):
    """The words, with the numbers after --from, --to and limits joined to that word: none is taken for an option."""
    words, out = list(words), []
    vectors = (*_VECTORS, *(f"--{name}" for name in BOUNDED)) if words[:1] == ["plan"] else ()
    while words:
        word = words.pop(0)
        if word in vectors:
            numbers = []
            while words and _is_numeric(words[0]):
                numbers.append(words.pop(0))
            if numbers:
                word = f"{word}={','.join(numbers)}"
        out.append(word)
    return out


def _is_numeric(word):
    try:
        numbers_of(word)
    except ValueError:
        return False
    return bool(word.strip())


def _numbers_of_file(text):
    """Numbers of a text from a file; ValueError for numbers that are not finite or have underscores."""
    values = numbers_of(text)
    if "_" in text or not np.all(np.isfinite(values)):
        raise ValueError(f"{text.strip()[:60]!r} has something that is not a finite number")
    return values


def _positions(robot, end, text):
    try:
        values = numbers_of(text)
        source = f"--{end}"
    except ValueError:
        source = f"--{end} {text}"
        try:
            values = _numbers_of_file(read_text(text))
        except FileNotFoundError:
            raise ShapeError(f"--{end}: {text!r} is neither numbers nor a file") from None
        except FileError:
            raise
        except ValueError as error:
            raise ShapeError(f"{source}: expected numbers with blanks or commas between: {error}") from None
    return _one_each(source, values, robot.coordinate_names)


def _robot(name, lock, floating=False):
    held = _numbers_by_name("--lock", lock)
    if name.partition(":")[0] not in {x.partition(":")[0] for x in od.robots.names()} or Path(name).is_file():
        options = {key: x for key, x in (("lock", held), ("floating_base", floating)) if x}
        return od.load(name, **options)
    robot = od.robots.by_name(name)
    if floating:
        links, joints, _, fixed = robot.description
        shapes, touching = robot.collisions, robot.may_touch
        robot = assemble(
            robot.name, links, joints, gravity=robot.gravity, floating_base=True, lock=fixed, collisions=shapes
        )
        robot = replace(robot, may_touch=touching)
    return robot.locked(held) if held else robot


def _limits(options, robot):
    """Limits of the file and the options, None for the robot's own."""
    given = {name: getattr(options, name) for name in BOUNDED if getattr(options, name) is not None}
    if options.limits is None and not given:
        return None
    limits = od.Limits.of(robot) if options.limits is None else od.Limits.read(options.limits, robot)
    return replace(limits, **{name: _sides(f"--{name}", text, len(limits.joints)) for name, text in given.items()})


def _sides(option, text, n):
    """Numbers of a limit, or (lower, upper), each (n,)."""
    try:
        sides = [numbers_of(part) for part in text.split(":")]
    except ValueError:
        sides = []
    if not 0 < len(sides) < 3 or not all(sides):
        raise ShapeError(f"{option}: got {text!r}, expected a number, or LOWER:UPPER")
    return sides[0] if len(sides) == 1 else tuple(x * n if len(x) == 1 else x for x in sides)


def _numbers_by_name(option, words):
    """{name: value} of words NAME=VALUE; a value of several numbers is a list."""
    return {k: x[0] if len(x) == 1 else x for k, x in named_numbers(option, words).items()}


def _text_of(path, encoding="utf-8"):
    try:
        return Path(path).read_text(encoding=encoding)
    except UnicodeDecodeError as error:
        raise ModelError(path, [f"not UTF-8 text: {error.reason} at byte {error.start}"]) from None


def _count(text):
    value = whole_number(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of at least 1")
    return value


def _whole(text):
    return whole_number(text)


def _positive(text):
    value = floating_number(text)
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


_count.__name__ = _whole.__name__ = "whole number"
_positive.__name__ = "number"  # argparse: invalid whole number value: 'x'


# -- the terminal and the disk --------------------------------------------------------------------------------


def _writable(folder):
    """The folder as a Path, checked before any work is done; it is created with the first file."""
    folder = Path(folder)
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise NotADirectoryError(f"--out {folder}: {there} is a file, not a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(f"--out {folder}: no right to write in {there}")
    return folder


def _print(options, text):
    if not options.quiet:
        width = None if getattr(options, "json", False) else width_of(sys.stdout)
        text = terminal_lines(text)
        _say(text if width is None else fitted(text, width), sys.stdout)


def _complain(text):
    _say(terminal(text), sys.stderr)


def _say(text, stream):
    """Print a text, with escapes for characters that the stream cannot encode."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream)


def _show_warnings(quiet):
    """Show our own warnings as one line each, no others; none when quiet."""
    warnings.simplefilter("ignore")
    if not quiet:
        warnings.simplefilter("always", ModelWarning)
        warnings.filterwarnings("always", ".*the robot has no limits of", CheckWarning)  # the rest is in the report
        warnings.showwarning = lambda message, *_, **__: _complain(f"oc-dyn: note: {as_options(_one_line(message))}")


def _one_line(error):
    if isinstance(error, ModelError):
        text = f"{error.source}: {'; '.join(error.problems)}"
    elif isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    else:
        text = str(error)
    return " ".join(text.split()) or type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
