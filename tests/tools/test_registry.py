"""Tests of toolkits and the registry: every way to declare a tool, and every fault of one told at once."""

from __future__ import annotations

import functools
import subprocess
import sys
from typing import Any

import pytest

from plans.errors import ConfigurationError
from tests.tools.calls import context
from tools.registry import Registry, ToolContext, Toolkit, combine


class Warehouse:
    def __init__(self, place: str) -> None:
        self.place = place

    def stock(self, sku: str) -> str:
        """What is in stock."""
        return f"{self.place} {sku}"

    async def __call__(self, sku: str) -> str:
        return f"called {self.place} {sku}"


async def test_the_decorator_leaves_the_function_what_it_is() -> None:
    """Bare or with settings, a declared function can still be called and tested as a function."""
    toolkit = Toolkit("orders")

    @toolkit.tool
    def bare(a: int) -> int:
        """Bare."""
        return a

    @toolkit.tool(effect="read", timeout_s=2, cache_ttl_s=5, name="get_order", description="Look up.")
    async def declared(order_id: str, ctx: ToolContext) -> str:
        return order_id + ctx.run_id

    assert bare(3) == 3
    tools = Registry.of(toolkit)
    assert list(tools) == ["bare", "get_order"]
    assert (tools["bare"].effect, tools["bare"].description) == ("irreversible", "Bare.")
    assert (tools["get_order"].spec.timeout_s, tools["get_order"].description) == (2, "Look up.")
    assert await tools["get_order"].invoke({"order_id": "A"}, context()) == "Arun-1"


async def test_everything_that_can_be_called_can_be_added() -> None:
    """Functions, methods, callable objects, partials and lambdas become tools under their own or a given name."""
    toolkit = Toolkit("w")
    toolkit.add(Warehouse("north").stock, effect="read")
    toolkit.add(Warehouse("south"), effect="read")
    toolkit.add(functools.partial(Warehouse("west").stock, "a1"), name="a1_in_the_west", effect="read")
    toolkit.add(
        lambda **more: more, name="legacy", args_schema={"properties": {"a": {"type": "integer"}}}, effect="read"
    )
    tools = Registry.of(toolkit)
    assert list(tools) == ["stock", "warehouse", "a1_in_the_west", "legacy"]
    assert await tools["stock"].invoke({"sku": "x"}, context()) == "north x"
    assert await tools["warehouse"].invoke({"sku": "x"}, context()) == "called south x"
    assert await tools["a1_in_the_west"].invoke({}, context()) == "west a1"
    assert await tools["legacy"].invoke({"a": 1}, context()) == {"a": 1}
    assert tools["stock"].description == "What is in stock."


def test_isolation_is_what_the_function_needs() -> None:
    """Async functions run on the loop, plain ones in a thread."""
    toolkit = Toolkit("w")
    assert toolkit.add(Warehouse("north").stock).spec.isolation == "thread"
    assert toolkit.add(Warehouse("north")).spec.isolation == "async"


def faults_of(*toolkits: Toolkit) -> str:
    """What the registry says about toolkits that make no sense."""
    with pytest.raises(ConfigurationError) as refused:
        Registry.of(*toolkits)
    return str(refused.value)


def test_all_faults_of_all_tools_come_at_once() -> None:
    """One look shows everything that is to be mended, with the tool and what would be right."""
    one, two = Toolkit("one"), Toolkit("two")
    one.add(lambda a: a, name="endless", timeout_s=0, effect="raed", timeout=3)
    one.add(lambda a: a, name="send", effect="irreversible", retry={"max_attempts": 3})
    one.add(lambda a: a, name="look", effect="read", fallbacks=["nowhere", "send"], sensitive_args=("b",))
    one.add(lambda a: a, name="look", effect="read")
    one.add(lambda *a: a, name="starred")
    two.add(lambda a: a, name="send", effect="read")
    said = faults_of(one, two)
    for fault in (
        "'endless' has timeout_s=0: should be greater than 0",
        "'endless' has effect='raed'",
        "'endless' has no setting 'timeout'; did you mean 'timeout_s'?",
        "'send' is irreversible and has retries",
        "'look' falls back to 'nowhere', which is not registered",
        "'look' is read and falls back to 'send', which is irreversible: a stronger effect",
        "'look' names 'b' in sensitive_args; its arguments are a",
        "'look' is declared twice",
        "'starred' takes *a",
        "'send' is in the toolkits 'one' and 'two'",
    ):
        assert fault in said
    assert said.startswith("10 faults in the declared tools:\n- ")


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"effect": "transactional", "retry": {"max_attempts": 2}}, "could repeat its effect"),
        ({"effect": "idempotent", "cache_ttl_s": 5}, "only results of reads are cached"),
        ({"identity_args": ("b",)}, "names 'b' in identity_args"),
        ({"rules": [{"condition": "a <=", "message": "m"}]}, "a rule that cannot be read"),
        ({"fallbacks": ["t"], "effect": "read"}, "falls back to itself"),
        ({"shadow_of": "old", "effect": "read"}, "a shadow of 'old', which is not registered"),
        ({"shadow_of": "other", "effect": "idempotent"}, "only reads can be compared"),
        ({"isolation": "process"}, "isolation='process', but it is a lambda"),
        ({"isolation": "async"}, "a plain function"),
        ({"undo": print, "effect": "read"}, "nothing for undo"),
        ({"probe": lambda key: key, "effect": "read"}, "nothing for a probe"),
        ({"probe": lambda key, more: key}, "something else than the idempotency key"),
        ({"fallbacks": [{"tool": "other", "args": {"c": "a"}}], "effect": "read"}, "the argument 'c'"),
        ({"fallbacks": [{"tool": "other", "args": {"b": "a["}}], "effect": "read"}, "an argument for its fallback"),
        ({"fallbacks": ["other"], "effect": "read"}, "would lack its argument 'b'"),
        ({"name": "get order"}, "needs a name of 1 to 64 letters"),
        ({"args_schema": {"properties": {"b": {}}}}, "needs the argument 'a'"),
        ({"args_schema": {"properties": {"a": {}, "b": {}}}}, "'b', which the function does not take"),
        ({"args_schema": 3}, "neither a JSON schema"),
        ({"roles": "admin"}, "roles='admin'"),
    ],
)
def test_each_senseless_declaration_is_refused_in_words(declared: dict[str, Any], said: str) -> None:
    """Every fault is found at load, before a plan can rely on the tool."""
    toolkit = Toolkit("k")
    toolkit.add(lambda b: b, name="other", effect="read")
    toolkit.add(lambda a: a, **{"name": "t", **declared})
    assert said in faults_of(toolkit)


