"""Where the roads of a scenario come from: a bundled city, a place, a file, or edges listed in the scenario itself."""

from pathlib import Path
from typing import Any, Self, TypeAlias

import networkx as nx
from pydantic import Field, ValidationInfo, field_validator, model_validator

from routesim.errors import InputError
from routesim.registry import nearest
from routesim.roads.cities import list_cities, load_city
from routesim.roads.importers import read_network
from routesim.roads.network import RoadNetwork
from routesim.scenario.choices import Frozen

Label: TypeAlias = int | str
Place: TypeAlias = tuple[float, float] | int | str
"""A node label, or longitude and latitude."""


def beside_scenario(file: str, info: ValidationInfo) -> Path:
    """Return the path of a file that a scenario names, relative to the scenario's own folder."""
    folder = (info.context or {}).get("folder")
    return Path(file) if folder is None else Path(folder) / file


class RoadEdge(Frozen):
    """One road of a graph listed in the scenario."""

    tail: Label = Field(alias="from", description="the node it leaves")
    head: Label = Field(alias="to", description="the node it leads to")
    free_flow_s: float = Field(gt=0, le=1e6, description="seconds on the empty road")
    capacity_vph: float | None = Field(
        None, ge=1e-6, le=1e12, description="vehicles an hour, for traffic in continuous time"
    )
    bpr_alpha: float | None = Field(
        None, ge=0, le=1e12, description="how much slower the road is at capacity, as a share"
    )
    bpr_beta: float | None = Field(None, ge=0, le=20, description="how steeply it slows down")
    length_m: float | None = Field(
        None, ge=0, le=1e9, description="metres; where roads queue, one without a length holds any number of vehicles"
    )
    lanes: float | None = Field(None, ge=1e-3, le=1e4, description="lanes in this direction, one unless given")
    name: str = Field("", max_length=200, description="what people call it")


class RoadSource(Frozen):
    """The roads: exactly one of `name`, `file`, `place` and `edges`."""

    name: str | None = Field(None, description=f"a bundled city: {', '.join(list_cities())}")
    file: str | None = Field(None, description="a file or GMNS folder of roads, relative to the scenario's own folder")
    place: str | None = Field(None, min_length=1, description="a place to download, as OpenStreetMap's search finds it")
    edges: tuple[RoadEdge, ...] | None = Field(None, min_length=1, description="the roads themselves, one by one")
    nodes: dict[str, tuple[float, float]] = Field(
        {}, description="where the nodes of `edges` lie on the drawing, in degrees or any plane"
    )

    @field_validator("name")
    @classmethod
    def _is_bundled(cls, name: str | None) -> str | None:
        if name is not None and name not in list_cities():
            raise InputError(f"no bundled city {name!r}{nearest(name, list_cities())}; `routesim cities` lists them")
        return name

    @field_validator("file")
    @classmethod
    def _beside_the_scenario(cls, file: str | None, info: ValidationInfo) -> str | None:
        if file is None:
            return None
        path = beside_scenario(file, info)
        if not path.exists():
            raise InputError(f"there is no file {str(path)!r}")
        return str(path.resolve())

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [one for one in ("name", "file", "place", "edges") if getattr(self, one) is not None]
        if len(given) != 1:
            raise InputError(f"roads come from one of name, file, place and edges; got {' and '.join(given) or 'none'}")
        if self.nodes and self.edges is None:
            raise InputError("nodes says where the nodes of `edges` lie; other roads know that themselves")
        known = {str(end) for edge in self.edges or () for end in (edge.tail, edge.head)}
        for node in self.nodes:
            if node not in known:
                raise InputError(f"nodes: no edge has an end {node!r}{nearest(node, known)}")
        return self

    def network(self) -> RoadNetwork:
        """Return the roads."""
        if self.name is not None:
            return load_city(self.name)
        if self.file is not None:
            return read_network(self.file)
        if self.place is not None:
            return RoadNetwork.from_place(self.place)
        graph = nx.MultiDiGraph()
        for edge in self.edges or ():
            known: dict[str, Any] = edge.model_dump(exclude_none=True, exclude={"tail", "head", "lanes"})
            if edge.lanes is not None:
                known["lanes_one_way"] = edge.lanes
            graph.add_edge(edge.tail, edge.head, **known)
        for label in graph.nodes:
            if str(label) in self.nodes:
                graph.nodes[label]["x"], graph.nodes[label]["y"] = self.nodes[str(label)]
        return RoadNetwork.from_networkx(graph)
