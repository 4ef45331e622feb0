"""The HTTP application: paths and models around the service, and no more than that."""

import json
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from numpy.typing import NDArray

import routesim
from routesim.errors import ResultsError
from routesim.report.assets import leaflet_script, leaflet_style
from routesim.roads.network import RoadNetwork
from routesim.serve.guard import LOOPBACK, MOST_BYTES, Guard
from routesim.serve.messages import (
    Health,
    Loads,
    Noted,
    ObserveEdges,
    ObserveTotal,
    Place,
    Point,
    Problem,
    Recommendation,
    RecommendRequest,
    ServiceState,
)
from routesim.serve.service import Refused, Service

_LOG = logging.getLogger("routesim.serve")
_DIGITS = 6  # of a degree: about a tenth of a metre
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "the Host is not one that this service answers for, or no JSON was sent"},
    401: {"model": Problem, "description": "writing needs the service's token"},
    404: {"model": Problem, "description": "there is no such node, route, traveller or decision"},
    409: {"model": Problem, "description": "it contradicts what was said before"},
    413: {"model": Problem, "description": "the body is too large"},
    429: {"model": Problem, "description": "too many new origin-destination pairs at once, or only one is served"},
    431: {"model": Problem, "description": "the head of the request is too large"},
    503: {"model": Problem, "description": "the state cannot be written or read"},
}


