"""The service itself: requests in, checked against the journal, decided at the desk, acknowledged once on the disk."""

import asyncio
import logging
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routesim.checks import whole
from routesim.errors import InputError, NetworkError, ResultsError
from routesim.serve.desk import Decision, Desk, Ends, Pair
from routesim.serve.journal import Journal, Observed, Recommended
from routesim.serve.served import Served

_LOG = logging.getLogger("routesim.serve")
_KEPT = 20_000  # recent decisions in memory, so that most observations need no look at the disk
_SNAPSHOT_ROWS = 50_000
_TRIES = 50


class Refused(Exception):  # noqa: N818 - an answer, not a mistake of the service
    """A request that is answered with a status and a reason instead of a result."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


class Service:
    """One scenario served from one state folder.

    Everything runs on one event loop; only the search for routes of a new pair and the commits have threads. What
    changes the state happens without a pause between looking and writing down, so requests cannot mix.
    """

    def __init__(self, served: Served, folder: Path, *, most_pairs: int = 64, snapshot_rows: int = _SNAPSHOT_ROWS):
        self.served, self.most_pairs = served, whole("the number of pairs", most_pairs, least=1)
        self._snapshot_rows = whole("snapshot_rows", snapshot_rows, least=1)
        self.journal = Journal(folder, {"scenario or learner": served.fingerprint})
        self.desk = self._reopened()
        self._recent: OrderedDict[int, Recommended] = OrderedDict()
        # Rows on their way to the disk, which no look at the journal finds yet: by request, and by decision.
        self._made: dict[str, tuple[Recommended, asyncio.Future[None]]] = {}
        self._seen: dict[int, tuple[Observed, asyncio.Future[None]]] = {}
        self._brought: set[str] = set()
        self._meeting: dict[Ends, asyncio.Task[None]] = {}

    def _reopened(self) -> Desk:
        """Return the desk as it stood: the last snapshot, and the rows after it told again."""
        self._kept_at, desk = self._from_snapshot()
        told: dict[int, Decision] = {}
        strayed = 0
        for row in self.journal.story(after=self._kept_at):
            if isinstance(row, Recommended):
                ends = row.decision.ends
                if ends not in desk.pairs:
                    desk.add(Pair.meet(self.served, ends))
                strayed += desk.tell(row.decision)
                told[row.number] = row.decision
            else:
                decision = told.pop(row.decision, None)
                if decision is None:
                    earlier = self.journal.decision(row.decision)
                    if earlier is None:
                        raise ResultsError(f"the state does not fit: decision {row.decision} was observed, never made")
                    decision = earlier.decision
                desk.observe(decision, row.seconds, total=row.total)
        if strayed:
            _LOG.warning("%d recommendations would be others today; those given hold", strayed)
        self._next = self.journal.last() + 1
        if self.served.ends not in desk.pairs:
            desk.add(Pair.meet(self.served, self.served.ends))
        return desk

    def _from_snapshot(self) -> tuple[int, Desk]:
        try:
            found = self.journal.snapshot()
            if found is not None:
                desk = Desk(self.served)
                desk.restore(found[1])
                return found[0], desk
        except ResultsError as problem:
            # The journal has everything from the first request on, so a snapshot is never needed.
            _LOG.warning("the snapshot is of no use (%s), reading the whole journal", problem)
        return 0, Desk(self.served)

    def warm_up(self) -> None:
        """Compile the learner's loops on a desk that is thrown away, so that the first request need not wait."""
        trial, ends = Desk(self.served), self.served.ends
        trial.add(Pair.meet(self.served, ends))
        for _ in range(_TRIES):
            decision = trial.recommend(ends, self.traveller(None, []))
            trial.observe(decision, np.array([decision.expected_s]), total=True)

    # ---- recommend -----------------------------------------------------------------------------------

    def node(self, place: Any) -> int:
        """Return the index of the node that a label or (lon, lat) means."""
        network = self.served.network
        try:
            return network.node_index(network.nearest_node(*place) if isinstance(place, tuple) else place)
        except NetworkError as problem:
            raise Refused(404, str(problem)) from None

    def traveller(self, name: str | None, conditions: list[str]) -> tuple[str, ...]:
        """Return who travels as the scenario names it; nobody in particular where trips do not differ."""
        classes, known = self.served.classes, self.served.conditions
        for given, allowed in ((name, classes), *((one, known) for one in conditions)):
            if given is not None and given not in allowed:
                raise Refused(404, f"no travellers or conditions {given!r} here; there are {classes + known}")
        return ((name or classes[0]), *sorted(set(conditions))) if classes else ()

    async def recommend(self, ends: Ends, traveller: tuple[str, ...], request: str | None) -> Recommended:
        """Return a route and put it on the roads, or what the same request was told before."""
        self._check_journal()
        if ends not in self.desk.pairs:
            await self._meet(ends)
        made, saving = self._decision_of(request)
        if made is None:
            made = Recommended(self._number(), request, self.desk.recommend(ends, traveller))
            saving = self.journal.append(made)
            self._remember(made, saving)
            self._maybe_snapshot()
        elif (made.decision.ends, made.decision.traveller) != (ends, traveller):
            raise Refused(409, f"request {request!r} asked for something else before; give every request its own id")
        await self._saved(saving)
        return made

    async def _meet(self, ends: Ends) -> None:
        """Find the routes of a new pair beside the event loop; those who ask meanwhile wait for the same search."""
        if ends not in self._meeting:
            if len(self.desk.pairs) + len(self._meeting) >= self.most_pairs:
                raise Refused(429, f"this service keeps {self.most_pairs} pairs of ends, and all are taken")
            self._meeting[ends] = asyncio.get_running_loop().create_task(self._find(ends))
        try:
            # Whoever stops waiting must not stop the search for the others.
            await asyncio.shield(self._meeting[ends])
        except (NetworkError, InputError) as problem:
            raise Refused(404, str(problem)) from None

    async def _find(self, ends: Ends) -> None:
        try:
            self.desk.add(await asyncio.to_thread(Pair.meet, self.served, ends))
        finally:
            del self._meeting[ends]

    def _decision_of(self, request: str | None) -> "tuple[Recommended | None, asyncio.Future[None] | None]":
        if request is None:
            return None, None
        return self._made[request] if request in self._made else (self.journal.decision_of_request(request), None)

    def _remember(self, made: Recommended, saving: "asyncio.Future[None]") -> None:
        request = made.request
        if request is not None:
            # Whether or not anybody waits for the answer any more, the row counts until it can be looked up.
            self._made[request] = made, saving
            saving.add_done_callback(lambda _: self._made.pop(request))
        self._recent[made.number] = made
        while len(self._recent) > _KEPT:
            self._recent.popitem(last=False)

    # ---- observe -------------------------------------------------------------------------------------

    async def observe(
        self, decision_id: str, seconds: NDArray[np.float64], *, total: bool, request: str | None
    ) -> bool:
        """Learn from a trip; return whether it was known already."""
        self._check_journal()
        made = self._decision(decision_id)
        edges = len(self.desk.pairs[made.decision.ends].paths[made.decision.action])
        if not total and len(seconds) != edges:
            raise Refused(409, f"the route of {decision_id} has {edges} edges, got {len(seconds)} times")
        row = Observed(self._next, made.number, request, total, seconds)
        known, saving = self._observation_of(made.number)
        if known is not None:
            if not known.says_the_same(row):
                raise Refused(409, f"{decision_id} was observed before, with other times; a trip is observed once")
            await self._saved(saving)
            return True
        if request is not None and (request in self._brought or self.journal.observation_of_request(request)):
            raise Refused(409, f"request {request!r} brought another observation before; give every request its own id")
        self._number()
        self.desk.observe(made.decision, seconds, total=total)
        saving = self.journal.append(row)
        self._seen[made.number] = row, saving
        self._brought.add(request or "")
        saving.add_done_callback(lambda _: self._forget(row))
        self._maybe_snapshot()
        await self._saved(saving)
        return False

    def _forget(self, row: Observed) -> None:
        del self._seen[row.decision]
        self._brought.discard(row.request or "")

    def _decision(self, decision_id: str) -> Recommended:
        token, _, text = decision_id.partition("-")
        number = int(text)
        made = None
        if token == self.journal.token:
            made = self._recent.get(number) or self.journal.decision(number)
        if made is None:
            raise Refused(404, f"there is no decision {decision_id!r}")
        return made

    def _observation_of(self, decision: int) -> "tuple[Observed | None, asyncio.Future[None] | None]":
        return self._seen[decision] if decision in self._seen else (self.journal.observation_of(decision), None)

    # ---- the disk ------------------------------------------------------------------------------------

    def name(self, number: int) -> str:
        """Return the id of a decision as clients know it."""
        return f"{self.journal.token}-{number}"

    def _number(self) -> int:
        number, self._next = self._next, self._next + 1
        return number

    def _check_journal(self) -> None:
        if self.journal.broken is not None:
            raise Refused(503, "the state cannot be written; restart the service once the disk has room")

    async def _saved(self, saving: "asyncio.Future[None] | None") -> None:
        """Wait until a row is on the disk. One commit serves many requests, and none of them may cancel it."""
        if saving is not None:
            try:
                await asyncio.shield(saving)
            except ResultsError:
                self._check_journal()

    def _maybe_snapshot(self) -> None:
        if self._next - 1 - self._kept_at >= self._snapshot_rows:
            self.snapshot()

    def snapshot(self) -> "asyncio.Future[None] | None":
        """Write the state down, so that a restart need not be told everything again."""
        number = self._next - 1
        if not self.desk.resumable or number == self._kept_at or self.journal.broken is not None:
            return None
        self._kept_at = number
        return self.journal.keep(number, self.desk.state())

    async def close(self) -> None:
        """Write a last snapshot and let go of the state folder."""
        await self._saved(self.snapshot())
        await self.journal.close()
