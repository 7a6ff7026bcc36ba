"""Reading files: what was written comes back, and everything else is one FileError that names the file."""

import io
import json
import os
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import cli, files
from oc_dyn.planning.trajectory import Trajectory

ENDINGS = ("csv", "json", "npz")


def motion():
    """Two joints, five pieces, with torques, limits and facts."""
    rng = np.random.default_rng(1)
    limits = od.Limits(("elbow", "wrist"), q=([-2, -np.inf], [2, 3]), v=[1.5, 2.5], dtau=40.0)
    return Trajectory(
        np.cumsum(rng.uniform(0.1, 0.3, 6)), rng.normal(size=(5, 5, 2)), joints=limits.joints, units=("rad", "m"),
        limits=limits, info={"robot": "arm", "status": "solved", "rounds": [1, 2]},
        torques=(rng.normal(size=(6, 2)), rng.normal(size=(6, 2))),
    )  # fmt: skip


def facts(x):
    """All that a trajectory is, in a form that can be compared."""
    tables = [x.t, *x.derivatives, *(x._torques or ())]
    limits = None if x.limits is None else x.limits.as_dict()
    return [y.tobytes() for y in tables], x.joints, x.units, limits, x.info, x.continuity, type(x)


@pytest.fixture(params=ENDINGS)
def saved(request, tmp_path):
    path = tmp_path / f"plan.{request.param}"
    motion().save(path)
    return path


def edited(path, change, *, digest=True):
    """The file with {table: numbers} and its metadata, both changed in place; without its digest unless told."""
    change_of = {".npz": edited_npz, ".json": edited_json}[path.suffix]
    change_of(path, change, digest)


def edited_npz(path, change, digest):
    with np.load(path) as data:
        data = dict(data)
    meta = json.loads(str(data.pop("meta")))
    if digest:
        meta.pop("sha256", None)
    change(meta, data)
    buffer = io.BytesIO()
    np.savez(buffer, meta=np.array(json.dumps(meta)), **data)
    path.write_bytes(buffer.getvalue())


def edited_json(path, change, digest):
    data = json.loads(path.read_text())
    meta = data["meta"]
    if digest:
        meta.pop("sha256", None)
    change(meta, data)
    path.write_text(json.dumps(data))


def refused(path, words):
    with pytest.raises(od.FileError, match=words) as caught:
        Trajectory.load(path)
    assert path.name in str(caught.value)


# -- what comes back ------------------------------------------------------------------------------------------------


def test_what_was_written_comes_back(saved):
    assert facts(Trajectory.load(saved)) == facts(motion())


@pytest.mark.parametrize("ending", ENDINGS)
def test_one_sample_and_both_sides_of_jumps(tmp_path, ending):
    for k, samples in enumerate((motion().sample([0.5]), motion().both_sides(0.05))):
        samples.save(tmp_path / f"{k}.{ending}")
        assert facts(Trajectory.load(tmp_path / f"{k}.{ending}")) == facts(samples)


def test_a_file_without_digest_is_read(saved):
    """Those of earlier versions, and those that were edited on purpose."""
    if saved.suffix == ".csv":
        first, _, rest = saved.read_text().partition("\n")
        meta = json.loads(first[2:])
        meta.pop("sha256", None)
        saved.write_text(f"# {json.dumps(meta)}\n{rest}")
    else:
        edited(saved, lambda meta, data: None)
    assert facts(Trajectory.load(saved)) == facts(motion())


def test_another_number_is_seen(saved):
    if saved.suffix == ".csv":
        lines = saved.read_text().splitlines()
        digit = next(k for k, c in enumerate(lines[3]) if c.isdigit() and k > 30)
        lines[3] = lines[3][:digit] + str((int(lines[3][digit]) + 1) % 10) + lines[3][digit + 1 :]
        saved.write_text("\n".join(lines) + "\n")
    else:

        def nudge(meta, data):
            data["v"][2][1] += 1e-9

        edited(saved, nudge, digest=False)
    refused(saved, 'not those that were written; .* delete the entry "sha256"')


