"""The caps of a run and what it has spent."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Limits(BaseModel):
    """Caps of one run; None means uncapped. Defaults are the field's practice (see docs/adr). Times in seconds.

    `max_attempts` and `max_local_replans` are of one step, `max_global_replans` of the run: what they leave untried
    decides where a failure leads. The caps of the whole run end it as limited, to be gone on with under a higher one:
    `max_steps` over all revisions of its plan, `max_total_attempts` of all steps together, `max_replans` of both kinds,
    `max_wall_s`, `max_tokens`, `max_cost`, and `max_repeats`: how often the same call may give the same result, over
    revisions of the plan and with nothing new in between.

    `max_subgoal_depth` says how deep steps with `action: plan` may stand in each other's plans; 0: there are none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_steps: int = Field(default=50, ge=1, le=100_000)
    max_attempts: int = Field(default=3, ge=1, le=100)
    max_local_replans: int = Field(default=2, ge=0, le=20)
    max_global_replans: int = Field(default=3, ge=0, le=20)
    max_redrafts: int = Field(default=2, ge=0, le=10)
    max_replans: int | None = Field(default=None, ge=0, le=1_000)
    max_total_attempts: int | None = Field(default=None, ge=1)
    max_repeats: int = Field(default=3, ge=1, le=1_000)
    max_for_each: int = Field(default=200, ge=1, le=100_000)
    max_subgoal_depth: int = Field(default=3, ge=0, le=10)
    max_wall_s: float | None = Field(default=None, gt=0)
    max_tokens: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, gt=0)
    concurrency: int = Field(default=8, ge=1, le=1_000)


class Usage(BaseModel):
    """What a run has spent so far: counted in the journal, so that a resume does not reset it.

    `cached` counts attempts that were answered by a kept result, which `attempts` leaves out.

    `model_requests` are the HTTP requests of all questions, failed ones and retries among them; `estimated_tokens` of
    the tokens are our estimate, where an endpoint has reported none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: int = 0
    attempts: int = 0
    cached: int = 0
    local_replans: int = 0
    global_replans: int = 0
    model_calls: int = 0
    model_requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated_tokens: int = 0
    cost: float = 0.0
    wall_s: float = 0.0

    def plus(self, **spent: float) -> Usage:
        """The usage with the given amounts added."""
        return self.model_copy(update={name: getattr(self, name) + amount for name, amount in spent.items()})

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens
