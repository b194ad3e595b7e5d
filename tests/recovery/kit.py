"""A plan with everything that can be interrupted, and tools of all four effects that act on the ledger."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from checkpoints import crash_points
from plans.failure import ToolFailure
from tests.running import plan, step
from tools.registry import ToolContext, Toolkit

WIRE = "wire"
"""The point that is nobody's but the tool's: an effect is about to be written to its socket, and no check follows."""
# Trials repeat the same failures on purpose: neither breakers nor the memory of failed calls may change their route.
LENIENT = {"in_a_row": 1_000, "min_calls": 1_000, "window": 1_000}
LARGE = 20_000
"""Characters of a result that is too large for the database itself."""
CALL_S = 5.0
"""How long an effect may take: so long, and a little more, its outcome is waited for when its worker sleeps."""
BOOKINGS = "CREATE TABLE bookings (book text, account text)"

WORDS = {"id": "words", "action": "llm", "instruction": "Say ${price.price} in words.", "reason": "test"}
PLAN = plan(
    step("price", "price", args={"item": "ball"}),
    step("rate", "rate"),
    step("large", "large"),
    step("charge", "charge", timeout_s=CALL_S, args={"account": "${item}"}, for_each="${inputs.accounts}"),
    {**WORDS, "verify_after": True},
    {"id": "rest", "action": "plan", "instruction": "Find out what ${price.price} was before.", "reason": "test"},
    step("book", "book_it", "charge", "rate", "large", timeout_s=CALL_S, args={"account": "of ${price.price}"}),
    step("ship", "ship", "book", timeout_s=CALL_S, args={"text": "${words}"}),
    step("send", "send", "ship", timeout_s=CALL_S, args={"text": "to ${book.booked}"}, require_approval=True),
    step("total", "total", "send", args={"charged": "${charge[*].receipt}", "large": "${large.text}"}),
    answer="${total.total} ${words} ${book.booked} ${ship.receipt} ${send.receipt} ${rate.rate} ${rest}",
)
INPUTS = {"accounts": ["ann", "bob"]}
EFFECTS = ("charge", "ship", "send")
IRREVERSIBLE = frozenset({"ship", "send"})
FOUND_OUT = json.dumps(plan(step("old", "old_rate"), step("older", "old_rate", "old"), answer="${older.rate}"))
MENDED = json.dumps(plan(step("price", "price", args={"item": "football"})))


class World:
    """The tools, on the ledger at this port of this machine; everything they do is noted in this book."""

    def __init__(self, port: int, book: str, slow_s: float) -> None:
        self._port, self._book, self._slow_s = port, book, slow_s
        self.kit = Toolkit("recovery")
        self._reads()
        self._results()
        self._honouring()
        self._irreversible()

    async def _ask(self, asked: dict[str, Any]) -> Any:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        if asked.get("tool") in EFFECTS and crash_points.hook is not None:
            crash_points.hook(WIRE)
        writer.write(json.dumps({"book": self._book, **asked}).encode() + b"\n")
        answer = await reader.readline()
        writer.close()
        return json.loads(answer)

    async def _call(self, ctx: ToolContext, tool: str, args: Any = None, *, honour: bool = False) -> Any:
        key = ctx.idempotency_key
        return await self._ask({"tool": tool, "key": key, "unit": ctx.step_id, "args": args, "honour": honour})

    async def _has_left(self, key: str) -> dict[str, str] | None:
        receipt = await self._ask({"probe": key})
        return {"receipt": receipt} if receipt else None

    def _reads(self) -> None:
        @self.kit.tool(effect="read", breaker=LENIENT, repeats=None)
        async def price(item: str, ctx: ToolContext) -> dict[str, int]:
            """There is no ball."""
            await self._call(ctx, "price", item)
            if item == "ball":
                raise ToolFailure("NOT_FOUND", "there is no ball")
            return {"price": len(item)}

        @self.kit.tool(effect="read", breaker=LENIENT, repeats=None, retry={"max_attempts": 1}, fallbacks=["old_rate"])
        async def rate(ctx: ToolContext) -> dict[str, int]:
            """Always taken by somebody else."""
            await self._call(ctx, "rate")
            raise ToolFailure("CONFLICT", "somebody else was quicker")

        @self.kit.tool(effect="read")
        async def old_rate(ctx: ToolContext) -> dict[str, int]:
            """Yesterday's."""
            await self._call(ctx, "old_rate")
            return {"rate": 3}

    def _results(self) -> None:
        @self.kit.tool(effect="read")
        async def large(ctx: ToolContext) -> dict[str, str]:
            """A long text."""
            await self._call(ctx, "large")
            await asyncio.sleep(self._slow_s)
            return {"text": "x" * LARGE}

        @self.kit.tool(effect="read")
        async def total(charged: list[str], large: str, ctx: ToolContext) -> dict[str, str]:
            """What it comes to."""
            await self._call(ctx, "total", charged)
            return {"total": f"{', '.join(charged)} and {len(large)}"}

    def _honouring(self) -> None:
        @self.kit.tool(effect="idempotent", sensitive_args=())
        async def charge(account: str, ctx: ToolContext) -> dict[str, str]:
            """Charge an account; the other side honours the key."""
            return {"receipt": await self._call(ctx, "charge", account, honour=True)}

        @self.kit.tool(effect="transactional", sensitive_args=())
        async def book_it(account: str, ctx: ToolContext) -> dict[str, str]:
            """Book it in Surestep's own database."""
            await ctx.connection.execute("INSERT INTO bookings VALUES (%s, %s)", (self._book, account))
            return {"booked": account}

    def _irreversible(self) -> None:
        @self.kit.tool(effect="irreversible", sensitive_args=(), probe=self._has_left)
        async def ship(text: str, ctx: ToolContext) -> dict[str, str]:
            """Ship a parcel; whether it has left can be asked."""
            return {"receipt": await self._call(ctx, "ship", text)}

        @self.kit.tool(effect="irreversible", sensitive_args=())
        async def send(text: str, ctx: ToolContext) -> dict[str, str]:
            """Send a letter; whether it was sent cannot be asked."""
            return {"receipt": await self._call(ctx, "send", text)}


def model_answer(prompt: str) -> str:
    """What the model says: a mended step, the steps of the sub-goal, that the plan still holds, or words."""
    if "is one step of a larger plan" in prompt:
        return FOUND_OUT
    if "You check a plan" in prompt:
        return '{"holds": true, "reason": "eight is a price"}'
    return MENDED if "You repair one step" in prompt else "eight"
