"""The routes of a record as rows: what each is called, how long it is, and how often each learner recommended it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from routesim.report.drawing import ends, pair_of
from routesim.roads.network import RoadNetwork

if TYPE_CHECKING:
    from routesim.results.record import Played, Record


class RouteRow(NamedTuple):
    """A route: its number from 1, the street that tells it apart, and its numbers; None where a network has none.

    Where routes join a few pairs, the street stands behind the pair, as in "A2 to B2: Quay".

    `shares` and `values` are by learner, in the record's order: the share of all that was recommended, and the mean
    trip when it was (NaN if it never was).
    """

    route: int
    via: str
    length_m: float | None
    free_flow_s: float | None
    shares: tuple[float, ...]
    values: tuple[float, ...]


def route_rows(record: "Record") -> list[RouteRow]:
    """Return a row for each route of a record."""
    overall = [_overall(record, played) for played in record.learners]
    streets = (
        [{record.network.names[edge] for edge in route} for route in record.routes]
        if record.network is not None
        else []
    )
    uses = Counter(name for names in streets for name in names)
    rows = []
    several = len(ends(record)) > 1
    for number, route in enumerate(record.routes):
        length = free_flow = None
        if record.network is not None:
            length = _known(record.network.length_m[list(route)].sum())
            free_flow = _known(record.network.free_flow_s[list(route)].sum())
        called = f"arm {route[0] + 1}" if record.network is None else via(record.network, route, uses)
        if several:
            called = f"A{pair_of(record, route) + 1} to B{pair_of(record, route) + 1}: {called}"
        rows.append(
            RouteRow(
                number + 1,
                called,
                length,
                free_flow,
                tuple(float(shares[number]) for shares in overall),
                tuple(float(played.route_values[number]) for played in record.learners),
            )
        )
    return rows


def _overall(record: "Record", played: "Played") -> NDArray[np.float64]:
    """Return the overall shares, or the mean of those by step, each step weighing as much as it is long."""
    if played.overall is not None:
        return played.overall
    spans = np.diff(record.step_ends, prepend=record.start)
    return np.asarray(spans @ played.shares / max(float(spans.sum()), 1e-12))


def via(network: RoadNetwork, route: Sequence[int], uses: Mapping[str, int]) -> str:
    """Return the street that tells a route apart, or the nodes it passes where streets have no names.

    That is the one it follows longest, where a street that `uses` says several routes share counts for less.
    """
    seconds: dict[str, float] = {}
    for edge in route:
        name = network.names[edge]
        seconds[name] = seconds.get(name, 0.0) + float(network.free_flow_s[edge])
    seconds.pop("", None)
    if seconds:
        return max(seconds, key=lambda name: seconds[name] / uses.get(name, 1) ** 2)
    passed = [str(network.labels[network.heads[edge]]) for edge in route[:-1]]
    if not passed or (network.is_geographic and not np.isnan(network.x).all()):
        return "unnamed streets" if passed else edge_name(network, route[0])
    return " – ".join(passed if len(passed) <= 4 else [*passed[:2], "…", *passed[-2:]])  # noqa: RUF001


def edge_name(network: RoadNetwork, edge: int) -> str:
    """Return the street of an edge, or its two ends where it has no name."""
    if network.names[edge]:
        return network.names[edge]
    if network.highways[edge]:
        return "unnamed road"
    return f"{network.labels[network.tails[edge]]} to {network.labels[network.heads[edge]]}"


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
