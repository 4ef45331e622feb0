"""What the service is asked and answers, as models that check themselves and describe themselves to OpenAPI."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator

MOST_SECONDS = 1e7
MOST_EDGES = 10_000
MOST_LABEL = 2**53  # the whole numbers that JSON says exactly everywhere


class _Message(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


RequestId: TypeAlias = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9._:-]{1,64}$",
        description="an id of your choice; sending a request again under the same id changes nothing",
    ),
]
DecisionId: TypeAlias = Annotated[
    str, Field(pattern=r"^[0-9a-f]{8}-[0-9]{1,18}$", description="as POST /recommend returned it")
]
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=MOST_SECONDS)]
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=100)]


class Point(_Message):
    """A place; the nearest node stands for it."""

    lon: float = Field(ge=-180, le=180)
    lat: float = Field(ge=-90, le=90)


Label: TypeAlias = Annotated[int, Field(ge=-MOST_LABEL, le=MOST_LABEL)] | Name
Place: TypeAlias = Point | Label


class Trip(_Message):
    """From where to where."""

    origin: Place = Field(description="a place, or the label of a node")
    destination: Place = Field(description="a place, or the label of a node")

    @field_validator("origin", "destination", mode="before")
    @classmethod
    def _whole(cls, value: Any) -> Any:
        """Take 7.0 for 7, which is the same number in JSON."""
        return int(value) if isinstance(value, float) and value.is_integer() else value


class RecommendRequest(_Message):
    """Who wants to go where; all of it may be left out."""

    request_id: RequestId | None = None
    trip: Trip | None = Field(default=None, description="the ends; those of the scenario if left out")
    traveller: Name | None = Field(
        default=None, description="a class of the scenario's travellers; the most frequent if left out"
    )
    conditions: list[Name] = Field(
        default=[], max_length=16, description="conditions of the scenario that the trip meets"
    )


class LineString(_Message):
    """A GeoJSON line of longitudes and latitudes."""

    type: Literal["LineString"]
    coordinates: list[Annotated[list[float], Field(min_length=2, max_length=2)]]


class Route(_Message):
    """A route: the nodes it passes, its edges, and its line on the map."""

    number: int = Field(description="the number among the routes of its trip, the quickest on empty roads first")
    nodes: list[int | str]
    edges: list[int] = Field(description="edge indices, in the order in which times are observed")
    free_flow_s: float
    line: LineString


class Recommendation(_Message):
    """The recommended route."""

    decision_id: DecisionId
    expected_time_s: float = Field(
        description="seconds at the counts of this moment: the mean observed at them, else the scenario's model"
    )
    route: Route


class ObserveTotal(_Message):
    """How long a recommended trip took in all; it is shared out over the edges like their free-flow times."""

    decision_id: DecisionId
    request_id: RequestId | None = None
    travel_time_s: Seconds = Field(description="seconds; where the scenario has travellers, what the trip cost them")


class ObserveEdges(_Message):
    """How long a recommended trip took on each edge."""

    decision_id: DecisionId
    request_id: RequestId | None = None
    edge_times_s: list[Seconds] = Field(
        min_length=1, max_length=MOST_EDGES, description="seconds, one for each edge of the route in its order"
    )


class Noted(_Message):
    """The observation is on the disk and learned from."""

    decision_id: DecisionId
    repeated: bool = Field(description="whether it was known already, and changed nothing")


class Load(_Message):
    """How often the recommendations of the window use an edge."""

    edge: int
    count: int


class Loads(_Message):
    """The edges in use."""

    window: int
    recommended: int
    edges: list[Load]


class ServiceState(_Message):
    """The service in a few words and numbers."""

    title: str
    learner: str
    window: int
    recommended: int
    observed: int
    pairs: int
    most_pairs: int
    origin: int | str
    destination: int | str
    travellers: list[str]
    conditions: list[str]


class Health(_Message):
    """Whether the service can acknowledge anything."""

    status: Literal["ok"]


class Problem(_Message):
    """Why a request was refused."""

    detail: str
