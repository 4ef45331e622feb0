"""Prices that look back: a closer bound for path sets, where a use is priced by the edge's uses just before it.

With one price an edge, edges do not know of each other, and each puts its uses where they suit it best. With a price
for every pattern of uses in the last `memory` rounds they have to agree on these patterns, because one sequence of
actions pays the prices of all. The longer the memory, the closer the bound can be: without memory it is that of
`prices`, and with a memory of the whole window it is exact. Uses alone need prices: how often an edge is left unused
after a pattern follows from its uses, since every pattern is entered as often as it is left.

The last `memory` actions out of K are a base-K integer, as in the exact planner; with one more action they are an arc.
"""

from math import fsum, ulp

import numpy as np
from scipy.sparse import coo_array

from routesim.arrays import Floats, Ints, Ints32
from routesim.kernels import kernel
from routesim.planning.edgewise.choices import PathSet
from routesim.planning.edgewise.sharing import solve_programme
from routesim.planning.edgewise.single_edge import UseHistories, best_averages, plain_window
from routesim.planning.exact.planner import best_arcs

_MAX_WINDOW = 10
_MAX_MEMORY = 4
_MAX_ARCS = 33_000  # of the graph of recent actions: eight actions and a memory of four rounds, or thirteen and three
_MAX_PAIRS = 1_000  # arcs with a memory of one round, which all enter the first programme
_MAX_PRICES = 600
_MAX_ROUNDS = 30  # for each length of memory
_NEW_ARCS = 50  # a round
_CLOSE = 0.05  # what is left to gain with a memory, as a share of all there is, when a longer one is tried


def certified_recent_bound(paths: PathSet, rewards: Floats, window: int, prices: Floats) -> float:
    """Return an upper bound on the long-run average reward of every policy; any prices give one.

    `prices[e, p]` is paid for a use of edge e whose uses in the last rounds were p, the newest the lowest bit.
    Write each reward as price + (reward - price). No sequence of actions collects more than the best cycle in
    the graph of recent actions, and no edge's use history keeps more than its own best average of reward - price.
    """
    collected, _, _ = _most_collected(paths, prices)
    kept, _ = _most_kept(rewards, prices, recent_window(window, prices.shape[1]))
    total = fsum([collected, *kept])
    return total + ulp(total)


def _most_collected(paths: PathSet, prices: Floats) -> tuple[float, Floats, Ints]:
    """Return an upper bound on the average prices of any sequence of actions, what each arc loses, the best cycle.

    Values of histories cancel around a cycle, so none averages more than the largest
    `collected + value[next] - value[history]`, whatever the values are.
    """
    arcs = arc_prices(paths.indptr, paths.indices, prices)
    values, cycle = best_arcs(arcs, arcs.argmax(axis=1).astype(np.int32))
    after = np.arange(arcs.size).reshape(arcs.shape) % values.size
    gains = arcs + values[after] - values[:, None]
    largest = float(gains.max())
    size = paths.best(np.abs(prices).max(axis=1), 0)[0] + 2 * float(np.abs(values).max())
    roundings = int(np.diff(paths.indptr).max()) + 2
    return largest + roundings * float(np.finfo(np.float64).eps) * size, largest - gains, cycle


def _most_kept(rewards: Floats, prices: Floats, window: UseHistories) -> tuple[Floats, Floats]:
    """Return for each edge an upper bound on its average of reward - price, and the best use pattern."""
    kept = rewards[:, None, :] - prices[:, :, None]
    return best_averages(kept.reshape(len(rewards), -1), np.zeros(len(rewards)), window)


def recent_window(length: int, n_recent: int) -> UseHistories:
    """Every history of `length` rounds, labelled by its newest rounds (`n_recent` patterns) and its count."""
    plain = plain_window(length)
    newest = np.arange(plain.labels.size) % n_recent
    return UseHistories(length, newest * (length + 1) + plain.labels, is_plain=False)


@kernel
def arc_prices(indptr: Ints, indices: Ints32, prices: Floats) -> Floats:
    """Return what each action collects after each sequence of recent actions, shape (K ** memory, K)."""
    n_actions = indptr.size - 1
    memory = 0
    while 1 << memory < prices.shape[1]:
        memory += 1
    arcs = np.zeros((n_actions**memory, n_actions))
    recent = np.zeros(prices.shape[0], np.int64)
    for state in range(arcs.shape[0]):
        recent[:] = 0
        rest = state
        for back in range(memory):
            action = rest % n_actions
            rest //= n_actions
            for slot in range(indptr[action], indptr[action + 1]):
                recent[indices[slot]] |= 1 << back
        for action in range(n_actions):
            for slot in range(indptr[action], indptr[action + 1]):
                arcs[state, action] += prices[indices[slot], recent[indices[slot]]]
    return arcs


