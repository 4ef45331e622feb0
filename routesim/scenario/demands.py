"""Who wants to go where in a traffic scenario: a city's ready demand, listed pairs, or a file of trips or rates."""

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import AliasChoices, Field, ValidationInfo, field_validator, model_validator

from routesim.demand.cities import load_demand, synthetic_zones
from routesim.demand.demand import HOUR_S, Demand
from routesim.errors import InputError
from routesim.roads.network import RoadNetwork
from routesim.roads.snapping import place_label
from routesim.scenario.choices import Frozen
from routesim.scenario.sources import Place, beside_scenario

_TABLES = (".csv", ".csv.gz", ".parquet")
_SOURCES = ("pairs", "file", "od", "trips")


class Flow(Frozen):
    """Vehicles from one place to another."""

    origin: Place = Field(
        validation_alias=AliasChoices("origin", "from"), description="a node label, or longitude and latitude"
    )
    destination: Place = Field(
        validation_alias=AliasChoices("destination", "to"), description="a node label, or longitude and latitude"
    )
    vehicles: float = Field(gt=0, le=1e8, description="how many are expected between the two times")

    @model_validator(mode="after")
    def _goes_somewhere(self) -> Self:
        if self.origin == self.destination:
            raise InputError(f"vehicles go from {self.origin!r} to itself; a trip needs two places")
        return self


class DemandChoice(Frozen):
    """One of `pairs`, `file`, `od` and `trips`; with none the city's own demand, or a synthetic one for other roads."""

    start_s: float = Field(0.0, ge=0, le=1e7, description="when the first may depart")
    end_s: float = Field(HOUR_S, gt=0, le=1e7, description="when the last may depart")
    profile: tuple[float, ...] = Field(
        (1.0,), min_length=1, max_length=10_000, description="weights of equal parts of that time"
    )
    growth: float = Field(1.0, gt=0, le=1000, description="a factor on the number of vehicles")
    scale: Literal["heavy", "ordinary"] = Field("heavy", description="which load of a city's own demand")
    pairs: tuple[Flow, ...] | None = Field(None, min_length=1, description="vehicles between listed places")
    file: str | None = Field(
        None,
        description="a .csv or .parquet table as `Demand.from_csv` reads it (labels or degrees, rates or trips), a "
        "TNTP file, or a GMNS folder",
    )
    od: str | None = Field(None, description="the same, a table of rates (with vehicles) or a TNTP file")
    trips: str | None = Field(None, description="the same, a table of trips (with departure_s)")

    @field_validator("file", "od", "trips")
    @classmethod
    def _beside_the_scenario(cls, file: str | None, info: ValidationInfo) -> str | None:
        if file is None:
            return None
        path = beside_scenario(file, info)
        if info.field_name == "file" and path.is_dir():
            return str(path.resolve())
        if not path.is_file():
            raise InputError(f"there is no file {str(path)!r}")
        endings = _TABLES if info.field_name == "trips" else (*_TABLES, ".tntp")
        if not path.name.lower().endswith(endings):
            raise InputError(f"a table is a file that ends in {', '.join(endings)}, got {path.name!r}")
        return str(path.resolve())

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [one for one in _SOURCES if getattr(self, one) is not None]
        if len(given) > 1:
            raise InputError(f"demand comes from one of {', '.join(_SOURCES)}; got {' and '.join(given)}")
        if self.end_s <= self.start_s:
            raise InputError(f"end_s must be later than start_s, got {self.end_s} and {self.start_s}")
        if min(self.profile) < 0 or sum(self.profile) <= 0:
            raise InputError(f"a profile lists weights of at least 0, not all of them 0, got {list(self.profile)}")
        return self

    def make(self, network: RoadNetwork, city: str | None, vehicles: int | None) -> Demand:
        """Return the demand on these roads, with so many vehicles expected in all if given."""
        demand = self._demand(network, city, vehicles)
        if demand.departure_s is not None and (vehicles is not None or self.trips is not None):
            return demand if vehicles is None else demand.first(vehicles)  # trips that were counted are not drawn
        expected = float(demand.vehicles.sum())
        if vehicles is not None and not expected > 0:
            raise InputError(
                f"demand: no vehicle is expected from {self.start_s} to {self.end_s} s, which cannot be scaled to "
                f"{vehicles}; choose a longer time"
            )
        return demand.scaled(self.growth if vehicles is None else vehicles / expected)

    def _demand(self, network: RoadNetwork, city: str | None, vehicles: int | None) -> Demand:
        times: dict[str, Any] = {"start_s": self.start_s, "end_s": self.end_s, "profile": self.profile}
        path = self.file or self.od or self.trips
        if self.pairs is not None:
            return self._listed(network, times)
        if path is not None and path.lower().endswith(".tntp"):
            return Demand.from_tntp_trips(path, **times)
        if path is not None and Path(path).is_dir():
            return Demand.from_gmns(path, network, **times)
        if path is not None:
            demand = Demand.from_csv(path, network, **times)
            if self.file is None and (demand.departure_s is None) == (self.trips is not None):
                meant, other = ("trips", "departure_s") if self.trips is not None else ("od", "vehicles alone")
                raise InputError(f"demand: {meant} is a table with {other}, which {path} is not; name it with file")
            return demand
        if city is not None:
            return load_demand(city, **times, scale=self.scale)
        if vehicles is None:
            raise InputError("demand: these roads have no demand of their own; give pairs, file or rounds")
        zones, mean_s = synthetic_zones(network)
        return Demand.from_zones(network, zones, float(vehicles), decay_s=mean_s / 2, **times)

    def _listed(self, network: RoadNetwork, times: dict[str, Any]) -> Demand:
        pairs = self.pairs or ()
        table = {end: [place_label(network, getattr(one, end)) for one in pairs] for end in ("origin", "destination")}
        return Demand.from_od({**table, "vehicles": [one.vehicles for one in pairs]}, **times)


def bin_seconds(duration_s: float, steps: int = 48) -> float:
    """Return a round number of seconds so that about `steps` of them make up the duration.

    >>> bin_seconds(3600.0), bin_seconds(7200.0), bin_seconds(10.0)
    (120.0, 300.0, 1.0)
    """
    for nice in (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200):
        if duration_s / nice <= steps:
            return float(nice)
    return float(duration_s / steps)
