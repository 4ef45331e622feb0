"""The errors a user can cause.

RoutesimError
├── InputError          a value that breaks a stated rule (also a ValueError)
│   └── TooManyStatesError   a plan over more joint histories than fit in memory
├── NetworkError        a road network or a file of one that cannot be used
│   └── NoPathError     no way from the origin to the destination
├── RouteError          a router's answer that cannot be driven
├── ResultsError        a results folder that cannot be written or read
├── SimulatorError      another simulator that drives the traffic failed, or its process is gone
├── LostWorkerError     a process or machine that was working on a run is gone
└── ScenarioError       a mistake in a scenario file or its name

FewerPathsWarning       fewer paths exist than were asked for (a UserWarning)
NotConvergedWarning     an assignment stopped before its relative gap was reached (a UserWarning)
IncompleteSignalsWarning   signals whose programme a file does not say in full (a UserWarning)
LeftOutWarning          a part of a network that a format has no place for was left out (a UserWarning)
ImplausibleDemandWarning   a demand far above what real places have, mostly for a wrong unit (a UserWarning)
FarFromRoadsWarning     places of a demand that lie far from any road (a UserWarning)
ImplausibleSpeedsWarning   a file of roads whose speeds cannot be true, mostly for a wrong unit (a UserWarning)
LongPlanWarning         a plan that may take minutes is about to be made (a UserWarning)
NotFittedWarning        a fit that is no better than what was there was not taken (a UserWarning)
NotKeptWarning          compiled code cannot be kept on this machine, so every start compiles anew (a UserWarning)
"""


class RoutesimError(Exception):
    """The base of every error that a user of routesim can cause."""


class InputError(RoutesimError, ValueError):
    """A value breaks a stated rule; the message names the rule, the value and the fix."""


class TooManyStatesError(InputError):
    """A plan was asked for over more joint histories than fit in memory."""


class NetworkError(RoutesimError, ValueError):
    """A road network, or a file of one, cannot be used; the message says what is wrong and where."""


class NoPathError(NetworkError):
    """No path leads from the origin to the destination."""


class RouteError(RoutesimError, ValueError):
    """A router gave a vehicle a path that it cannot drive; the message names the vehicle."""


class ResultsError(RoutesimError):
    """A results folder cannot be written or read."""


class SimulatorError(RoutesimError):
    """Another simulator that drives the traffic, such as SUMO, failed or its process is gone."""


class LostWorkerError(RoutesimError):
    """A process or a machine that was working on a run is gone; what it had finished is kept."""


class ScenarioError(RoutesimError, ValueError):
    """A scenario does not exist or breaks a rule; the message names the file, the key and the fix."""


class FewerPathsWarning(UserWarning):
    """Fewer paths exist, within the limits given, than were asked for."""


class NotConvergedWarning(UserWarning):
    """An assignment used up its iterations before it reached the relative gap that was asked for."""


class IncompleteSignalsWarning(UserWarning):
    """A file has programmes of signals, but not those of all of them in full; the others have the default one."""


class LeftOutWarning(UserWarning):
    """A network was written in a format that has no place for some part of it; the message counts what is missing."""


class ImplausibleSpeedsWarning(UserWarning):
    """A file of roads has free-flow speeds that cannot be true; mostly its units are others than assumed."""


class ImplausibleDemandWarning(UserWarning):
    """A demand is far above what real places have; mostly its unit or its hours are others than assumed."""


class FarFromRoadsWarning(UserWarning):
    """Places of a demand lie far from the nodes that stand for them; the message counts them and names the worst."""


class LongPlanWarning(UserWarning):
    """A plan that may take minutes is about to be made; the message says how long, and what to do instead."""


class CapacityWarning(UserWarning):
    """A model of traffic was used beyond what it can say."""


class NotFittedWarning(UserWarning):
    """A fit is no better than what was there, where it was tried on what it was not fitted to, and is not taken."""


class NotKeptWarning(UserWarning):
    """There is no place to keep compiled code, so every process compiles anew."""