@pytest.mark.parametrize("key, value", [("units", ["rad", "rad"]), ("joints", ["wrist", "elbow"]), ("limits", None)])
def test_other_metadata_is_seen(tmp_path, key, value):
    path = tmp_path / "plan.json"
    motion().save(path)
    edited(path, lambda meta, data: meta.update({key: value}), digest=False)
    refused(path, "its metadata are not those that were written")


# -- files that were damaged ------------------------------------------------------------------------------------------


def mutated(data, rng):
    """The bytes with a few of them changed, taken out, put in, doubled, or with the end cut off."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        k, n = int(rng.integers(len(data))), int(rng.integers(1, 20))
        kind = rng.integers(6)
        if kind == 0:
            data[k] = int(rng.integers(256))
        elif kind == 1:
            data[k] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            del data[k : k + n]
        elif kind == 3:
            data[k:k] = rng.integers(32, 127, n, np.uint8).tobytes()
        elif kind == 4:
            data[k:k] = data[k : k + n]
        else:
            data = data[: max(k, 1)]
    return bytes(data)


def fuzz(path, count, seed):
    good, wanted, read = path.read_bytes(), facts(motion()), 0
    for number in range(count):
        path.write_bytes(mutated(good, np.random.default_rng([seed, number])))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = Trajectory.load(path)
        except od.FileError as error:
            assert path.name in str(error), number
            continue
        if b"sha256" in path.read_bytes() or path.suffix == ".npz":  # else it is as one that was edited on purpose
            assert facts(found) == wanted, number
        read += 1
    return read


def test_a_damaged_file_is_the_same_motion_or_one_error(saved):
    read = fuzz(saved, 150, 0)
    assert read < 30


@pytest.mark.slow
def test_many_damaged_files(saved):
    assert fuzz(saved, 10_000, 1) < 2000


# -- metadata of the wrong kinds ---------------------------------------------------------------------------------------

WRONG = [
    ("joints", 3), ("joints", "ab"), ("joints", ["a", 2]), ("joints", []), ("joints", ["a", "a"]), ("joints", ["a"]),
    ("units", None), ("units", ["rad"]), ("units", [1, 2]), ("units", "rd"), ("columns", {"q": 1}), ("columns", []),
    ("columns", ["q", "v"]), ("columns", ["q", "q", "v", "dv", "d2v", "d3v"]), ("columns", [["q"]]),
    ("continuity", 3.0), ("continuity", "3"), ("continuity", -1), ("continuity", True), ("continuity", 10**30),
    ("continuity", None), ("continuity", 1), ("grid", "piece"), ("grid", None), ("grid", ["pieces"]),
    ("time_unit", "ms"), ("limits", 5), ("limits", []), ("limits", {"knee": {}}), ("limits", {"elbow": {"v": "fast"}}),
    ("limits", {"elbow": {"v": -1}}), ("limits", {"elbow": {"q": [1]}}), ("limits", {"elbow": {"w": 1}}),
    ("limits", {"elbow": {"v": 10**400}}), ("info", None), ("info", [1]), ("info", {"robot": 3}),
    ("format", "oc_dyn trajectory 9"), ("format", None),
]  # fmt: skip


@pytest.mark.parametrize("ending", ["json", "npz"])
def test_metadata_of_wrong_kinds(tmp_path, ending):
    path = tmp_path / f"plan.{ending}"
    for key, value in WRONG:
        motion().save(path)
        edited(path, lambda meta, data, key=key, value=value: meta.update({key: value}))
        refused(path, "its metadata|table")


@pytest.mark.parametrize("key", ["format", "grid", "joints", "units", "columns", "continuity", "limits", "info"])
def test_metadata_that_is_missing(tmp_path, key):
    path = tmp_path / "plan.npz"
    motion().save(path)
    edited(path, lambda meta, data: meta.pop(key))
    refused(path, "its metadata")


def test_times_that_do_not_run_forward(tmp_path):
    for name, change in (
        ("reversed", lambda t: t[::-1]), ("all zero", lambda t: 0 * t), ("twice", lambda t: np.repeat(t[::2], 2)),
    ):  # fmt: skip
        path = tmp_path / f"{name}.npz"
        motion().save(path)
        edited(path, lambda meta, data, change=change: data.update(t=change(data["t"])))
        refused(path, "its times do not increase: .* in row")


@pytest.mark.parametrize(
    "t, shape, words",
    [
        ([1.0, 0.0], (1, 4, 2), "times do not increase: 1 s, then 0 s, at piece 0"),
        ([0.0, 1.0, 1.0], (2, 4, 2), "times do not increase: 1 s, then 1 s, at piece 1"),
        ([0.0, np.nan], (1, 4, 2), "times do not increase"),
        ([0.0, 1.0, 2.0], (1, 4, 2), r"t has shape \(3,\), expected \(2,\)"),
        ([0.0, 1.0], (1, 4, 3), r"pieces has shape \(1, 4, 3\)"),
        ([0.0, 1.0], (1, 4), "pieces has shape"),
        ([0.0], (0, 4, 2), "at least one piece"),
        ([0.0, 1.0], (1, 1, 2), "with q and v"),
    ],
)
def test_a_trajectory_made_by_hand(t, shape, words):
    with pytest.raises(od.ShapeError, match=words):
        Trajectory(t, np.ones(shape), joints=("a", "b"), units=("rad", "m"))


@pytest.mark.parametrize("ending", ["json", "npz"])
@pytest.mark.parametrize(
    "table, change",
    [
        ("t", lambda x: x[:, None]), ("t", lambda x: x[:-1]), ("t", lambda x: x[:0]), ("t", lambda x: x[0]),
        ("t", lambda x: x * np.nan), ("q", lambda x: x.T), ("q", lambda x: x.ravel()), ("q", lambda x: x[:-1]),
        ("q", lambda x: x[None]), ("v", lambda x: np.where(x > 0, x, np.inf)), ("v", lambda x: x.astype(str)),
        ("tau", lambda x: x > 0), ("tau", lambda x: x[:, :1]), ("q", lambda x: x.T.reshape(12, 1)),
    ],
)  # fmt: skip
def test_tables_that_do_not_fit(tmp_path, ending, table, change):
    path = tmp_path / f"plan.{ending}"
    motion().save(path)

    def put(meta, data):
        value = change(np.array(data[table]))
        data[table] = value if ending == "npz" else value.tolist()

    edited(path, put)
    refused(path, "table|its shape|t has the shape")


def test_tables_of_other_things(tmp_path):
    path = tmp_path / "plan.json"
    for value in (None, 3, "1 2 3", {"0": 1}, [[0, 1], [2]], [[True, 1.0]] * 6, [[10**400, 0]] * 6, [[None, 1.0]] * 6):
        motion().save(path)
        edited(path, lambda meta, data, value=value: data.update(q=value))
        refused(path, "table 'q'")
    path.write_text(path.read_text().replace('"v": [[', '"dv": [[', 1))
    refused(path, "'dv' is there twice")


def test_numbers_of_csv(tmp_path):
    path = tmp_path / "plan.csv"
    for text, words in (("1_000", "column t: '1_000' is not a number"), ("inf", "not finite"), ("nan", "not finite")):
        motion().save(path)
        lines = path.read_text().splitlines()
        lines[2] = text + lines[2][lines[2].index(",") :]
        path.write_text("\n".join(lines))
        refused(path, words)


# -- files that were made to do harm ----------------------------------------------------------------------------------


def test_pickled_arrays_are_not_read(tmp_path):
    path, proof = tmp_path / "plan.npz", tmp_path / "proof"

    class Harm:
        def __reduce__(self):
            return os.mkdir, (str(proof),)

    np.savez(path, meta=np.array("{}"), t=np.array([Harm()], dtype=object), allow_pickle=True)
    refused(path, "not an npz file")
    assert not proof.exists()


def peak(act):
    """Largest memory in use [bytes] by Python and numpy while it runs."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_an_archive_that_unpacks_to_gigabytes(tmp_path):
    """Sixty megabytes of zeros in sixty kilobytes; the size in its list alone refuses it."""
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("t.npy", "w") as file:
        for _ in range(60):
            file.write(bytes(10**6))
    assert peak(lambda: refused(path, "would unpack to 60 MB")) < 5e6


