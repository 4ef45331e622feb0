"""SumoSimulator: the simulator with SUMO as its engine."""

from collections.abc import Sequence
from typing import Literal

from routesim.demand.demand import Demand
from routesim.roads.incidents import Incident
from routesim.roads.network import RoadNetwork
from routesim.traffic.engines.sumo import Sumo
from routesim.traffic.simulator import TrafficSimulator
from routesim.travellers.trip_costs import TripCosts


class SumoSimulator(TrafficSimulator):
    """The same routers on the same roads and trips, in SUMO; needs the extra: pip install 'routesim[sumo]'.

    It is `TrafficSimulator(network, demand, physics=rs.physics.Sumo(mode, ...))`, and `run` returns the same `Traffic`.
    Vehicles that wait to be inserted are on their trip, and those that SUMO moved on after they had stood for
    `stuck_s` seconds are counted in `Traffic.forced_moves`.
    """

    def __init__(
        self,
        network: RoadNetwork,
        demand: Demand,
        mode: Literal["meso", "micro"] = "meso",
        *,
        window_s: float = 300.0,
        stuck_s: float = 300.0,
        speed_deviation: float = 0.1,
        reroute_share: float = 0.0,
        reroute_s: float = 60.0,
        bin_s: float | None = None,
        trip_costs: TripCosts | None = None,
        incidents: Sequence[Incident] = (),
    ) -> None:
        super().__init__(
            network,
            demand,
            window_s,
            physics=Sumo(mode, stuck_s, speed_deviation),
            reroute_share=reroute_share,
            reroute_s=reroute_s,
            bin_s=bin_s,
            trip_costs=trip_costs,
            incidents=incidents,
        )
