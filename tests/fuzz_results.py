"""Damaged result folders for the fuzzer: finished, unfinished and saved ones, read by the commands that read them."""

import copy
import io
import json
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fuzz import RefusedError, command

ARMS = """
kind = "bandit"
title = "Two arms"
rounds = 60
replications = 2
seed = 0
[bandit]
arms = 2
congestion = "inverse"
noise_variance = 0.1
windows = [2]
[[learners]]
name = "UCB1"
[[learners]]
name = "RandomPath"
"""
TRAFFIC = """
kind = "traffic"
title = "Two roads"
replications = 2
seed = 0
learners = ["FreeFlowRouter", "GreedyRouter"]
[traffic]
window_s = 60.0
congestion = { name = "linear", slope = 0.5 }
edges = [
    { name = "short", from = "a", to = "b", free_flow_s = 10.0 },
    { name = "long", from = "a", to = "b", free_flow_s = 20.0 },
]
nodes = { a = [0.0, 0.0], b = [0.01, 0.0] }
demand = { pairs = [{ from = "a", to = "b", vehicles = 50.0 }], end_s = 300.0 }
"""
ODD: list[Any] = [
    *(None, True, False, -1, 0, 1, 2, 0.5, -0.5, 2**31 - 1, 2**31, 2**40, 2**62, 2**63, 2**64, 10**30, 10**400),
    *(1e-300, 1e100, 1e300, -1e300, float("nan"), float("inf"), float("-inf"), "", "x", "a\nb", "\ud800", "..", "/etc"),
    *("</script><script>alert(1)", "x" * 10_000, [], {}, [[]], [None], [1, 2, 3], {"a": 1}, [[[[1]]]], ["x"] * 1000),
]
RAW = ["[" * 100_000, '{"a":' * 100_000, "", "{", "[]", "3", "null", '"x"', "9" * 5000, "NaN", "\0", "\ufeff{}"]
HEADERS = [
    "{'descr': '<i8', 'fortran_order': False, 'shape': (3,",
    "(" * 9000,
    "3",
    "{'descr': '<q99', 'fortran_order': False, 'shape': (3,), }",
    "{'descr': '<i8', 'fortran_order': False, 'shape': (1099511627776,), }",
    "{'descr': '<i8', 'fortran_order': False, 'shape': (-1,), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': [('a', '<i8')], 'fortran_order': True, 'shape': (1,), }",
]
BEFORE_THE_REPORT = ("parts", "run.json", "scenario.toml", "checkpoints")