def test_an_array_that_claims_to_be_larger_than_it_is(tmp_path):
    path, header = tmp_path / "plan.npz", io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**8,)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("t.npy", header.getvalue())
    assert peak(lambda: refused(path, "'t.npy' says that it has the shape")) < 5e6


def test_json_that_is_nested_deeply(tmp_path):
    robot = od.robots.planar_2r()
    for name, text in (("deep.json", "[" * 100_000), ("meta.json", '{"meta": ' + '{"a":' * 100_000)):
        (tmp_path / name).write_text(text)
        refused(tmp_path / name, "nested too deeply")
        with pytest.raises(od.FileError, match=f"{name}: its JSON is nested too deeply"):
            od.Limits.read(tmp_path / name, robot)
    (tmp_path / "deep.csv").write_text("# {" + '"a":{' * 100_000 + "\n")
    refused(tmp_path / "deep.csv", "nested too deeply")


def test_files_that_are_too_large_are_not_read(tmp_path, monkeypatch):
    for name in ("x.csv", "x.json", "x.npz"):
        with open(tmp_path / name, "wb") as file:
            file.truncate(files.MAX_BYTES + 1)  # of no blocks on the disk
        assert peak(lambda name=name: refused(tmp_path / name, "is larger than 1000 MB")) < 5e6
    (tmp_path / "l.json").write_text(" " * 10_000_001)
    with pytest.raises(od.FileError, match="l.json: is larger than 10 MB"):
        od.Limits.read(tmp_path / "l.json", od.robots.planar_2r())