def test_a_sound_fallback_is_accepted() -> None:
    """A fallback with its arguments mapped, of the same or a weaker effect, is fine."""
    toolkit = Toolkit("k")
    toolkit.add(lambda b, c=3: b, name="other", effect="read")
    toolkit.add(lambda a: a, name="t", effect="idempotent", fallbacks=[{"tool": "other", "args": {"b": "a"}}])
    assert Registry.of(toolkit)["t"].spec.fallbacks[0].tool == "other"


def test_a_lambda_needs_a_name() -> None:
    """A function that has no usable name of its own has to be given one."""
    toolkit = Toolkit("k")
    toolkit.add(lambda a: a)
    assert "'<lambda>'; give name=" in faults_of(toolkit)


def test_something_that_cannot_be_called_is_refused() -> None:
    """A value that is no tool at all is named by its type."""
    toolkit = Toolkit("k")
    toolkit.add(3)
    toolkit.add(Warehouse)
    said = faults_of(toolkit)
    assert "is a int; give a function" in said
    assert "is a class" in said


def test_two_toolkits_cannot_share_a_name() -> None:
    """A toolkit's name stands for its tables, so it is given once."""
    assert "two toolkits named 'k'" in faults_of(Toolkit("k"), Toolkit("k"))


def named(name: str, *tools: str) -> Toolkit:
    """A toolkit with tools of these names."""
    toolkit = Toolkit(name)
    for tool in tools:
        toolkit.add(lambda: None, name=tool, effect="read")
    return toolkit


def test_a_users_toolkit_replaces_a_built_in_one() -> None:
    """By its own name, or by the name of any tool, with a notice that says which and why."""
    builtin = [named("orders", "get_order", "send"), named("tabular", "describe"), named("extra", "x")]
    tools, notices = combine(builtin, [named("tabular", "mine"), named("shop", "get_order")])
    assert set(tools) == {"mine", "get_order", "x"}
    assert [kit.name for kit in tools.toolkits] == ["extra", "tabular", "shop"]
    assert notices == [
        "the built-in toolkit 'orders' is left out: your toolkit 'shop' has tools of the same names (get_order)",
        "the built-in toolkit 'tabular' is left out: yours has the same name",
    ]


def test_without_own_toolkits_all_built_in_ones_are_there() -> None:
    """Nothing is left out without a reason."""
    tools, notices = combine([named("a", "x"), named("b", "y")], [])
    assert (set(tools), notices) == ({"x", "y"}, [])


def test_a_registry_is_a_mapping() -> None:
    """Tools are found by name, in the order of their declaration."""
    tools = Registry.of(named("a", "x", "y"))
    assert (list(tools), len(tools), "z" in tools, tools.get("z")) == (["x", "y"], 2, False, None)
    assert "x, y" in repr(tools.toolkits[0])


def test_importing_the_registry_is_cheap() -> None:
    """Declaring tools loads neither LangChain, LangGraph, jsonschema nor tenacity."""
    heavy = ("langchain_core", "langgraph", "jsonschema", "tenacity", "httpx", "polars", "psycopg")
    program = (
        "import sys; from tools.registry import Toolkit, Registry; kit = Toolkit('k'); "
        "kit.add(lambda a: a, name='t'); Registry.of(kit); "
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
