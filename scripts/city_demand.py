"""Find the heavy loads of the bundled cities: vehicles an hour at which the equilibrium trip takes 1.5 times as long.

    python scripts/city_demand.py

Prints the table HEAVY_VPH of routesim/demand/cities.py, rounded to two digits.
"""

import numpy as np

import routesim as rs

RATIO = 1.5


def ratio(network: rs.RoadNetwork, name: str, vehicles: float) -> float:
    """Return the equilibrium's mean trip over the mean trip on empty roads."""
    demand = rs.load_demand(name, vehicles)
    user = rs.assign(network, demand, relative_gap=1e-2)
    empty = rs.assign(network, demand.scaled(1e-6), relative_gap=1e-2)
    return user.mean_travel_time_s / empty.mean_travel_time_s


def main() -> None:
    """Print a line for each city."""
    for name in rs.list_cities():
        network = rs.load_city(name)
        low, high = 10.0, 10.0
        while ratio(network, name, high) < RATIO:
            low, high = high, 2 * high
        for _ in range(6):
            middle = float(np.sqrt(low * high))
            low, high = (middle, high) if ratio(network, name, middle) < RATIO else (low, middle)
        print(f'    "{name}": {float(f"{high:.1e}"):_},', flush=True)


if __name__ == "__main__":
    main()
