import json
import time

from plans.errors import PlanRejected
from plans.failure import ToolFailure
from tests.graph.kits import plan, step
from tools.registry import Toolkit

kit = Toolkit("k")
FAIL = set()


@kit.tool(
    effect="read",
    retry={"max_attempts": 1},
    repeats=None,
    breaker={"in_a_row": 1000, "min_calls": 1000, "window": 1000},
)
async def echo(value: object) -> object:
    """Give back."""
    if json.dumps(value) in FAIL:
        raise ToolFailure("NOT_FOUND", f"no {value}")
    return value


from pydantic import BaseModel


class Row(BaseModel):
    id: int
    sub: list[int]


class Rows(BaseModel):
    rows: list[Row]


@kit.tool(effect="read")
async def rows(n: int) -> Rows:
    """Rows."""
    return Rows(rows=[Row(id=i, sub=[i, i + 1]) for i in range(n)])


def show(name, r):
    print(
        "==",
        name,
        r.status,
        repr((r.answer or "")[:400]),
        [(s.id, s.status, s.skipped_because or (s.failure.message if s.failure else "")) for s in r.steps][:8],
        [(m.step, m.why) for m in r.missing][:5],
        [(x.line, x.why) for x in r.left_out],
    )


async def go(agent, name, *steps, inputs=None, limits=None, **more):
    t = time.time()
    try:
        r = await agent.run(plan=plan(*steps, **more), inputs=inputs or {}, limits=limits)
    except PlanRejected as e:
        print("==", name, "REJECTED", e)
        return
    show(name + f" {time.time() - t:.1f}s", r)


