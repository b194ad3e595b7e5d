"""The paths within a JMESPath expression: those that have to lead somewhere, and the name that each begins with."""

from __future__ import annotations

from collections.abc import Iterator

from plans.expressions import Tree

_ROOTED = frozenset(
    {"subexpression", "index_expression", "pipe", "projection", "value_projection", "filter_projection", "flatten"}
)
_TESTS = frozenset({"and_expression", "or_expression", "not_expression"})


def rooted(path: Tree) -> tuple[str, Tree] | None:
    """A path over named values as the name that it begins with and the path after it; None for any other."""
    if path["type"] == "field":
        return path["value"], {"type": "current", "children": []}
    if path["type"] not in _ROOTED or (found := rooted(path["children"][0])) is None:
        return None
    return found[0], {**path, "children": [found[1], *path["children"][1:]]}


def paths_needed(tree: Tree, *, tested: bool = False) -> Iterator[Tree]:
    """The paths in an expression that have to lead somewhere for it to make sense. One that is only `tested` (by !, &&
    and ||, against null, by not_null) may well be missing."""
    kind = tree["type"]
    if kind == "field" or kind in _ROOTED:
        if not tested:
            yield tree
    elif not _bears_nothing(tree):
        for child in tree.get("children", []):
            if isinstance(child, dict):
                yield from paths_needed(child, tested=kind in _TESTS)


def _bears_nothing(tree: Tree) -> bool:
    """Whether what is missing may be handed to this."""
    match tree["type"]:
        case "comparator":
            return any(map(_is_null, tree["children"]))
        case "function_expression":
            return bool(tree["value"] == "not_null")
        case kind:
            return bool(kind == "expref")


def compared(tree: Tree) -> Iterator[Tree]:
    """Everything that an expression compares with something."""
    children = [child for child in tree.get("children", []) if isinstance(child, dict)]
    if tree["type"] == "comparator":
        yield from children
    for child in children:
        yield from compared(child)


def _is_null(tree: Tree) -> bool:
    """Whether this is null, also written as the field of that name, which finds nothing and so is null too."""
    return tree.get("value", ...) is None or (tree["type"] == "field" and tree["value"] == "null")
