"""Measure reading roads side by side with the packages people would otherwise use.

    python -m benchmarks.roads

Importing liechtenstein.osm.pbf against pyrosm's own route to a networkx graph, and loading the bundled
Coquimbo against `osmnx.load_graphml` on the same roads. Each is run once unmeasured, so that compiled code
is in place, then the median of several runs counts. The PBF is found in ../shared/data or where
ROUTESIM_SHARED points.

    python -m benchmarks.tile_pbf liechtenstein.osm.pbf tiled.osm.pbf
    python -m benchmarks.roads tiled.osm.pbf

measures the import of one large PBF instead: CPU seconds, seconds and peak memory. Run it in
two working copies to compare their versions.
"""

import os
import resource
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from benchmarks import tile_pbf
from benchmarks.side_by_side import note
from routesim.roads.cities import load_city
from routesim.roads.network import RoadNetwork

_ROOT = Path(os.environ.get("ROUTESIM_SHARED", Path(__file__).parents[1] / ".." / "shared"))
SHARED = _ROOT / "data" if (_ROOT / "data").is_dir() else _ROOT


def seconds(work: Callable[[], object], runs: int) -> float:
    """Return the median time of `work` after one unmeasured run."""
    work()
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def pyrosm_graph(path: Path) -> object:
    import pyrosm

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        osm = pyrosm.OSM(str(path))
        nodes, edges = osm.get_network(nodes=True, network_type="driving")
        return osm.to_graph(nodes, edges, graph_type="networkx")


def report(what: str, ours: float, peer: str, theirs: float) -> None:
    print(f"{what}: routesim {ours:.3f} s, {peer} {theirs:.3f} s, {theirs / ours:.1f} times faster")
    note(what, f"{ours:.3f} s", f"{theirs / ours:.1f} x {peer}")


def measure_import(pbf: Path) -> None:
    """Print what one import takes, after a smaller one that compiles everything."""
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.osm.pbf"
        tile_pbf.write_small(small)
        RoadNetwork.from_osm(small)
    cpu, wall = time.process_time(), time.perf_counter()
    network = RoadNetwork.from_osm(pbf, largest_component=False)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    size = pbf.stat().st_size
    print(
        f"{network!r} from {size / 1e6:.1f} MB: {cpu:.2f} CPU seconds, {wall:.2f} s, peak memory {peak / 1e6:.0f} MB, "
        f"{peak / size:.1f} times the file"
    )


def main() -> None:
    if len(sys.argv) > 1:
        measure_import(Path(sys.argv[1]))
        return
    import osmnx  # late: it would count in the peak memory of an import

    pbf = SHARED / "osm" / "liechtenstein.osm.pbf"
    if pbf.exists():
        report(
            "importing liechtenstein.osm.pbf",
            seconds(lambda: RoadNetwork.from_osm(pbf), 7),
            "pyrosm to networkx",
            seconds(lambda: pyrosm_graph(pbf), 5),
        )
        report(
            "importing liechtenstein.osm.pbf and handing over a networkx graph",
            seconds(lambda: RoadNetwork.from_osm(pbf).to_networkx(), 7),
            "pyrosm to networkx",
            seconds(lambda: pyrosm_graph(pbf), 5),
        )
    else:
        print(f"importing liechtenstein.osm.pbf: skipped, {pbf} is not there")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "coquimbo.graphml"
        load_city("coquimbo").to_graphml(file)
        report(
            "loading Coquimbo",
            seconds(lambda: load_city("coquimbo"), 7),
            "osmnx.load_graphml",
            seconds(lambda: osmnx.load_graphml(file), 3),
        )


if __name__ == "__main__":
    main()
