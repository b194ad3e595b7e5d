"""Answers as models, servers and people write them, made from one right plan, each with the verdict that is right."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import yaml

from plans.reader import MAX_TEXT
from plans.values import JSON

FENCE = "```"
PLAN: dict[str, Any] = {
    "goal": "tell the customer, once",
    "steps": [
        {
            "id": "s1",
            "action": "tool",
            "tool": "get_order",
            "args": {"order_id": "A1"},
            "depends_on": [],
            "reason": "r",
        },
        {"id": "s2", "action": "tool", "tool": "list_orders", "args": {"status": "late", "limit": 5}, "depends_on": []},
        {
            "id": "s3",
            "action": "tool",
            "tool": "send_reply",
            "depends_on": ["s1", "s2"],
            "args": {"order_id": "${s1.id}", "body": 'it\'s "late", {sorry} [1] // really'},
        },
    ],
    "answer": "told ${s1.id}",
}
TEXT = json.dumps(PLAN)
PRETTY = json.dumps(PLAN, indent=2)
YAML = yaml.safe_dump(PLAN, sort_keys=False)
OTHER = json.dumps({**PLAN, "goal": "another"})
TWICE = TEXT.replace('"limit": 5', '"limit": 5, "limit": 6')
STEP = json.dumps(PLAN["steps"][1])


class Case(NamedTuple):
    """`verdict` is "as it is", "repaired", or the code that has to be among the faults."""

    name: str
    text: str
    verdict: str
    finish: str | None = "stop"


def within(path: str, change: Callable[[Any], Any]) -> str:
    """The plan with the value at a dotted place changed."""
    changed: Any = copy.deepcopy(PLAN)
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    here = changed
    for part in way:
        here = here[part]
    here[last] = change(here[last])
    return json.dumps(changed)


def set_to(path: str, value: JSON) -> str:
    """The plan with another value at a place."""
    return within(path, lambda _: value)


def raw(path: str, text: str) -> str:
    """The plan with a piece of raw text as the value at a place."""
    return set_to(path, "@@").replace('"@@"', text)


def without(path: str) -> str:
    """The plan without one field."""
    holder, _, last = path.rpartition(".")
    return within(holder, lambda found: {key: item for key, item in found.items() if key != last})


def cases() -> list[Case]:
    """All of them; each has a name of its own."""
    found = [
        *_wrapped(),
        *_slips(),
        *_several(),
        *_cut(),
        *_not_json(),
        *_no_plan(),
        *_values(),
        *_forms(),
        *_quoted(),
        *_parts(),
    ]
    assert len({case.name for case in found}) == len(found)
    return found


def _wrapped() -> Iterator[Case]:
    for tag in ("", "json", "JSON", "json5", "jsonc", "javascript", "plan", "json title=plan.json"):
        yield Case(f"fence {tag}", f"{FENCE}{tag}\n{TEXT}\n{FENCE}", "repaired")
        yield Case(f"pretty fence {tag}", f"Sure!\n\n{FENCE}{tag}\n{PRETTY}\n{FENCE}\n\nDone.", "repaired")
    yield Case("fence of four", f"````json\n{TEXT}\n````", "repaired")
    yield Case("fence of tildes", f"~~~json\n{TEXT}\n~~~", "repaired")
    yield Case("fence without its end", f"{FENCE}json\n{TEXT}", "repaired")
    yield Case("fence without its beginning", f"{TEXT}\n{FENCE}", "repaired")
    yield Case("indented fence", f"  {FENCE}json\n  {TEXT}\n  {FENCE}", "repaired")
    for name, before, after in (
        ("prose", "Here is the plan: ", ""),
        ("prose after", "", "\nLet me know!"),
        ("both", "Plan:\n", "\nThat is it."),
        ("braces before", "I use {tools} and {{order}}: ", ""),
        ("braces after", "", " Good luck {ok} and {}."),
        ("an object before", 'For {"order_id": "A1"} I do this: ', ""),
        ("a list after", "", " (see [1] and [2, 3])"),
        ("Chinese", "计划如下：", "。请确认。"),
        ("a heading", "# Plan\n\n", "\n\n## Notes\n\n- none\n"),
        ("a BOM", "\ufeff", ""),
        ("XML", "<plan>", "</plan>"),
        ("XML and CDATA", "<answer><![CDATA[", "]]></answer>"),
        ("HTML code", "<pre><code>", "</code></pre>"),
        ("a semicolon", "", ";"),
        ("an assignment", "plan = ", ""),
        ("a const", "const plan = ", ";"),
        ("a call", "submit_plan(", ")"),
        ("a tag of tools", "<tool_call>", "</tool_call>"),
        ("one brace too many", "", "}"),
        ("an emoji", "\U0001f680 ", " \U0001f389"),
        ("a token of a template", "<|im_start|>assistant\n", "<|im_end|>"),
        ("an example of a step", 'Like {"id": "x"}: ', ""),
    ):
        yield Case(f"prose: {name}", f"{before}{TEXT}{after}", "repaired")
    for tag in ("think", "THINK", "thinking", "thought", "reasoning", "reflection", "scratchpad"):
        yield Case(f"thoughts with a plan: {tag}", f"<{tag}>First {OTHER}, no.</{tag}>\n{TEXT}", "repaired")
    yield Case("thoughts in brackets", f"[THINK]First {OTHER}.[/THINK]{TEXT}", "repaired")
    yield Case("thoughts in wedges", f"◁think▷First {OTHER}.◁/think▷{TEXT}", "repaired")
    yield Case("thoughts without a beginning", f"First {OTHER}, no.\n</think>\n{TEXT}", "repaired")
    yield Case(
        "thoughts in channels",
        f"<|channel|>analysis<|message|>{OTHER}<|end|><|start|>assistant<|channel|>final<|message|>{TEXT}",
        "repaired",
    )
    yield Case("thoughts with half a plan", f"<think>{OTHER[:50]}</think>{FENCE}json\n{TEXT}\n{FENCE}", "repaired")
    yield Case("thoughts in a string", set_to("goal", "<think>no</think>"), "as it is")
    yield Case("thoughts and YAML", f"<think>\n{FENCE}yaml\n{YAML}{FENCE}\n</think>\n{TEXT}", "repaired")
    yield Case("only thoughts", f"<think>{TEXT}</think>", "PLAN_SYNTAX")
    yield Case("thoughts without an end", f"<think>{TEXT}", "PLAN_TRUNCATED")


def _slips() -> Iterator[Case]:
    yield Case("trailing comma at the end", TEXT[:-1] + ",}", "repaired")
    yield Case("trailing commas everywhere", re.sub(r"(?<!\[)(\n\s*[}\]])", r",\1", PRETTY), "repaired")
    yield Case("trailing comma of a list", TEXT.replace("}], ", "},], "), "repaired")
    yield Case("comment before a key", TEXT.replace('"answer"', '// what is said\n"answer"'), "repaired")
    yield Case("comment in a block", TEXT.replace('"answer"', '/* said {"goal": 1} */ "answer"'), "repaired")
    yield Case("comment with a hash", TEXT.replace('"answer"', '# said\n"answer"'), "repaired")
    yield Case("comment that never ends", TEXT.replace('"answer"', '/* said "answer"'), "PLAN_TRUNCATED")
    for name, mark in (("slashes", "// ... the rest\n"), ("block", "/* ... */"), ("hash", "# … more steps\n")):
        text = TEXT.replace(f", {json.dumps(PLAN['steps'][2])}", f" {mark}")
        yield Case(f"steps left out: {name}", text, "PLAN_SYNTAX")
    yield Case("steps left out: dots", TEXT.replace(STEP, "..."), "PLAN_SYNTAX")
    yield Case("steps left out: text", TEXT.replace(STEP, '"..."'), "SCHEMA_INVALID")
    yield Case("Python", str({**PLAN, "answer": None}), "repaired")
    yield Case(
        "Python's None and True",
        raw("answer", "None").replace('"s2",', '"s2", "require_approval": True,', 1),
        "repaired",
    )
    yield Case("single quotes that break", raw("goal", "'it's'"), "PLAN_SYNTAX")
    yield Case("bare keys", TEXT.replace('"goal":', "goal:").replace('"answer":', "answer:"), "repaired")
    yield Case("a line break in a string", raw("goal", '"two\nlines"'), "repaired")
    yield Case("a tab in a string", raw("goal", '"a\tb"'), "repaired")
    yield Case("quotes in a string", raw("goal", '"say "hi" now"'), "PLAN_SYNTAX")
    yield Case("quotes and a comma in a string", raw("goal", '"say "hi", then go"'), "PLAN_SYNTAX")
    yield Case("quotes that make a key", raw("goal", '"a "b": c" d"'), "PLAN_SYNTAX")
    yield Case("an escape that is none", raw("goal", r'"a\d"'), "PLAN_SYNTAX")
    yield Case("an escaped apostrophe", raw("goal", r'"it\'s"'), "PLAN_SYNTAX")
    yield Case("smart quotes", TEXT.replace('"goal"', "“goal”"), "PLAN_SYNTAX")
    yield Case("smart quotes in a string", set_to("goal", "“so”"), "as it is")
    yield Case("full-width colon", TEXT.replace('"goal":', '"goal"：'), "repaired")
    yield Case("full-width comma", TEXT.replace(', "steps"', '，"steps"'), "repaired")
    yield Case("full-width braces", TEXT.replace("{", "｛").replace("}", "｝"), "PLAN_SYNTAX")
    yield Case("no comma between steps", TEXT.replace("}, {", "} {"), "PLAN_SYNTAX")
    yield Case("two commas", TEXT.replace("}, {", "},, {"), "PLAN_SYNTAX")
    yield Case("no colon", TEXT.replace('"goal": ', '"goal" '), "PLAN_SYNTAX")
    yield Case("an equals sign", TEXT.replace('"goal": ', '"goal" = '), "PLAN_SYNTAX")
    yield Case("brackets that cross", TEXT.replace("}], ", "]}, ", 1), "PLAN_SYNTAX")
    yield Case("spaces nobody sees", TEXT.replace(", ", ",\u00a0"), "repaired")
    yield Case("a NUL between tokens", TEXT.replace(', "steps"', ',\x00 "steps"'), "PLAN_SYNTAX")
    yield Case("windows line ends", PRETTY.replace("\n", "\r\n"), "as it is")


def _several() -> Iterator[Case]:
    yield Case("the same twice", f"{TEXT}\n{TEXT}", "PLAN_AMBIGUOUS")
    yield Case("two fences", f"{FENCE}json\n{OTHER}\n{FENCE}\nBetter:\n{FENCE}json\n{TEXT}\n{FENCE}", "PLAN_AMBIGUOUS")
    yield Case("a draft and a final", f"Draft: {OTHER} Final: {TEXT}", "PLAN_AMBIGUOUS")
    yield Case("a list of plans", f"[{TEXT}, {OTHER}]", "PLAN_AMBIGUOUS")
    yield Case("a list of plans in a fence", f"{FENCE}\n[{TEXT}, {OTHER}]\n{FENCE}", "PLAN_AMBIGUOUS")
    yield Case("lines of plans", f"{TEXT}\n{OTHER}\n{OTHER}\n", "PLAN_AMBIGUOUS")
    yield Case("a step behind the plan", f"{TEXT} and also {STEP}", "PLAN_AMBIGUOUS")
    yield Case("a step before the plan", f"{STEP}\n{TEXT}", "PLAN_AMBIGUOUS")
    yield Case("steps behind an empty plan", f'{{"goal": "g", "steps": []}}\n{STEP}', "PLAN_AMBIGUOUS")
    yield Case("YAML and JSON", f"{FENCE}yaml\n{YAML}{FENCE}\nor\n{TEXT}", "PLAN_AMBIGUOUS")
    yield Case("two of YAML", f"{FENCE}yaml\n{YAML}{FENCE}\nor\n{FENCE}yaml\n{YAML}{FENCE}", "PLAN_SYNTAX")
    yield Case(
        "a fence that is no plan beside it",
        f'{FENCE}json\n{{"order_id": "A1"}}\n{FENCE}\n{FENCE}json\n{TEXT}\n{FENCE}',
        "repaired",
    )
    yield Case("a plan in a string of another", set_to("goal", TEXT), "as it is")


def _cut() -> Iterator[Case]:
    for reason in ("length", "max_tokens", "MAX_TOKENS", "model_length", "error", "abort"):
        yield Case(f"stopped: {reason}", TEXT, "PLAN_TRUNCATED", reason)
    for reason in ("content_filter", "SAFETY", "refusal"):
        yield Case(f"filtered: {reason}", TEXT, "PLAN_REFUSED", reason)
    for ended in ("stop", "tool_calls", "end_turn", "eos", "", None):
        yield Case(f"ended: {ended}", TEXT, "as it is", ended)
    for name, end in (("the last brace", 1), ("two braces", 2), ("half", len(TEXT) // 2)):
        yield Case(f"cut before {name}", TEXT[:-end], "PLAN_TRUNCATED")
        yield Case(f"cut before {name}, in a fence", f"{FENCE}json\n{TEXT[:-end]}\n{FENCE}", "PLAN_TRUNCATED")
    yield Case("cut behind a step", TEXT[: TEXT.index(STEP)], "PLAN_TRUNCATED")
    yield Case("cut and another", f"{TEXT[:60]}\n{TEXT}", "PLAN_SYNTAX")
    yield Case("no beginning", TEXT[20:], "SCHEMA_INVALID")
    yield Case("YAML, not fenced", YAML, "PLAN_SYNTAX")
    yield Case("YAML, cut", YAML[: YAML.index("- id: s3")], "PLAN_SYNTAX")
    yield Case("YAML, cut in a fence", f"{FENCE}yaml\n{YAML[: YAML.index('- id: s3')]}", "PLAN_SYNTAX")
    yield Case("YAML in a fence", f"Here:\n{FENCE}yaml\n{YAML}{FENCE}\n", "repaired")
    yield Case("YAML in a file", YAML, "as it is", None)
    yield Case("YAML with a key twice", YAML.replace("goal:", "goal: g\ngoal:"), "DUPLICATE_KEY", None)


def _not_json() -> Iterator[Case]:
    yield Case("10,000 lists deep", raw("steps.0.args.order_id", "[" * 10_000 + "]" * 10_000), "PLAN_SYNTAX")
    yield Case("10,000 objects deep", '{"a":' * 10_000 + "1" + "}" * 10_000, "PLAN_SYNTAX")
    yield Case("nothing but brackets", "[" * 100_000, "PLAN_SYNTAX")
    yield Case("too long", TEXT + " " * MAX_TEXT, "PLAN_SYNTAX")
    yield Case("10 MB of text", "x" * 10_000_000, "PLAN_SYNTAX")
    yield Case(
        "a page for 502",
        "<html>\r\n<head><title>502 Bad Gateway</title><style>body {color: red}</style></head></html>",
        "PLAN_SYNTAX",
    )
    yield Case("a page with a script", '<!DOCTYPE html>\n<script>window.x = {"a": 1};</script>', "PLAN_SYNTAX")
    yield Case("an error of a server", '{"error": {"message": "overloaded", "type": "server_error"}}', "SCHEMA_INVALID")
    yield Case(
        "lines of a stream",
        f'data: {{"choices": [{{"delta": {{"content": {json.dumps(TEXT)}}}}}]}}\n\ndata: [DONE]',
        "SCHEMA_INVALID",
    )
    yield Case("UTF-16 read as Latin-1", TEXT.encode("utf-16").decode("latin-1"), "PLAN_SYNTAX")
    yield Case("TOML", 'goal = "g"\n[[steps]]\nid = "s1"\n', "PLAN_SYNTAX")
    yield Case("XML", "<plan><goal>g</goal><step id='s1' tool='get_order'/></plan>", "PLAN_SYNTAX")
    yield Case("a call in words", "get_order(order_id='A1')", "PLAN_SYNTAX")
    yield Case("a list in words", "1. Look the order up.\n2. Write to the customer.", "PLAN_SYNTAX")


def _no_plan() -> Iterator[Case]:
    for text in (
        "I cannot help with that.",
        "I'm sorry, but I can't assist with this request.",
        "As an AI, I am unable to do so.",
        "很抱歉，我无法帮助您完成这个请求。",
        "对不起，我不能这样做。",
        "申し訳ありませんが、お手伝いできません。",
        "Lo siento, no puedo ayudar.",
        "Je suis désolé, je ne peux pas vous aider.",
        "Das kann ich leider nicht tun.",
        "Извините, я не могу помочь.",
        "...",
        "null?",
    ):
        yield Case(f"refused: {text[:20]}", text, "PLAN_SYNTAX")
    for name, text in (("nothing", ""), ("white space", " \n\t "), ("a no-break space", "\u00a0")):
        yield Case(f"empty: {name}", text, "PLAN_EMPTY")
        yield Case(f"no JSON: {name}", text, "PLAN_SYNTAX")
    for text in ("{}", "[]", "null", "true", "42", '"done"', '{"goal": "g"}', '{"steps": []}', '{"error": "cannot"}'):
        yield Case(f"no plan: {text}", text, "SCHEMA_INVALID")
    yield Case("no steps", '{"goal": "g", "steps": []}', "PLAN_EMPTY")
    yield Case("no steps in a fence", f'{FENCE}json\n{{"goal": "g", "steps": []}}\n{FENCE}', "PLAN_EMPTY")
    yield Case("only the steps", json.dumps(PLAN["steps"]), "SCHEMA_INVALID")
    yield Case("only one step", STEP, "SCHEMA_INVALID")
    yield Case("a list of one plan", f"[{TEXT}]", "SCHEMA_INVALID")
    yield Case("inside another object", json.dumps({"plan": PLAN}), "SCHEMA_INVALID")
    yield Case("a call's arguments", json.dumps({"name": "plan", "arguments": TEXT}), "SCHEMA_INVALID")
    yield Case(
        "a list of calls",
        json.dumps({"tool_calls": [{"function": {"name": "plan", "arguments": TEXT}}]}),
        "SCHEMA_INVALID",
    )
    yield Case("its schema", json.dumps({"type": "object", "properties": {"goal": {}, "steps": {}}}), "SCHEMA_INVALID")


def _values() -> Iterator[Case]:
    argument = "steps.0.args.order_id"
    for name, text in (
        ("NaN", "NaN"),
        ("Infinity", "Infinity"),
        ("-Infinity", "-Infinity"),
        ("undefined", "undefined"),
        ("a leading zero", "007"),
        ("hexadecimal", "0x1F"),
        ("a plus", "+5"),
        ("no digit before", ".5"),
        ("no digit behind", "5."),
        ("underscores", "1_000"),
        ("a date", "2026-01-01"),
        ("nan", "nan"),
    ):
        yield Case(f"number: {name}", raw(argument, text), "PLAN_SYNTAX")
    for name, text in (
        ("1e999", "1e999"),
        ("-1e999", "-1e999"),
        ("2**64", str(2**64)),
        ("5,000 digits", "9" * 5_000),
        ("1e400 in a list", "[1e400]"),
        ("-2**63-1", str(-(2**63) - 1)),
    ):
        yield Case(f"number: {name}", raw(argument, text), "INVALID_ARGS")
    for name, text in (
        ("escaped NUL", r'"a\u0000b"'),
        ("raw NUL", '"a\x00b"'),
        ("escaped high surrogate", r'"\ud83d"'),
        ("escaped low surrogate", r'"\ude00x"'),
        ("raw surrogate", '"\ud800"'),
        ("surrogates turned round", r'"\ude00\ud83d"'),
    ):
        yield Case(f"character in an argument: {name}", raw(argument, text), "INVALID_ARGS")
        yield Case(f"character in the goal: {name}", raw("goal", text), "SCHEMA_INVALID")
        yield Case(f"character in a key: {name}", TEXT.replace('"order_id"', text), "INVALID_ARGS")
    yield Case("an emoji in escapes", raw(argument, r'"\ud83d\ude00"'), "as it is")
    for path in ("goal", "answer"):
        yield Case(f"twice: {path}", TEXT.replace(f'"{path}": ', f'"{path}": "x", "{path}": '), "DUPLICATE_KEY")
    for key in ("id", "tool", "args", "depends_on", "order_id", "status", "limit"):
        yield Case(f"twice: {key}", TEXT.replace(f'"{key}": ', f'"{key}": 0, "{key}": ', 1), "DUPLICATE_KEY")
    yield Case("twice: steps", TEXT.replace('"steps": ', '"steps": [], "steps": '), "DUPLICATE_KEY")
    yield Case("twice, by an escape", TEXT.replace('"goal": ', '"\\u0067oal": "x", "goal": '), "DUPLICATE_KEY")
    yield Case("twice, deep down", raw(argument, '{"a": [{"b": {"c": 1, "c": 2}}]}'), "DUPLICATE_KEY")
    yield Case("twice, with the same value", TEXT.replace('"limit": 5', '"limit": 5, "limit": 5'), "DUPLICATE_KEY")
    yield Case("twice, in a fence", f"{FENCE}json\n{TWICE}\n{FENCE}", "DUPLICATE_KEY")


WRONG_TYPES: list[tuple[str, JSON]] = [
    ("goal", 7),
    ("goal", None),
    ("goal", ["g"]),
    ("goal", " "),
    ("steps", {"s1": {}}),
    ("steps", "none"),
    ("steps", None),
    ("steps.0", None),
    ("steps.0", "s1"),
    ("steps.0.id", 1),
    ("steps.0.id", "s 1"),
    ("steps.0.id", ""),
    ("steps.0.id", "x" * 65),
    ("steps.0.id", "inputs"),
    ("steps.0.id", "第一步"),
    ("steps.0.tool", None),
    ("steps.0.tool", ["get_order"]),
    ("steps.0.tool", {"name": "get_order"}),
    ("steps.0.action", "call"),
    ("steps.0.action", "Tool"),
    ("steps.0.args", None),
    ("steps.0.args", ["A1"]),
    ("steps.0.args", "order_id=A1"),
    ("steps.0.args", [{"name": "order_id", "value": "A1"}]),
    ("steps.0.depends_on", None),
    ("steps.0.depends_on", "s2"),
    ("steps.0.depends_on", [["s2"]]),
    ("steps.0.depends_on", {"s2": True}),
    ("steps.0.reason", None),
    ("steps.0.reason", 3),
    ("answer", 3),
    ("answer", {"text": "x"}),
]


def _forms() -> Iterator[Case]:
    for path, value in WRONG_TYPES:
        yield Case(f"type: {path} {json.dumps(value)[:30]}", set_to(path, value), "SCHEMA_INVALID")
    for path, value in (
        ("require_approval", "yes"),
        ("require_approval", 1),
        ("timeout_s", "5"),
        ("timeout_s", 0),
        ("timeout_s", True),
        ("risk", "none"),
        ("source", "internal"),
        ("approved", True),
        ("dependsOn", ["s1"]),
    ):
        yield Case(f"field: {path} {value}", set_to("steps.0", {**PLAN["steps"][0], path: value}), "SCHEMA_INVALID")
    for path in ("goal", "steps"):
        yield Case(
            f"missing: {path}", json.dumps({key: item for key, item in PLAN.items() if key != path}), "SCHEMA_INVALID"
        )
    yield Case("missing: id", without("steps.0.id"), "SCHEMA_INVALID")
    yield Case("missing: tool", without("steps.0.tool"), "SCHEMA_INVALID")
    yield Case("missing: args", without("steps.0.args"), "INVALID_ARGS")
    yield Case("missing: action", without("steps.0.action"), "as it is")
    yield Case("missing: answer", json.dumps({key: PLAN[key] for key in ("goal", "steps")}), "as it is")
    yield Case("a newer version", json.dumps({**PLAN, "schema_version": 99}), "VERSION_TOO_NEW")
    yield Case("names in capitals", TEXT.replace('"goal"', '"Goal"'), "SCHEMA_INVALID")


def _quoted() -> Iterator[Case]:
    yield Case("JSON in a string", json.dumps(TEXT), "repaired")
    yield Case("JSON in a string, in a fence", f"{FENCE}json\n{json.dumps(TEXT)}\n{FENCE}", "PLAN_SYNTAX")
    yield Case("a fence in a string", json.dumps(f"{FENCE}json\n{TEXT}\n{FENCE}"), "repaired")
    yield Case("JSON in a string, cut", json.dumps(TEXT[:-1]), "PLAN_TRUNCATED")
    yield Case("JSON in a string, a key twice", json.dumps(TWICE), "DUPLICATE_KEY")
    yield Case("JSON in a string in a string", json.dumps(json.dumps(TEXT)), "SCHEMA_INVALID")
    for path in ("steps", "steps.0", "steps.0.args", "steps.2.args", "steps.2.depends_on"):
        yield Case(f"in a string: {path}", within(path, json.dumps), "repaired")
        yield Case(f"in a string, cut: {path}", within(path, lambda found: json.dumps(found)[:-1]), "SCHEMA_INVALID")
        yield Case(
            f"in a string, more behind: {path}", within(path, lambda found: json.dumps(found) + " x"), "SCHEMA_INVALID"
        )
    yield Case("in a string, in Python", within("steps.2.args", str), "repaired")
    yield Case(
        "in a string, a key twice", set_to("steps.0.args", '{"order_id": "A1", "order_id": "A2"}'), "DUPLICATE_KEY"
    )
    yield Case("an argument that is JSON in a string", set_to("steps.0.args.order_id", '{"a": 1}'), "as it is")


def _parts() -> Iterator[Case]:
    """What can be read is the value of a key, and the object around it is broken."""
    for name, text in (
        ("a comma first", TEXT.replace("{", "{,", 1)),
        ("a plus first", TEXT.replace("{", "{+", 1)),
        ("a number as a key", TEXT.replace('"goal"', "1", 1)),
        ("a full-width brace", TEXT.replace("{", "｛", 1)),
        ("round brackets", f"({TEXT[1:-1]})"),
        ("no braces", TEXT[1:-1]),
        ("arrows", TEXT.replace(":", " =>")),
        ("around a plan", f'{{, "plan": {TEXT}}}'),
        ("full-width, around a plan", f'｛"plan": {TEXT}｝'),
        ("around a plan, in lines", f'｛\n  "plan": {PRETTY}\n｝'),
    ):
        yield Case(f"a part: {name}", text, "PLAN_SYNTAX")
    yield Case("a part of prose in quotes", f'Here is the "plan": {TEXT}', "repaired")
    yield Case("a part of prose", f"Sure, plan: {TEXT}", "repaired")
    yield Case("nothing but fences", f"{FENCE}json\n" * 10_000, "PLAN_SYNTAX")
    yield Case("a goal that nobody sees", set_to("goal", "\u200b\u2060"), "SCHEMA_INVALID")