@pytest.mark.skipif(os.name != "posix", reason="pipes as POSIX has them")
def test_what_is_no_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    refused(tmp_path / "pipe.csv", "is no regular file")
    (tmp_path / "endless.json").symlink_to("/dev/zero")
    refused(tmp_path / "endless.json", "is no regular file")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(IsADirectoryError, match="folder.npz"):
        Trajectory.load(tmp_path / "folder.npz")
    with pytest.raises(od.FileError, match="no file can have this name"):
        Trajectory.load("a\0b.csv")


# -- other files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, words",
    [
        ('{"shoulder": {"v": 1}, "shoulder": {"v": 2}}', "'shoulder' is there twice"),
        ('{"shoulder": {"v": 1, "v": 2}}', "'v' is there twice"),
        ('{"shoulder": {"v": NaN}}', "v of joint 'shoulder'|number"),
        ('{"shoulder": {"v": 1' + "0" * 400 + "}}", "shoulder"),
        ('{"shoulder": {"v": ' + "1" * 5000 + "}}", "digits|number|shoulder"),
        ('{"shoulder": {"v": true}}', "expected a number"),
        ('{"shoulder": 5}', "expected"),
        ("[1]", "expected an object"),
        ('{"shoulder": {"v": 1}', ":1: not JSON"),
        ("\ud800", "not UTF-8|not JSON"),
    ],
)
def test_files_of_limits(tmp_path, text, words):
    path = tmp_path / "limits.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(od.FileError, match=words) as caught:
        od.Limits.read(path, od.robots.planar_2r())
    assert "limits.json" in str(caught.value)


@pytest.mark.parametrize("data", [b"\xff\xfe1 2\n", b"0 0\n1_0 1\n", b"0 0\nnan 1\n", b"0 0\n1 inf\n", b"0 0\n1\0 1\n"])
def test_files_of_ways_and_positions(tmp_path, capsys, data):
    path = tmp_path / "way.csv"
    path.write_bytes(data)
    for words in (["--path", str(path)], ["--from", str(path), "--to=0,0"]):
        assert cli.main(["plan", "planar_2r", *words, "--out", str(tmp_path / "out")]) == 2
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert "way.csv" in line
        assert "internal error" not in line


def test_a_way_point_that_is_no_file(tmp_path, capsys):
    assert cli.main(["plan", "planar_2r", "--path", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "Is a directory" in capsys.readouterr().err


def test_urdf_files_are_bounded(tmp_path):
    path = Path(tmp_path, "r.urdf")
    with open(path, "wb") as file:
        file.truncate(2_000_000_000)

    def load():
        with pytest.raises(od.ModelError):
            od.load_urdf(path)

    assert peak(load) < 50e6
