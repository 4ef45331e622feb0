"""What planning edge by edge would cost, said before it starts: a warning where it takes long, a refusal beyond.

Estimates come from measurements on one core and are rough, within a factor of five: with a list of paths 10 edges and a
window of 4,000 took 22 s, 100 and 400 11 s, 200 and 1,000 474 s; on a whole graph 13,721 and 60 21 s, 13,721 and 200
115 s. Memory grows with the square of the window, on a whole graph also with the edges.
"""

import warnings

from routesim.errors import LongPlanWarning, TooManyStatesError

LONGEST_WINDOW = 5_000
"""The longest window that is planned edge by edge: its tables take some 2 GB."""

_LONG_S = 120.0
_HOPELESS_S = 3600.0
_ADVICE = (
    "use a shorter window or fewer actions, or a learner that does not plan, such as UCB1 or EpsilonGreedy, where "
    "no comparator is needed"
)


def check_effort(edges: int, window: int, *, whole_graph: bool = False) -> None:
    """Warn of a plan over `edges` (alike ones counted once) that would take minutes; refuse one that takes hours."""
    seconds = (2e-7 * edges if whole_graph else 1.5e-7 * edges**1.5) * window**2
    gigabytes = 75e-9 * window**2 + (450e-9 * edges * window if whole_graph else 0.0)
    if window > LONGEST_WINDOW:
        raise TooManyStatesError(
            f"window must be at most {LONGEST_WINDOW:,} for planning edge by edge, got {window:,}: a plan would take "
            f"about {_span(seconds)} and {gigabytes:,.0f} GB; {_ADVICE}"
        )
    _check_seconds(seconds, f"a plan over {edges:,} edges with a window of {window:,}")


def check_contextual_effort(groups: int, histories: int, sample: int, sweeps: int) -> None:
    """Do the same for one plan with contexts, over all use histories of each group of edges."""
    seconds = 1e-9 * groups * histories * sample * sweeps
    _check_seconds(seconds, f"a plan with contexts over {groups:,} groups of edges with {histories:,} histories each")


def _check_seconds(seconds: float, plan: str) -> None:
    if seconds > _HOPELESS_S:
        raise TooManyStatesError(f"{plan} would take about {_span(seconds)}, more than an hour; {_ADVICE}")
    if seconds > _LONG_S:
        warnings.warn(f"{plan} may take about {_span(seconds)}; {_ADVICE}", LongPlanWarning, stacklevel=3)


def _span(seconds: float) -> str:
    """Return a rough duration in words.

    >>> _span(300.0), _span(9e3), _span(1e6)
    ('5 minutes', '2.5 hours', '12 days')
    """
    if seconds < 3600:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours" if seconds < 172_800 else f"{seconds / 86_400:,.0f} days"