def make_app(
    service: Service, hosts: Iterable[str] = LOOPBACK, most_bytes: int = MOST_BYTES, token: str | None = None
) -> FastAPI:
    """Return the application that answers for a service; closing it closes the service. A token is needed to write."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await service.close()

    app = FastAPI(
        title="routesim",
        version=routesim.__version__,
        summary=f"Recommended routes that change the traffic they are made for: {service.served.title}",
        lifespan=lifespan,
        # Their pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
    )
    app.add_middleware(Guard, hosts=tuple(hosts), most_bytes=most_bytes, token=token)
    _add_refusals(app)
    _add_service(app, service)
    _add_page(app, service)
    return app


def _add_refusals(app: FastAPI) -> None:
    @app.exception_handler(Refused)
    async def refused(_: Request, problem: Refused) -> Response:
        return JSONResponse({"detail": problem.detail}, problem.status)

    @app.exception_handler(ResultsError)
    async def damaged(_: Request, problem: ResultsError) -> Response:
        _LOG.error("%s", problem)
        return JSONResponse({"detail": "the state cannot be read; the service's own log says why"}, 503)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, problem: RequestValidationError) -> Response:
        # What was sent is not sent back: it may be long, or no JSON at all.
        told = [{name: one[name] for name in ("loc", "msg", "type")} for one in problem.errors()]
        return JSONResponse({"detail": told}, 422)

    @app.exception_handler(Exception)
    async def failed(_: Request, problem: Exception) -> Response:
        _LOG.error("a request failed: %r", problem)
        return JSONResponse({"detail": "the service failed; its own log says why"}, 500)


def _add_service(app: FastAPI, service: Service) -> None:
    served, network = service.served, service.served.network

    @lru_cache(maxsize=4096)
    def route(action: int, path: tuple[int, ...]) -> bytes:
        return json.dumps(_route(network, action, path)).encode()

    observed = {"operationId": "observe", "requestBody": {"decision_id": "$response.body#/decision_id"}}
    linked: dict[int | str, dict[str, Any]] = {200: {"links": {"observe": observed}}}
    problems = _only(400, 401, 404, 409, 413, 429, 431, 503)

    @app.post("/recommend", operation_id="recommend", response_model=Recommendation, responses={**linked, **problems})
    async def recommend(asked: RecommendRequest | None = None) -> Response:
        """Recommend a route and count it as driven from now on."""
        asked = asked or RecommendRequest()
        ends = served.ends
        if asked.trip is not None:
            ends = service.node(_spoken(asked.trip.origin)), service.node(_spoken(asked.trip.destination))
        traveller = service.traveller(asked.traveller, asked.conditions)
        made, path = await service.recommend(ends, traveller, asked.request_id)
        head = {"decision_id": service.name(made.number), "expected_time_s": round(made.decision.expected_s, 3)}
        # A route is the same each time and long, so its text is kept.
        content = b'%s,"route":%s}' % (json.dumps(head).encode()[:-1], route(made.decision.action, path))
        return Response(content, media_type="application/json")

    @app.post("/observe", operation_id="observe", response_model=Noted, responses=problems)
    async def observe(seen: ObserveTotal | ObserveEdges) -> Response:
        """Tell how long a recommended trip took; late and in any order."""
        total = isinstance(seen, ObserveTotal)
        seconds = np.array([seen.travel_time_s] if isinstance(seen, ObserveTotal) else seen.edge_times_s)
        repeated = await service.observe(seen.decision_id, seconds, total=total, request=seen.request_id)
        return JSONResponse({"decision_id": seen.decision_id, "repeated": repeated})

    @app.get("/loads", operation_id="loads", response_model=Loads, responses=_only(400, 431))
    async def loads() -> Response:
        """Return how often the recommendations of the window use each edge, those in use only."""
        used = [{"edge": edge, "count": count} for edge, count in service.desk.loads()]
        return JSONResponse({"window": served.window, "recommended": service.desk.recommended, "edges": used})

    @app.get("/state", operation_id="state", response_model=ServiceState, responses=_only(400, 431))
    async def state() -> Response:
        """Return what is served, and what has happened so far."""
        origin, destination = (spell(network, node) for node in served.ends)
        return JSONResponse(
            {
                "title": served.title,
                "learner": served.learner_label,
                "window": served.window,
                "recommended": service.desk.recommended,
                "observed": service.desk.observed,
                "pairs": len(service.desk.pairs),
                "most_pairs": service.most_pairs,
                "origin": origin,
                "destination": destination,
                "travellers": list(served.classes),
                "conditions": list(served.conditions),
            }
        )

    @app.get("/health", operation_id="health", response_model=Health, responses=_only(400, 431, 503))
    async def health() -> Response:
        """Tell whether requests can be acknowledged."""
        if service.journal.broken is not None:
            raise Refused(503, "the state cannot be written")
        return JSONResponse({"status": "ok"})


def _add_page(app: FastAPI, service: Service) -> None:
    network = service.served.network
    folder = files("routesim.serve") / "page"
    drawn = json.dumps(_drawing(network)).encode()
    # Leaflet comes as elements of a page; here they are files of their own, so that no script stands in the page.
    texts = {
        "page.js": ("text/javascript", (folder / "page.js").read_text(encoding="utf-8")),
        "page.css": ("text/css", (folder / "page.css").read_text(encoding="utf-8")),
        "leaflet.js": ("text/javascript", leaflet_script().removeprefix("<script>").removesuffix("</script>")),
        "leaflet.css": ("text/css", leaflet_style().removeprefix("<style>").removesuffix("</style>")),
    }
    page = (folder / "page.html").read_text(encoding="utf-8")

    @app.get("/", include_in_schema=False)
    async def home() -> Response:
        return HTMLResponse(page)

    @app.get("/page/roads.json", include_in_schema=False)
    async def roads() -> Response:
        return Response(drawn, media_type="application/json")

    @app.get("/page/{name}", include_in_schema=False)
    async def part(name: str) -> Response:
        if name not in texts:
            raise Refused(404, "there is no such file")
        kind, text = texts[name]
        return Response(text, media_type=kind)


def _only(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: _PROBLEMS[status] for status in statuses}


def _spoken(place: Place) -> Any:
    return (place.lon, place.lat) if isinstance(place, Point) else place


def spell(network: RoadNetwork, node: int) -> int | str:
    """Return the label of a node as JSON can say it."""
    label = network.labels[node]
    return label if isinstance(label, int | str) else str(label)


def _route(network: RoadNetwork, number: int, path: tuple[int, ...]) -> dict[str, Any]:
    nodes = [int(network.tails[path[0]]), *network.heads[list(path)].tolist()]
    points: list[list[float]] = []
    for edge in path:
        line = _rounded(network.shape(edge))
        points += line[1:] if points[-1:] == line[:1] else line
    return {
        "number": number,
        "nodes": [spell(network, node) for node in nodes],
        "edges": list(path),
        "free_flow_s": round(float(network.free_flow_s[list(path)].sum()), 3),
        "line": {"type": "LineString", "coordinates": points},
    }


def _drawing(network: RoadNetwork) -> dict[str, Any]:
    """Return what the page draws: lines by edge, and the nodes that can be clicked."""
    known = np.flatnonzero(~np.isnan(network.x)).tolist()
    return {
        "geographic": network.is_geographic,
        "attribution": network.attribution,
        "lines": [_rounded(network.shape(edge)) for edge in range(network.n_edges)],
        "nodes": [
            [spell(network, node), *_rounded(np.array([[network.x[node], network.y[node]]]))[0]] for node in known
        ],
    }


def _rounded(line: NDArray[np.float64]) -> list[list[float]]:
    points: list[list[float]] = np.round(line, _DIGITS).tolist()
    return points
