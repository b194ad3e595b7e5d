"""What the nodes read and write: small frozen values that LangGraph checkpoints.

State is a cache of the journal. It holds what is needed to route and to read; results are artifacts, and only their
`output_ref` ever appears here. These types are named in checkpoints: they never change module.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from pydantic import BaseModel, ConfigDict, Field

from plans.decisions import ApprovalRequest
from plans.failure import Failure, VerdictName
from plans.faults import Fault
from plans.limits import Limits, Usage
from plans.plan import SCHEMA_VERSION, Plan, PlanDraft, Source

STATE_VERSION = 1

RunStatus = Literal["running", "paused", "done", "failed", "cancelled", "limited"]
ApproveMode = Literal["ask", "all", "none"]
"""Whether a run asks people, or takes it that they say yes, or no, to all."""
Review = Literal["none", "first", "every"]
"""Which plans a person looks at before anything of them runs: none, the first one, or every revision."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class InputFile(_Frozen):
    """A declared input file as it was when the run began: absolute path, size in bytes, hex SHA-256."""

    path: str
    size: int
    sha256: str


class Forked(_Frozen):
    """The run that a fork was made of, and the step from which it runs again. `folders` are where the runs before it
    have written their files, the nearest first."""

    run_id: str
    thread_id: str
    step_id: str
    folders: tuple[str, ...] = ()


class RunHead(_Frozen):
    """What a run is about. `inputs` are JSON values; a file input stands in `files` under its name instead.
    `started_by` names who has begun it, `role` is the one that it acts in, `tenant` whose it is. `untrusted` names
    inputs whose values a stranger may have written."""

    run_id: str
    thread_id: str
    request_id: str
    goal: str
    inputs: dict[str, Any] = Field(default_factory=dict)
    files: dict[str, InputFile] = Field(default_factory=dict)
    limits: Limits = Limits()
    approve: ApproveMode = "ask"
    review: Review = "none"
    role: str | None = None
    tenant: str = ""
    started_by: str = ""
    template: str | None = None
    given_plan: PlanDraft | None = None
    output_folder: str = ""
    untrusted: tuple[str, ...] = ()
    forked: Forked | None = None

    def input_values(self) -> dict[str, Any]:
        """What `${inputs.…}` sees: a file is its absolute path."""
        return {**self.inputs, **{name: file.path for name, file in self.files.items()}}


class Verdict(_Frozen):
    """What was decided about one outcome, identified by step run and attempt. A `global_replan` that is `degraded` puts
    the template's simplified plan in the place of the rest; one that is not `counted` is a person's, and has no cap."""

    verdict: VerdictName
    step_id: str
    attempt: int
    code: str
    reason: str
    not_before: float | None = None
    alternative: str | None = None
    degraded: bool = False
    counted: bool = True

    @property
    def key(self) -> str:
        """Names the outcome this verdict is about; one about the run as a whole is named by its code."""
        return f"{self.step_id or self.code}#{self.attempt}"


class Planning(_Frozen):
    """Why a plan is being written: for the goal, to repair one step, anew, for a sub-goal that is reached, or as what
    is left when repairs are used up.

    `tries` counts refused drafts, `refused` is the last of them; `by_template` says that no model is asked any more.
    """

    purpose: Literal["first", "local", "global", "subgoal", "degraded"] = "first"
    trigger: str = ""
    step_id: str | None = None
    instruction: str | None = None
    tries: int = 0
    refused: PlanDraft | None = None
    by_template: bool = False


class TemplateUse(_Frozen):
    """The template that a plan was made of: its name, the hash of its content, and its parameters."""

    name: str
    sha256: str
    parameters: dict[str, Any] = Field(default_factory=dict)


class Drafted(_Frozen):
    """A draft on its way to `validate`, with where it came from and what is already known to be wrong with it.

    `model`, `mode` and `prompt_sha256` say which model wrote it, or filled its template, how it was held to the schema,
    and what it was told; `question` is what the journal calls what it was asked. `schema_version` is that of its form.
    `made_from` is its template, if this draft was made of it and not of an earlier revision. `on_exhausted` and
    `critical` are what that template says of a run that cannot be mended.
    """

    draft: PlanDraft | None = None
    source: Source = "human"
    template: str | None = None
    made_from: TemplateUse | None = None
    repaired: bool = False
    prompt_sha256: str | None = None
    model: str | None = None
    mode: str | None = None
    question: str | None = None
    schema_version: int = SCHEMA_VERSION
    faults: tuple[Fault, ...] = ()
    on_exhausted: PlanDraft | None = None
    critical: bool = False


class Context(_Frozen):
    """What a caller may say per run. It can only narrow: roles, tenant, policy and ceilings come from the server, and
    `role` is one of those that the caller has."""

    approve: Literal["ask", "none"] | None = None
    role: str | None = None
    review: Literal["first", "every"] | None = None
    limits: Limits | None = None


class AgentInput(TypedDict, total=False):
    """A goal (or a last human message), with named inputs, a plan of the caller's own, and the id of the request."""

    goal: str | None
    messages: Annotated[list[AnyMessage], add_messages]
    inputs: dict[str, Any] | None
    plan: dict[str, Any] | None
    request_id: str | None


class AgentOutput(TypedDict, total=False):
    """How a run ended or where it stands. `tainted` has the lines of the answer, as the plan has them, that rest on
    text which a stranger may have written, each with the steps that brought it in."""

    status: RunStatus
    answer: str | None
    failures: list[Failure]
    report_ref: str | None
    missing: dict[str, str] | None
    tainted: dict[str, list[str]] | None
    refused: list[dict[str, str]]
    messages: Annotated[list[AnyMessage], add_messages]


class AgentState(AgentInput, AgentOutput, total=False):
    """What the graph carries from node to node. The keys of `AgentInput` are an inbox: the first node empties it."""

    schema_version: int
    seen_message: str | None
    run: RunHead | None
    edge: str
    current_plan: Plan | None
    planning: Planning
    drafted: Drafted | None
    faults: list[Fault]
    verdicts: list[Verdict]
    approvals: list[ApprovalRequest]
    counts: dict[str, int]
    usage: Usage
    degraded: dict[str, str] | None


CHECKPOINTED: tuple[type[BaseModel], ...] = (
    ApprovalRequest, Drafted, Failure, Fault, Forked, InputFile, Limits, Plan, PlanDraft, Planning, RunHead,
    TemplateUse, Usage, Verdict,
)  # fmt: skip
"""Every type that may stand in a checkpoint; the saver's serializer allows these and LangGraph's own."""
