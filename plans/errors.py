"""The exceptions a user of Surestep can meet.

Every message says what was expected, what came, and what to do. `exit_code` is what the command line ends with.

SurestepError                        1
├── ConfigurationError               2   something around the run is not set up
│   ├── NameClash                        the user's project has a package named like one of ours
│   ├── ToolkitNotLoadable               a `module:attr` that does not give a toolkit
│   ├── ModelNotConfigured               the goal needs a model and none is set
│   ├── DatabaseUnavailable              PostgreSQL cannot be reached or refuses us
│   ├── ServerUnavailable                the server that a run goes on by cannot be reached or refuses us
│   └── StorageUnavailable               a folder or bucket cannot be written or read
├── UsageError                       2   what was asked for makes no sense as it stands
│   ├── InvalidInput                     a goal, input, file or option
│   ├── PlanRejected                     a given plan has faults (all of them are carried)
│   ├── UnknownThread
│   ├── UnknownTool
│   ├── NotPermitted                     who asks has not the role for it
│   ├── ApprovalConflict                 a decision that is not taken; it has changed nothing
│   │   ├── UnknownApproval              nothing was asked under this id, or nothing that this person can see
│   │   ├── ForeignDecision              asked on another thread, or of people with other roles
│   │   ├── MalformedDecision            no answer to this question, or arguments that the tool does not take
│   │   ├── StaleDecision                about other arguments than those that wait, or a question taken back
│   │   ├── LateDecision                 nobody answered in time, and that was a no
│   │   ├── DoubleDecision               the same was decided before
│   │   └── ConflictingDecision          something else was decided before
│   └── ThreadBusy                   6   the thread has another run, and that is on its way
├── NotAuthenticated                 2   a token that is missing, wrong or over
├── RunBusy                          6   another worker drives this run
├── StaleOwner                       6   this worker was replaced while it was away
├── ArtifactMissing                  1   a stored result is gone or has another hash
├── Unreadable                       1   what is stored is not what Surestep has written
├── PromotionRefused                 1   a candidate has not agreed often enough with the tool it is to replace
└── VersionTooNew                    2   stored by a newer Surestep than this one
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from plans.faults import Fault


class SurestepError(Exception):
    """Anything Surestep refuses or cannot do; the text is meant for the person who reads it."""

    exit_code: ClassVar[int] = 1


class ConfigurationError(SurestepError):
    """Something around the run is not set up."""

    exit_code = 2


class NameClash(ConfigurationError):
    """The user's project holds a package named like one of ours."""


class ToolkitNotLoadable(ConfigurationError):
    """A `module:attr` reference that does not give a toolkit."""


class ModelNotConfigured(ConfigurationError):
    """The goal needs a model and none is set."""


class DatabaseUnavailable(ConfigurationError):
    """PostgreSQL cannot be reached, or refuses us."""


class ServerUnavailable(ConfigurationError):
    """The server that a run goes on by cannot be reached, or refuses us."""


class StorageUnavailable(ConfigurationError):
    """A folder or bucket cannot be written or read."""


class UsageError(SurestepError):
    """What was asked for makes no sense as it stands."""

    exit_code = 2


class InvalidInput(UsageError):
    """A goal, input, file or option that cannot be used."""


class PlanRejected(UsageError):
    """A given plan has faults; `faults` carries all of them."""

    def __init__(self, message: str, faults: Sequence[Fault] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults)


class UnknownThread(UsageError):
    """No run was ever started on this thread."""


class UnknownTool(UsageError):
    """No registered tool has this name."""


class NotPermitted(UsageError):
    """Who asks has not the role, or is not the one, for what was asked."""


class NotAuthenticated(SurestepError):
    """A token that is missing, wrong or over; the message is for whoever has sent it."""

    exit_code = 2


class ApprovalConflict(UsageError):
    """A decision that is not taken, and has changed nothing. `code` says why in one word, for programs."""

    code: ClassVar[str] = "CONFLICT"


class UnknownApproval(ApprovalConflict):
    """Nothing was asked under this id, or nothing that this person can see."""

    code = "UNKNOWN_APPROVAL"


class ForeignDecision(ApprovalConflict):
    """What was asked on another thread, or of people with other roles."""

    code = "FOREIGN_DECISION"


class MalformedDecision(ApprovalConflict):
    """No answer to this question, or with arguments that the tool does not take."""

    code = "MALFORMED_DECISION"


class StaleDecision(ApprovalConflict):
    """About other arguments than those that wait, or about a question that was taken back."""

    code = "STALE_DECISION"


class LateDecision(ApprovalConflict):
    """Nobody had answered in time, and that was a no."""

    code = "LATE_DECISION"


class DoubleDecision(ApprovalConflict):
    """The same was decided before; it is not counted twice."""

    code = "DOUBLE_DECISION"


class ConflictingDecision(ApprovalConflict):
    """Something else was decided before; the first decision holds."""

    code = "CONFLICTING_DECISION"


class ThreadBusy(UsageError):
    """A thread pursues one goal at a time, and its run is on its way."""

    exit_code = 6


class RunBusy(SurestepError):
    """Another worker drives this run."""

    exit_code = 6


class StaleOwner(SurestepError):
    """This worker lost the run to another one while it was away."""

    exit_code = 6


class ArtifactMissing(SurestepError):
    """A stored result is gone, or its bytes have another hash."""


class Unreadable(SurestepError):
    """What is stored is not what Surestep has written: it was cut, or changed by somebody else."""


class PromotionRefused(SurestepError):
    """A candidate has not agreed often enough, in a row, with the tool that it is to replace."""


class VersionTooNew(SurestepError):
    """Stored by a newer Surestep than this one."""

    exit_code = 2
