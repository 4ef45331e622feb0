"""The service itself: requests in, checked against the journal, decided at the desk, acknowledged once on the disk."""

import asyncio
import logging
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routesim.checks import whole
from routesim.errors import InputError, NetworkError, ResultsError, RoutesimError
from routesim.serve.desk import Decision, Desk, Ends, Pair, path_of
from routesim.serve.journal import Journal
from routesim.serve.ledger import Snapshot, damaged
from routesim.serve.rows import Bounds, Evicted, Observed, Recommended
from routesim.serve.served import Served

_LOG = logging.getLogger("routesim.serve")
_KEPT = 20_000  # recent decisions in memory, so that most observations need no look at the disk
SNAPSHOT_ROWS = 50_000
KEEP_ROWS = 1_000_000
_SEARCHES = 16  # for the routes of new pairs at the same time
_GONE = 256  # evicted pairs in memory while a journal is read
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

    def __init__(
        self,
        served: Served,
        folder: Path,
        *,
        most_pairs: int = 64,
        snapshot_rows: int = SNAPSHOT_ROWS,
        keep_rows: int = KEEP_ROWS,
    ):
        self.served, self.most_pairs = served, whole("the number of pairs", most_pairs, least=1)
        self._snapshot_rows = whole("snapshot_rows", snapshot_rows, least=1)
        self._keep_rows = whole("keep_rows", keep_rows, least=1)
        bounds = Bounds(served.network.n_nodes, served.window)
        self.journal = Journal(folder, {"scenario or learner": served.fingerprint}, bounds)
        try:
            self.desk = self._reopened()
            self._check_routes()
            for number, problem in self.journal.useless:
                _LOG.warning("the snapshot of row %d is of no use (%s); it is removed", number, problem)
            self.journal.open_for_writing()
        except BaseException:
            self.journal.release()
            raise
        self._recent: OrderedDict[int, Recommended] = OrderedDict()
        # Rows on their way to the disk, which no look at the journal finds yet: by request, and by decision.
        self._made: dict[str, tuple[Recommended, asyncio.Future[None]]] = {}
        self._seen: dict[int, tuple[Observed, asyncio.Future[None]]] = {}
        self._brought: set[str] = set()
        self._meeting: dict[Ends, asyncio.Task[Pair]] = {}

    # ---- opening -------------------------------------------------------------------------------------

    def _reopened(self) -> Desk:
        """Return the desk as it stood: the last snapshot, and the rows after it once more."""
        self._kept_at, desk = self._from_snapshot()
        made: dict[int, Decision] = {}
        gone: dict[Ends, Pair] = {}
        strayed = 0
        # Rows of a rescued journal may be about what is lost: pairs and decisions from before the empty desk.
        rescued = 0 < self.journal.start == self._kept_at
        for row in self.journal.story(after=self._kept_at):
            try:
                if isinstance(row, Recommended):
                    strayed += self._repeated(desk, row)
                    made[row.number] = row.decision
                elif isinstance(row, Evicted):
                    if row.ends in desk.pairs or not rescued:
                        desk.evict(row.ends)
                elif row.decision > self.journal.base or not rescued:
                    self._observed_again(desk, row, made.pop(row.decision, None), gone)
            except RoutesimError as problem:
                raise damaged(self.journal.folder, f"row {row.number}", str(problem)) from None
        if strayed:
            _LOG.warning("%d recommendations would be others today; those given hold", strayed)
        self._next = self.journal.last + 1
        return desk

    def _from_snapshot(self) -> tuple[int, Desk]:
        """Return the newest snapshot that can be taken up, or an empty desk where the journal goes back to that."""
        self.horizon = self.journal.base
        for snapshot in self.journal.snapshots:
            try:
                desk = Desk(self.served)
                desk.restore(self.journal.state(snapshot))
            except RoutesimError as problem:
                self.journal.useless.append((snapshot.number, str(problem)))
            else:
                self.horizon = max(snapshot.horizon, self.horizon)
                return snapshot.number, desk
        if self.journal.base > self.journal.start:
            number, why = self.journal.useless[0]
            what = f"{why}, and rows up to {self.journal.base} are pruned"
            raise damaged(self.journal.folder, f"table snapshots, row {number}", what)
        desk = Desk(self.served)
        desk.add(Pair.meet(self.served, self.served.ends))
        return self.journal.base, desk

    def _repeated(self, desk: Desk, row: Recommended) -> bool:
        ends = row.decision.ends
        if ends not in desk.pairs:
            desk.add(Pair.meet(self.served, ends))
        return desk.tell(row.decision)

    def _observed_again(self, desk: Desk, row: Observed, decision: Decision | None, gone: dict[Ends, Pair]) -> None:
        if decision is None:
            earlier = self.journal.decision(row.decision)
            if earlier is None:
                raise ResultsError(f"it observes decision {row.decision}, which is not there")
            decision = earlier.decision
        if decision.ends not in desk.pairs and decision.ends not in gone:
            if len(gone) >= _GONE:
                gone.clear()
            gone[decision.ends] = Pair.meet(self.served, decision.ends)
        pair = desk.pairs.get(decision.ends) or gone[decision.ends]
        path_of(pair, decision)
        desk.observe(decision, row.seconds, total=row.total, pair=pair)

    def _check_routes(self) -> None:
        """Refuse a journal whose routes are not those that the pairs have."""
        for origin, destination, action, edges in self.journal.routes:
            pair = self.desk.pairs.get((origin, destination))
            if pair is not None and not (action < len(pair.paths) and len(pair.paths[action]) == edges):
                what = f"route {action} of {edges} edges is not among those from node {origin} to node {destination}"
                raise damaged(self.journal.folder, "table decisions", what)

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

    async def recommend(
        self, ends: Ends, traveller: tuple[str, ...], request: str | None
    ) -> tuple[Recommended, tuple[int, ...]]:
        """Return a route and put it on the roads, or what the same request was answered before; and its edges."""
        self._check_journal()
        if self.most_pairs == 1 and ends != self.served.ends:
            raise Refused(429, "this service keeps one origin-destination pair, that of its scenario")
        pair = self.desk.pairs.get(ends) or await self._meet(ends)
        self._check_journal()
        made, saving = self._decision_of(request)
        if made is None:
            self._take_in(pair)
            made = Recommended(self._number(), request, self.desk.recommend(ends, traveller))
            saving = self.journal.append(made)
            self._remember(made, saving)
            self._maybe_snapshot()
        elif (made.decision.ends, made.decision.traveller) != (ends, traveller):
            raise Refused(409, f"request {request!r} asked for something else before; give every request its own id")
        await self._saved(saving)
        return made, path_of(pair, made.decision)

    async def _meet(self, ends: Ends) -> Pair:
        """Find the routes of a new pair beside the event loop; those who ask meanwhile wait for the same search."""
        if ends not in self._meeting:
            if len(self._meeting) >= _SEARCHES:
                raise Refused(429, f"the routes of {_SEARCHES} new pairs are being looked for; ask again in a moment")
            self._meeting[ends] = asyncio.get_running_loop().create_task(self._find(ends))
        try:
            # Whoever stops waiting must not stop the search for the others.
            return await asyncio.shield(self._meeting[ends])
        except (NetworkError, InputError) as problem:
            raise Refused(404, str(problem)) from None

    async def _find(self, ends: Ends) -> Pair:
        try:
            return await asyncio.to_thread(Pair.meet, self.served, ends)
        finally:
            del self._meeting[ends]

    def _take_in(self, pair: Pair) -> None:
        """Give a pair a place at the desk, and write down which others made room for it."""
        if pair.ends in self.desk.pairs:
            return
        while len(self.desk.pairs) >= self.most_pairs and (least := self.desk.least_used()) is not None:
            self.desk.evict(least)
            self.journal.append(Evicted(self._number(), least))
        self.desk.add(pair)

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
        pair = self.desk.pairs.get(made.decision.ends)
        if pair is None:
            pair = await self._meet(made.decision.ends)
            self._check_journal()
            made = self._decision(decision_id)  # it may have become too old meanwhile
        edges = len(path_of(pair, made.decision))
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
        self.desk.observe(made.decision, seconds, total=total, pair=pair)
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
        if token == self.journal.token and 0 < number <= self.horizon:
            raise Refused(404, f"decision {decision_id!r} is too old; the last {self._keep_rows:,} rows are kept")
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
        # From now on older decisions cannot be observed, so that no row after this snapshot needs them.
        self.horizon = max(self.horizon, number - self._keep_rows)
        return self.journal.keep(Snapshot(number, self.horizon), self.desk.state())

    async def close(self) -> None:
        """Write a last snapshot and let go of the state folder."""
        await self._saved(self.snapshot())
        await self.journal.close()
