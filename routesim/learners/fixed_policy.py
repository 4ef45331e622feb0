"""FixedPolicy: what learners that decide on a policy at the start, and keep it, have in common."""

from routesim.learners.base import Epoch
from routesim.planning.base import Policy
from routesim.planning.cycles import CyclePolicy
from routesim.planning.exact.planner import TablePolicy
from routesim.rounds.environment import Feedback, Observation, Tally, Task
from routesim.rounds.numbering import Action


class FixedPolicy:
    """A policy decided at the start and kept for ever."""

    def choose(self, observation: Observation) -> Action:
        """Return the action of the policy."""
        pair = (observation.pair,) if self._several else ()
        action: Action = self._policy(observation.history, *pair)
        return action

    def update(self, feedback: Feedback) -> None:
        """Learn nothing."""

    def epoch(self, now: int) -> Epoch | None:  # noqa: ARG002 - the one epoch never ends
        """Return the policy, with a tally that is never full."""
        policy = self._policy
        return Epoch(policy, self._tally) if isinstance(policy, TablePolicy | CyclePolicy) else None

    def _keep(self, policy: Policy, task: Task) -> None:
        self._policy = policy
        self._several = len(task.actions.rates) > 1
        self._tally = Tally.empty(task.actions.n_edges, task.window)
