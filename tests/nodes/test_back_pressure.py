"""A slow database slows the run down, and nothing else: memory stays flat, and what was begun is finished."""

from __future__ import annotations

import asyncio
from pathlib import Path

from checkpoints.backlog import RUN_ROWS
from graph.gateway import Agent
from tests.checkpoints.scenes import backends_waiting_for_a_lock, locked, until
from tests.running import plan, running, step
from tools.registry import Toolkit

STEPS = 400
CONCURRENCY = 8
BYTES = 10_000


def waiting(agent: Agent) -> tuple[int, int]:
    """Rows that are queued, and their bytes."""
    entries = list(agent.engine.journal._backlog._entries)
    carried = [entry.row.artifact[1] for entry in entries if entry.row.artifact]
    return len(entries), sum(map(len, carried)) + sum(len(entry.body) for entry in entries)


async def test_steps_stop_starting_while_the_database_takes_no_rows(database_url: str, tmp_path: Path) -> None:
    """Somebody holds the run's row for a while: 64 rows wait, the steps in flight wait with theirs, and no other step
    begins however long it takes; then all go on, each once."""
    began: list[int] = []
    hold_on, go_on = asyncio.Event(), asyncio.Event()
    kit = Toolkit("kit")

    @kit.tool(effect="read")
    async def look(number: int) -> str:
        """Look."""
        began.append(number)
        hold_on.set()
        await go_on.wait()
        return f"{number} " * (BYTES // 4)

    steps = [step(f"s{n}", "look", args={"number": n}) for n in range(STEPS)]
    limits = {"max_steps": STEPS, "concurrency": CONCURRENCY}
    async with running(database_url, tmp_path, [kit]) as agent:
        drive = asyncio.create_task(agent.run(plan=plan(*steps), limits=limits))
        await hold_on.wait()
        async with locked(agent.engine.database, (await agent.runs())[0].run_id):
            go_on.set()
            await until(lambda: backends_waiting_for_a_lock(agent.engine.database))
            most = 0
            while len(began) > most:  # until no more begin
                most = len(began)
                await asyncio.sleep(0.2)
            rows, size = waiting(agent)
            assert rows <= RUN_ROWS
            assert size <= RUN_ROWS * BYTES * 2
            assert most <= RUN_ROWS + 2 * CONCURRENCY
            assert len(agent.engine.sessions) == 1
        assert (await drive).status == "done"
    assert sorted(began) == list(range(STEPS))
