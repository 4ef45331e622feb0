"""Who wants to go where in a traffic scenario: a city's ready demand, listed pairs, or a file of trips or rates."""

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from routesim.demand.cities import load_demand, synthetic_zones
from routesim.demand.demand import HOUR_S, Demand
from routesim.errors import InputError, ResultsError
from routesim.roads.network import RoadNetwork
from routesim.scenario.choices import Frozen
from routesim.scenario.sources import Label, beside_scenario
from routesim.storage.reading import one_line, read_table

_TABLES = (".csv", ".parquet")


class Flow(Frozen):
    """Vehicles from one place to another."""

    origin: Label = Field(alias="from", description="a node label")
    destination: Label = Field(alias="to", description="a node label")
    vehicles: float = Field(gt=0, le=1e8, description="how many are expected between the two times")

    @model_validator(mode="after")
    def _goes_somewhere(self) -> Self:
        if self.origin == self.destination:
            raise InputError(f"vehicles go from {self.origin!r} to itself; a trip needs two places")
        return self


class DemandChoice(Frozen):
    """One of `pairs`, `od` and `trips`; with none of them the city's own demand, or a synthetic one for other roads."""

    start_s: float = Field(0.0, ge=0, le=1e7, description="when the first may depart")
    end_s: float = Field(HOUR_S, gt=0, le=1e7, description="when the last may depart")
    profile: tuple[float, ...] = Field(
        (1.0,), min_length=1, max_length=10_000, description="weights of equal parts of that time"
    )
    growth: float = Field(1.0, gt=0, le=1000, description="a factor on the number of vehicles")
    scale: Literal["heavy", "ordinary"] = Field("heavy", description="which load of a city's own demand")
    pairs: tuple[Flow, ...] | None = Field(None, min_length=1, description="vehicles between listed places")
    od: str | None = Field(None, description="a .csv or .parquet file (origin, destination, vehicles) or a TNTP file")
    trips: str | None = Field(None, description="a .csv or .parquet file (origin, destination, departure_s)")

    @field_validator("od", "trips")
    @classmethod
    def _beside_the_scenario(cls, file: str | None, info: ValidationInfo) -> str | None:
        if file is None:
            return None
        path = beside_scenario(file, info)
        if not path.is_file():
            raise InputError(f"there is no file {str(path)!r}")
        endings = (*_TABLES, ".tntp") if info.field_name == "od" else _TABLES
        if path.suffix.lower() not in endings:
            raise InputError(f"a table is a file that ends in {', '.join(endings)}, got {path.name!r}")
        return str(path.resolve())

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [one for one in ("pairs", "od", "trips") if getattr(self, one) is not None]
        if len(given) > 1:
            raise InputError(f"demand comes from one of pairs, od and trips; got {' and '.join(given)}")
        if self.end_s <= self.start_s:
            raise InputError(f"end_s must be later than start_s, got {self.end_s} and {self.start_s}")
        if min(self.profile) < 0 or sum(self.profile) <= 0:
            raise InputError(f"a profile lists weights of at least 0, not all of them 0, got {list(self.profile)}")
        return self

    def make(self, network: RoadNetwork, city: str | None, vehicles: int | None) -> Demand:
        """Return the demand on these roads, with so many vehicles expected in all if given."""
        if self.trips is not None:
            table = _read(self.trips)
            return Demand.from_trips(table if vehicles is None else table.head(vehicles))
        demand = self._rates(network, city, vehicles)
        expected = float(demand.vehicles.sum())
        if vehicles is not None and not expected > 0:
            raise InputError(
                f"demand: no vehicle is expected from {self.start_s} to {self.end_s} s, which cannot be scaled to "
                f"{vehicles}; choose a longer time"
            )
        return demand.scaled(self.growth if vehicles is None else vehicles / expected)

    def _rates(self, network: RoadNetwork, city: str | None, vehicles: int | None) -> Demand:
        times: dict[str, Any] = {"start_s": self.start_s, "end_s": self.end_s, "profile": self.profile}
        if self.pairs is not None:
            columns = ("origin", "destination", "vehicles")
            return Demand.from_od({name: [getattr(one, name) for one in self.pairs] for name in columns}, **times)
        if self.od is not None and self.od.lower().endswith(".tntp"):
            return Demand.from_tntp_trips(self.od, **times)
        if self.od is not None:
            return Demand.from_od(_read(self.od), **times)
        if city is not None:
            return load_demand(city, **times, scale=self.scale)
        if vehicles is None:
            raise InputError("demand: these roads have no demand of their own; give pairs, od, trips or rounds")
        zones, mean_s = synthetic_zones(network)
        return Demand.from_zones(network, zones, float(vehicles), decay_s=mean_s / 2, **times)


def bin_seconds(duration_s: float, steps: int = 48) -> float:
    """Return a round number of seconds so that about `steps` of them make up the duration.

    >>> bin_seconds(3600.0), bin_seconds(7200.0), bin_seconds(10.0)
    (120.0, 300.0, 1.0)
    """
    for nice in (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200):
        if duration_s / nice <= steps:
            return float(nice)
    return float(duration_s / steps)


def _read(path: str) -> Any:
    import pandas as pd

    reader: Literal["csv", "parquet"] = "csv" if path.lower().endswith(".csv") else "parquet"
    try:
        return pd.read_csv(path) if reader == "csv" else read_table(Path(path)).to_pandas()
    except (ResultsError, OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError) as problem:
        raise InputError(one_line(f"cannot read the table {path}: {problem}")) from None