def longest_memory(n_actions: int, n_edges: int, window: int) -> int:
    """Return how many rounds prices can look back without taking too long, 0 where even one is too many."""
    if window > _MAX_WINDOW or n_actions**2 > _MAX_PAIRS:
        return 0
    memory = min(window, _MAX_MEMORY)
    while memory > 0 and (n_actions ** (memory + 1) > _MAX_ARCS or n_edges << memory > _MAX_PRICES):
        memory -= 1
    return memory


def find_recent_prices(
    paths: PathSet, rewards: Floats, window: int, prices: Floats, cycle: Ints, enough: float
) -> Floats | None:
    """Lower the bound of one price an edge, with longer and longer memories, until it is `enough`.

    `cycle` is a good sequence of actions, which bounds what there is to gain. None where it would take too long.
    """
    longest = longest_memory(paths.n_actions, paths.n_edges, window)
    if longest == 0:
        return None
    search = _Search(paths, rewards, window, longest, cycle)
    best = prices[:, None]
    for memory in range(1, longest + 1):
        search.remember(memory)
        best, bound = search.improve(np.tile(best, (1, 2)), enough)
        if bound <= enough:
            break
    return best


class _Search:
    """A linear programme over arcs and over the use patterns of each edge, both added where prices ask for them.

    Its rows say that the arcs use each edge after each recent pattern as often as the edge's own use patterns do;
    their duals are the prices. While columns are few, duals are wild, so they are kept within a box around the best
    prices so far.
    """

    def __init__(self, paths: PathSet, rewards: Floats, window: int, longest: int, cycle: Ints) -> None:
        self._paths = paths
        self._rewards = rewards
        self._window = recent_window(window, 1 << longest)
        self._cycle = cycle
        self._uses = np.zeros((paths.n_actions, paths.n_edges), np.int64)
        self._uses[np.repeat(np.arange(paths.n_actions), np.diff(paths.indptr)), paths.indices] = 1
        self._memory = 0
        self._arcs = self._busy_arcs = np.arange(paths.n_actions, dtype=np.int64)
        self._known: set[tuple[int, bytes]] = set()
        self._edge_of: list[int] = []
        self._patterns: list[Floats] = []
        played = self._patterns_of(cycle)
        self._value = float((played.reshape(paths.n_edges, -1, window + 1).sum(axis=1) * rewards).sum())
        self._add(np.zeros_like(played))
        self._add(played)

    def remember(self, memory: int) -> None:
        """Go on to a longer memory: follow each arc that is in use by each that can come next."""
        n_actions = self._paths.n_actions
        busy = self._busy_arcs
        follows = busy[:, None] % n_actions ** (memory - 1) == busy[None, :] // n_actions
        longer = (busy[:, None] * n_actions + busy[None, :] % n_actions)[follows]
        rounds = np.arange(self._cycle.size)[:, None] + np.arange(memory + 1)
        played = self._cycle[rounds % self._cycle.size] @ n_actions ** np.arange(memory, -1, -1)
        self._memory = memory
        self._arcs = np.union1d(longer, played)

    def improve(self, prices: Floats, enough: float) -> tuple[Floats, float]:
        """Return better prices of the same memory, and their bound."""
        best, bound = prices, self._try(prices)
        size = np.maximum(np.abs(prices).max(axis=1), np.abs(self._rewards[:, 0]))[:, None]
        box = 0.5
        for _ in range(_MAX_ROUNDS):
            solution = self._solve(best - box * size, best + box * size)
            if solution is None:
                break
            believed, trial, outside = solution
            reached = self._try(trial)
            hoped, gained = bound - believed, bound - reached
            if gained > 0:
                best, bound = trial, reached
            settled = hoped <= _CLOSE * (bound - self._value)
            if bound <= enough or (settled and outside < 1e-9):
                break
            if settled:
                box *= 3.0
            elif gained > 0.3 * hoped:
                box *= 2.0
            elif gained < -0.5 * hoped:
                box *= 0.6
        return best, bound

    def _try(self, prices: Floats) -> float:
        """Return the bound of prices; keep the arcs and use patterns that are best at them."""
        collected, losses, cycle = _most_collected(self._paths, prices)
        self._arcs = np.union1d(self._arcs, _arcs_near(losses, cycle))
        n_patterns = self._window.n_labels // self._rewards.shape[1]
        kept, patterns = _most_kept(self._rewards, np.tile(prices, (1, n_patterns // prices.shape[1])), self._window)
        self._add(patterns)
        return fsum([collected, *kept])

    def _add(self, patterns: Floats) -> None:
        """Keep a use pattern of each edge, where it is new."""
        for edge, pattern in enumerate(patterns):
            key = edge, pattern.round(9).tobytes()
            if key not in self._known:
                self._known.add(key)
                self._edge_of.append(edge)
                self._patterns.append(pattern)

    def _patterns_of(self, cycle: Ints) -> Floats:
        """Return the use pattern of each edge in a cycle of actions."""
        window = self._window
        edges = np.arange(self._paths.n_edges)
        patterns = np.zeros((edges.size, window.n_labels))
        history = np.zeros(edges.size, np.int64)
        lead = -(-window.length // cycle.size) * cycle.size
        for now in range(lead + cycle.size):
            used = self._uses[cycle[now % cycle.size]]
            if now >= lead:
                patterns[edges, window.labels[history]] += used / cycle.size
            history = (history << 1 | used) % window.labels.size
        return patterns

    def _solve(self, low: Floats, high: Floats) -> tuple[float, Floats, float] | None:
        """Return the value of the programme, its prices in the box, and how much the box costs; None on failure."""
        n_edges, n_recent = low.shape
        n_actions = self._paths.n_actions
        arcs, edge_of = self._arcs, np.array(self._edge_of)
        patterns = np.array(self._patterns).reshape(edge_of.size, -1, n_recent, self._rewards.shape[1])
        use = patterns.sum(axis=(1, 3))
        earned = (patterns.sum(axis=(1, 2)) * self._rewards[edge_of]).sum(axis=1)
        arc, arc_edge = np.nonzero(self._uses[arcs % n_actions])
        recent = np.zeros(arc.size, np.int64)
        for back in range(self._memory):
            action = arcs[arc] // n_actions ** (back + 1) % n_actions
            recent |= self._uses[action, arc_edge] << back
        ends = np.concatenate([arcs // n_actions, arcs % n_actions**self._memory])
        nodes, place = np.unique(ends, return_inverse=True)
        pattern, pattern_recent = np.nonzero(use)
        # Rows: a use after a pattern; histories, left as often as entered; edges, with one pattern at a time; rounds.
        node_row = low.size
        edge_row = node_row + nodes.size
        last_row = edge_row + n_edges
        # Columns: arcs; use patterns; what is used more, and less, by the arcs than by the edges, at the box's prices.
        first_pattern = arcs.size
        first_more = first_pattern + edge_of.size
        n_columns = first_more + 2 * low.size
        all_arcs, all_prices = np.arange(arcs.size), np.arange(low.size)
        blocks: list[tuple[Ints, Ints, Floats | float]] = [
            (arc_edge * n_recent + recent, arc, 1.0),
            (edge_of[pattern] * n_recent + pattern_recent, first_pattern + pattern, -use[pattern, pattern_recent]),
            (all_prices, first_more + all_prices, 1.0),
            (all_prices, first_more + low.size + all_prices, -1.0),
            (node_row + place[: arcs.size], all_arcs, 1.0),
            (node_row + place[arcs.size :], all_arcs, -1.0),
            (edge_row + edge_of, first_pattern + np.arange(edge_of.size), 1.0),
            (np.full(arcs.size, last_row), all_arcs, 1.0),
        ]
        rows, columns = (np.concatenate([block[side] for block in blocks]) for side in (0, 1))
        entries = np.concatenate([np.broadcast_to(block[2], block[0].shape) for block in blocks])
        result = solve_programme(
            np.concatenate([np.zeros(arcs.size), -earned, high.ravel(), -low.ravel()]),
            coo_array((entries, (rows, columns)), shape=(last_row + 1, n_columns)),
            (np.arange(last_row + 1) >= edge_row).astype(np.float64),
            np.full(n_columns, np.inf),
            by_interior_point=True,
        )
        if result is None:
            return None
        cost, solution, duals = result
        self._busy_arcs = arcs[solution[: arcs.size] > 1e-9]
        return -cost, duals[: low.size].reshape(low.shape), float(solution[first_more:].sum())


def _arcs_near(losses: Floats, cycle: Ints) -> Ints:
    """Return the arcs of the best cycle, and those on the ways from it and back to it that lose the least."""
    n_states, n_actions = losses.shape
    lost = np.full(n_states, np.inf)
    lost[cycle // n_actions] = 0.0
    for _ in range(8):  # longer ways than this are seldom among the best
        lost = np.minimum(lost, (lost[:, None] + losses).reshape(n_actions, -1).min(axis=0))
    through = (lost[:, None] + losses).ravel()
    few = min(_NEW_ARCS, through.size)
    return np.union1d(cycle, np.argsort(through, kind="stable")[:few])
