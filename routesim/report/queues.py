"""Queues of a record in its page: which roads have vehicles in each step, how many, and what fills a road."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from routesim.report import palette
from routesim.report.packing import Bulk

if TYPE_CHECKING:
    from routesim.results.record import Record

_PARTS = 10  # of a vehicle that are kept, for means over replications


def queue_content(record: "Record", edges: NDArray[np.int64], bulk: Bulk) -> dict[str, Any]:
    """Return what the script reads of queues, and put their arrays into `bulk`; nothing where no road queues.

    A learner's `standStarts` say where each step begins among its rows; a row has an edge in `standEdges` and four
    numbers in `standing`: vehicles on the road, in its queue and waiting to enter, and the metres that the queue
    reaches back, all in tenths.
    """
    if record.network is None or all(played.standing is None for played in record.learners):
        return {}
    network, steps = record.network, len(record.step_ends)
    lane_km = np.nan_to_num(network.length_m[edges]) * network.lanes[edges] / 1000.0
    # At connectors and roads without a length any number of vehicles has room.
    free = network.no_through[network.tails[edges]] | network.no_through[network.heads[edges]]
    bulk.add("edgeLaneKm", np.where(free, 0.0, lane_km).astype(np.float32))
    for number, played in enumerate(record.learners):
        if played.standing is None:
            continue
        step, place = played.standing.present()
        vehicles = np.column_stack([values[step, place] for values in played.standing[:4]])
        bulk.add(f"standStarts{number}", np.searchsorted(step, np.arange(steps + 1)).astype(np.int32))
        bulk.add(f"standEdges{number}", np.searchsorted(edges, record.edges[place]).astype(np.int32))
        bulk.add(f"standing{number}", np.round(_PARTS * vehicles).astype(np.int32))
    return {
        "queues": {
            "parts": _PARTS,
            "jam": [played.standing and played.standing.jam_density_per_km for played in record.learners],
            "limits": [one.up_to for one in palette.FULL_CLASSES[:-1]],
            "classes": [
                {"word": one.word, "range": text, "light": one.light, "dark": one.dark, "width": one.width}
                for one, text in zip(palette.FULL_CLASSES, palette.full_ranges(), strict=True)
            ],
        }
    }
