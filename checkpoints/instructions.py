"""What people say to a run while it goes on, until whoever drives the run takes it into its journal."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from checkpoints.crash_points import reached
from checkpoints.database import Database
from checkpoints.jsonb import jsonb
from checkpoints.queries import QUERIES
from plans.principals import Principal


class Instruction(BaseModel):
    """One thing that was said, under the id of its sending: sent again it is the same one."""

    model_config = ConfigDict(frozen=True)

    instruction_id: str
    message: str
    said_by: Principal


class Instructions:
    """The mailbox of every run. Raises DatabaseUnavailable when the server is gone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def send(self, run_id: str, instruction: Instruction) -> bool:
        """Store it, and tell whoever drives the run; False for a run that has ended. Twice is once.

        Who sends looks for a driver afterwards, and drives the run where there is none.
        """
        reached("instruction.before_send")
        sent = await self._database.fetch(
            QUERIES["send_instruction"],
            {
                "run_id": run_id,
                "instruction_id": instruction.instruction_id,
                "message": instruction.message,
                "said_by": jsonb(instruction.said_by.model_dump(mode="json")),
            },
        )
        reached("instruction.sent")
        return bool(sent)

    async def waiting(self, run_id: str) -> list[Instruction]:
        """What was said to a run and is not taken, in the order it was said."""
        found = await self._database.fetch(QUERIES["instructions_of_run"], {"run_id": run_id})
        return [Instruction.model_validate(dict(row)) for row in found]

    async def taken(self, run_id: str, ids: Sequence[str]) -> None:
        """Note that this stands in the run's journal now."""
        await self._database.execute(QUERIES["take_instructions"], {"run_id": run_id, "ids": list(ids)})
        reached("instruction.taken")