class Results:
    """Folders of two scenarios, a saved run in full and in rows, and a record on the roads of a city."""

    def prepare(self, folder: Path) -> None:
        """Make the folders, and read each once."""
        import routesim as rs
        from routesim.results.from_results import record

        self.home = folder
        for name, text in {"arms": ARMS, "traffic": TRAFFIC}.items():
            (folder / f"{name}.toml").write_text(text)
            self._run(folder, name, folder / name)
        city = rs.load_city("nauru")
        ends = (166.9120, -0.5440), (166.9520, -0.5180)
        roads = rs.ActionSet.between(city, *ends, k=2)
        base = -city.free_flow_s[roads.edges]
        world = rs.RoundEnvironment.from_congestion(roads, base, rs.congestion.Linear(0.5), window=3, noise_std=1.0)
        run = rs.run(world, rs.UCB1(), 200, comparator=rs.Comparator(0.0, 0.0))
        run.save(folder / "run")
        run.save(folder / "rows", keep=50)
        (folder / "record").mkdir()
        record(run).write(folder / "record")
        for name in ("arms", "traffic"):
            self._unfinish(name)
        for kind in KINDS:
            shutil.copytree(folder / kind.split()[0], folder / "once")
            self._read(kind, folder / "once")()
            shutil.rmtree(folder / "once")

    def damage(self, rng: random.Random, folder: Path) -> Callable[[], None]:
        """Damage one to three files of a folder."""
        kind = rng.choices(list(KINDS), weights=list(KINDS.values()))[0]
        target = folder / "result"
        shutil.copytree(self.home / kind.split()[0], target)
        read = {"map": MAPPED, "resume": ["summary.json"], "again": ["summary.json"]}.get(kind.split()[1])
        files = [path for path in sorted(target.rglob("*")) if path.is_file() and path.name != "lock"]
        files = [path for path in files if read is None or path.name in read]
        for path in rng.sample(files, min(len(files), rng.choice([1, 1, 1, 2, 3]))):
            _damage(rng, path)
        return self._read(kind, target)

    def _read(self, kind: str, target: Path) -> Callable[[], None]:
        name, verb = kind.split()
        name = name.removesuffix("-begun")
        if verb == "map":
            return lambda: command("map", str(target))
        if verb == "resume":
            return lambda: self._run(self.home, name, target, "--resume")
        return lambda: self._run(self.home, name, target)

    @staticmethod
    def _run(home: Path, name: str, target: Path, *more: str) -> None:
        command("run", str(home / f"{name}.toml"), "--out", str(target), "--workers", "1", "--quiet", *more)

    def _unfinish(self, name: str) -> None:
        """Leave the run as it is before its report is written: all parts are there."""
        from routesim.runner import execution

        target = self.home / f"{name}-begun"

        def stop(*_: object) -> None:
            raise RefusedError("stopped", "")

        real, execution.ReportJob = execution.ReportJob, stop
        try:
            self._run(self.home, name, target)
        except RefusedError:
            pass
        finally:
            execution.ReportJob = real
        assert {path.name for path in (target / ".unfinished").iterdir()} >= {"parts", "run.json", "scenario.toml"}


MAPPED = [
    *("record.json", "edges.parquet", "routes.parquet", "network.npz"),
    *("summary.json", "rounds.parquet", "uses.parquet", "plays.parquet"),
]
KINDS = {
    "arms map": 3,
    "traffic map": 3,
    "record map": 3,
    "run map": 3,
    "rows map": 3,
    "arms resume": 1,
    "traffic resume": 1,
    "arms again": 0.3,
    "arms-begun resume": 1,
    "traffic-begun resume": 2,
}


def _damage(rng: random.Random, path: Path) -> None:
    how = rng.randrange(12)
    if how == 0:
        path.unlink()
    elif how == 1:
        path.unlink()
        path.mkdir()
    elif how < 5:
        path.write_bytes(_bytes(rng, path.read_bytes()))
    elif path.suffix == ".json":
        _json(rng, path)
    elif path.suffix == ".parquet":
        _table(rng, path)
    elif path.suffix == ".npz":
        _arrays(rng, path)
    else:
        path.write_bytes(_bytes(rng, path.read_bytes()))


def _bytes(rng: random.Random, raw: bytes) -> bytes:
    how = rng.randrange(5)
    at = rng.randrange(len(raw) + 1)
    if how == 0:
        return raw[:at]
    if how == 1:
        return rng.randbytes(rng.choice([0, 1, 4, 100, 10_000]))
    if how == 2:
        return raw[:at] + raw[at + rng.randint(1, 50) :]
    changed = bytearray(raw)
    for _ in range(rng.choice([1, 1, 4, 30])):
        if changed:
            changed[rng.randrange(len(changed))] = rng.choice([0, 255, 127, 128, rng.randrange(256)])
    return bytes(changed)


def _places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [here] if here else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        found += _places(one, (*here, key))
    return found


