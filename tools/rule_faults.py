"""What keeps a tool's rules from making sense: conditions that cannot be read, arguments that are not there, types that
a check cannot judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plans.expressions import InvalidExpression, names_read
from plans.wording import nearest
from tools.named_rules import Amount, Condition, NamedRule, OneOf
from tools.pointers import followed
from tools.problems import kind_of
from tools.tool import Tool

_KINDS = {"a string": "string", "an integer": "integer", "a number": "number", "a boolean": "boolean"}
_MAX_STEPS = 40


def rule_faults(tool: Tool) -> Iterator[str]:
    """Every fault of every rule of a tool."""
    for index, rule in enumerate(tool.spec.rules):
        if isinstance(rule, Condition):
            yield from _of_condition(tool, rule, rule.name or f"rules.{index}")
        else:
            yield from _of_check(tool, rule)
    names = Counter(rule.label for rule in tool.spec.rules if not isinstance(rule, Condition) or rule.name)
    for name in (name for name, count in names.items() if count > 1):
        yield f"has {names[name]} rules called {name!r}; give each a name of its own"


def _of_condition(tool: Tool, rule: Condition, label: str) -> Iterator[str]:
    try:
        read = names_read(rule.condition)
    except InvalidExpression as error:
        yield f"has a rule that cannot be read ({label}): {error}"
        return
    if not tool.arguments.open:
        for name in sorted(read - tool.arguments.names):
            yield f"has a rule ({label}) over {name!r}; {_meant(name, tool.arguments.names)}"


def _of_check(tool: Tool, rule: NamedRule) -> Iterator[str]:
    places = [rule.arg, rule.currency_arg] if isinstance(rule, Amount) else [rule.arg]
    for place in places:
        found, lacking = _types_at(tool.input_schema, place.split("."), closed=not tool.arguments.open)
        if lacking is not None:
            yield f"has a rule ({rule.label}) over {place!r}; {_meant(lacking[0], lacking[1])}"
        elif found is not None and place == rule.arg:
            yield from _of_types(rule, found)


def _of_types(rule: NamedRule, found: frozenset[str]) -> Iterator[str]:
    """Null is no type of its own here: what is missing is judged by `optional`."""
    suits = rule.suits
    if isinstance(rule, OneOf):
        suits = frozenset(_KINDS[kind_of(value)] for value in rule.values)
        suits |= {"number", "integer"} if suits & {"number", "integer"} else set()
    if found - {"null"} and not found & suits:
        yield (
            f"has a rule ({rule.label}) that judges {' or '.join(sorted(suits))}, but {rule.arg} is "
            f"{' or '.join(sorted(found - {'null'}))}"
        )


def _types_at(
    schema: Mapping[str, Any], path: Sequence[str], *, closed: bool
) -> tuple[frozenset[str] | None, tuple[str, frozenset[str]] | None]:
    """The JSON types that a schema allows at a place (None: it does not say), or the name that it does not have there
    with those it has. Lists are looked into, as the checks do."""
    here: list[Mapping[str, Any]] = [schema]
    for depth, name in enumerate(path):
        forms = [form for node in here for form in _forms(node, schema)]
        properties = [form["properties"] for form in forms if isinstance(form.get("properties"), Mapping)]
        here = [known[name] for known in properties if isinstance(known.get(name), Mapping)]
        if not here:
            known = frozenset(name for group in properties for name in group)
            strict = closed if depth == 0 else bool(known) and not any(_takes_more(form) for form in forms)
            return None, (name, known) if strict else None
    return _kinds([form for node in here for form in _forms(node, schema)]), None


def _forms(node: Any, root: Mapping[str, Any], steps: int = 0) -> Iterator[Mapping[str, Any]]:
    """The schemas that a value may fulfil, choices and references followed, lists replaced by their elements."""
    if not isinstance(node, Mapping) or steps > _MAX_STEPS:
        return
    if isinstance(ref := node.get("$ref"), str):
        try:
            node = followed(root, ref)
        except LookupError:
            return
        yield from _forms(node, root, steps + 1)
        return
    choices = [choice for keyword in ("anyOf", "oneOf", "allOf") for choice in node.get(keyword) or ()]
    for choice in choices:
        yield from _forms(choice, root, steps + 1)
    if node.get("type") == "array" and isinstance(node.get("items"), Mapping):
        yield {"type": "array"}
        yield from _forms(node["items"], root, steps + 1)
    elif not choices or "type" in node or "properties" in node:
        yield node


def _takes_more(form: Mapping[str, Any]) -> bool:
    """Whether an object of this form may have properties that it does not name."""
    if form.get("type", "object") != "object":
        return False
    return "properties" not in form or form.get("additionalProperties") is not False


def _kinds(forms: Sequence[Mapping[str, Any]]) -> frozenset[str] | None:
    """None where one of the forms does not say its type."""
    kinds: set[str] = set()
    for form in forms:
        declared = form.get("type")
        values = form.get("enum", [form["const"]] if "const" in form else None)
        if isinstance(declared, str):
            kinds.add(declared)
        elif isinstance(declared, list):
            kinds |= set(declared)
        elif isinstance(values, list):
            kinds |= {_KINDS.get(kind_of(value), "null") for value in values}
        else:
            return None
    return frozenset(kinds) or None


def _meant(name: str, known: frozenset[str]) -> str:
    close = nearest(name, sorted(known))
    if close:
        return f"did you mean {close!r}?"
    return f"there is {', '.join(sorted(known)) or 'nothing'}"