async def test_x(agent_on):
    try:
        agent = await agent_on([kit])
    except Exception as e:
        print(e)
        raise
    each = lambda **k: step("e", "echo", args={"value": "${item}"}, for_each="${inputs.l}", **k)
    await go(agent, "nested", each(), inputs={"l": [[1, 2], [3]]})
    await go(
        agent,
        "nested for each of child",
        each(),
        step("f", "echo", args={"value": "${item[0]}"}, for_each="${e}"),
        inputs={"l": [[1, 2], [3]]},
    )
    await go(
        agent,
        "flatten",
        each(),
        step("f", "echo", args={"value": "${item}"}, for_each="${e[]}"),
        inputs={"l": [[1, 2], [3]]},
        answer="${f}",
    )
    await go(agent, "empty", each(), step("f", "echo", args={"value": "${e[0]}"}), inputs={"l": []})
    await go(agent, "empty max", each(), step("f", "echo", args={"value": "${e}"}), inputs={"l": []}, answer="got ${f}")
    await go(agent, "1000", each(), step("f", "echo", args={"value": "${length(e)}"}), inputs={"l": list(range(1000))})
    await go(
        agent, "1000 b", each(), step("f", "echo", args={"value": "${e | length(@)}"}), inputs={"l": list(range(1000))}
    )
    await go(
        agent,
        "1000 lim",
        each(),
        step("f", "echo", args={"value": "${e[999]}"}),
        inputs={"l": list(range(1000))},
        limits={"max_for_each": 1000},
        answer="${f}",
    )
    FAIL.add("2")
    for odf in ("abort", "skip", "degrade"):
        await go(
            agent,
            "child fails " + odf,
            each(),
            step("f", "echo", args={"value": "${e}"}, on_dependency_failure=odf),
            inputs={"l": [1, 2, 3]},
            answer="${f}",
        )
    await go(
        agent,
        "child fails degrade child ref",
        each(),
        step("f", "echo", args={"value": "${e[0]}"}, on_dependency_failure="degrade"),
        step("g", "echo", args={"value": "${e[1]}"}, on_dependency_failure="degrade"),
        inputs={"l": [1, 2, 3]},
        answer="${f} ${g}",
    )
    await go(
        agent,
        "for_each over failed for_each degrade",
        each(),
        step("f", "echo", args={"value": "${item}"}, for_each="${e}", on_dependency_failure="degrade"),
        inputs={"l": [1, 2, 3]},
        answer="${f}",
    )
    await go(agent, "child fails none depends", each(), inputs={"l": [1, 2, 3]}, answer="${e}")
    FAIL.clear()
    await go(
        agent,
        "when item",
        each(when="item > `1`"),
        step("f", "echo", args={"value": "${e}"}),
        inputs={"l": [1, 2, 3]},
        answer="${f}",
    )
    await go(
        agent,
        "when item, child ref",
        each(when="item > `1`"),
        step("f", "echo", args={"value": "${e[0]}"}),
        inputs={"l": [1, 2, 3]},
        answer="${f}",
    )
    await go(
        agent,
        "when over skipped",
        step("a", "echo", args={"value": 1}, when="inputs.n > `5`"),
        step("b", "echo", args={"value": 2}, when="a == null"),
        inputs={"n": 1},
        answer="${b}",
    )
    await go(
        agent,
        "when over skipped 2",
        step("a", "echo", args={"value": 1}, when="inputs.n > `5`"),
        step("b", "echo", args={"value": 2}, when="!a"),
        inputs={"n": 1},
        answer="${b}",
    )
    await go(
        agent,
        "when over skipped degrade",
        step("a", "echo", args={"value": 1}, when="inputs.n > `5`"),
        step("b", "echo", args={"value": 2}, when="!a", on_dependency_failure="degrade"),
        inputs={"n": 1},
        answer="${b}",
    )
    await go(
        agent,
        "join of two branches",
        step("a", "echo", args={"value": 1}, when="inputs.n > `5`"),
        step("b", "echo", args={"value": 2}, when="inputs.n <= `5`"),
        step("c", "echo", args={"value": ["${a}", "${b}"]}, on_dependency_failure="degrade"),
        inputs={"n": 1},
        answer="${c}",
    )
    await go(
        agent,
        "join coalesce",
        step("a", "echo", args={"value": 1}, when="inputs.n > `5`"),
        step("b", "echo", args={"value": 2}, when="inputs.n <= `5`"),
        step("c", "echo", args={"value": "a or b: ${a} ${b}"}),
        inputs={"n": 1},
        answer="${c}",
    )
    await go(agent, "success_when item", each(success_when="@ > `1`"), inputs={"l": [1, 2, 3]})
    await go(agent, "success_when whole", each(success_when="length(@) == `3`"), inputs={"l": [1, 2, 3]})
    await go(agent, "success bad type", step("a", "echo", args={"value": 1}, success_when="length(@) > `1`"))
    await go(
        agent,
        "when bad type",
        step("a", "echo", args={"value": 1}),
        step("b", "echo", args={"value": 1}, when="length(a) > `1`"),
    )
    await go(
        agent,
        "for_each not list",
        step("a", "rows", args={"n": 2}),
        step("b", "echo", args={"value": 1}, for_each="${a}"),
    )
    await go(
        agent,
        "for_each not list2",
        step("a", "echo", args={"value": 2}),
        step("b", "echo", args={"value": 1}, for_each="${a}"),
    )
    await go(agent, "for_each text", step("b", "echo", args={"value": 1}, for_each="[1,2]"))
    await go(
        agent,
        "for_each in rows",
        step("a", "rows", args={"n": 2}),
        step("b", "echo", args={"value": "${item.id}"}, for_each="${a.rows}"),
        step("c", "echo", args={"value": "${b[0]}"}),
        answer="${c}",
    )
    await go(
        agent,
        "for_each item typo",
        step("a", "rows", args={"n": 2}),
        step("b", "echo", args={"value": "${item.idd}"}, for_each="${a.rows}"),
    )
    await go(agent, "for_each null elements", each(), inputs={"l": [None, 1]}, answer="${e}")
    await go(
        agent,
        "ref to child by unit",
        each(),
        step("f", "echo", args={"value": "x"}, depends_on=["e[0]"])
        if False
        else step("f", "echo", "e[0]", args={"value": "x"}),
        inputs={"l": [None, 1]},
    )
    await go(
        agent,
        "for_each on plan",
        {"id": "p", "action": "plan", "instruction": "do", "for_each": "${inputs.l}", "reason": "r"},
        inputs={"l": [1]},
    )
    await go(
        agent,
        "for_each llm no model",
        {"id": "p", "action": "llm", "instruction": "do ${item}", "for_each": "${inputs.l}", "reason": "r"},
        inputs={"l": [1, 2]},
    )
    await go(
        agent,
        "item in for_each of unknown input",
        step("b", "echo", args={"value": "${item}"}, for_each="${inputs.nope}"),
        inputs={"l": [1, 2]},
    )
    await go(agent, "answer child", each(), inputs={"l": [1, 2]}, answer="${e[0]} and ${e[5]}")