def _json(rng: random.Random, path: Path) -> None:
    if rng.randrange(8) == 0:
        path.write_text(rng.choice(RAW), encoding="utf-8")
        return
    content = json.loads(path.read_text(encoding="utf-8"))
    for _ in range(rng.randint(1, 3)):
        places = _places(content)
        if not places:
            break
        # First which part, then where in it: else it is nearly always a number in a long list.
        first = rng.choice(sorted({place[0] for place in places}, key=str))
        *way, last = rng.choice([place for place in places if place[0] == first])
        table = content
        for key in way:
            table = table[key]
        how = rng.randrange(6)
        if how == 0:
            del table[last]
        elif how == 1 and isinstance(table, list):
            table.extend([copy.deepcopy(table[last])] * rng.choice([1, 2, 1000]))
        elif how == 2 and isinstance(table, list):
            rng.shuffle(table)
        elif how == 3 and isinstance(table, dict):
            table[rng.choice(list(table))] = copy.deepcopy(table[last])
        else:
            table[last] = copy.deepcopy(rng.choice(ODD))
    path.write_text(json.dumps(content), encoding="utf-8")


def _table(rng: random.Random, path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    table = parquet.read_table(path)
    name = rng.choice(table.column_names)
    at, how = table.column_names.index(name), rng.randrange(9)
    if how == 0:
        table = table.drop_columns(name)
    elif how == 1:
        table = table.slice(0, rng.randrange(len(table) + 1))
    elif how == 2:
        table = pa.concat_tables([table] * rng.choice([2, 3, 50]))
    elif how == 3:
        table = table.rename_columns([rng.choice(["x", name, table.column_names[0]]) for _ in table.column_names])
    elif how == 4:
        odd = rng.choice([["x"], [None], [[1]], [{"a": 1}], [b"x"], [True], [float("nan")], [-1], [2**62], [1e300]])
        table = table.set_column(at, name, pa.array(odd * len(table)))
    elif how == 5:
        table = table.set_column(at, name, table[name].dictionary_encode())
    else:
        values = table[name].to_pylist()
        for _ in range(rng.randint(1, 3)):
            if values and isinstance(values[0], int | float):
                values[rng.randrange(len(values))] = rng.choice([None, -1, 0, 1, 2**20, 2**31 - 1])
            elif values:
                values[rng.randrange(len(values))] = rng.choice([None, "", "x", "a\nb"])
        table = table.set_column(at, name, pa.array(values, table[name].type))
    parquet.write_table(table, path)


def _arrays(rng: random.Random, path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(members))
    how = rng.randrange(6)
    if how == 0:
        del members[name]
    elif how == 1:
        text = rng.choice(HEADERS)
        members[name] = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()
    elif how == 2:
        members[name] = _bytes(rng, members[name])
    elif how == 3:
        members[name] = members[rng.choice(list(members))]
    else:
        members[name] = _saved(_changed(rng, np.lib.format.read_array(io.BytesIO(members[name]))))
    with zipfile.ZipFile(path, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        for key, content in members.items():
            archive.writestr(key, content)


def _saved(values: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, values, allow_pickle=True)
    return stream.getvalue()


def _changed(rng: random.Random, values: np.ndarray) -> np.ndarray:
    how = rng.randrange(7)
    if how == 0 or values.size == 0:
        return values[np.newaxis]
    if how == 1:
        return values.astype(rng.choice(["<f4", ">i8", "<i2", "<U5", "bool", "<c16", "<u8"]))
    if how == 2:
        return np.array(rng.choice([[], [3], 3, ["a"], [{}], [float("nan")]]))
    if how == 3 and values.ndim:
        return values[: rng.randrange(len(values))]
    if how == 4 and values.ndim:
        return np.concatenate([values] * rng.choice([2, 100]))
    values = values.copy()
    odd = [-1, 0, 2**31 - 1, 2**62] if values.dtype.kind in "iu" else [-1.0, 0.0, 1e300, float("nan"), float("inf")]
    if values.dtype.kind in "iuf":
        with np.errstate(all="ignore"):
            flat = values.reshape(-1)
            flat[rng.randrange(flat.size)] = np.array(rng.choice(odd)).astype(values.dtype)
            return flat.reshape(values.shape)
    return values
