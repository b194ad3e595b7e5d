"""References within a document lead where RFC 6901 says, and nowhere else."""

from __future__ import annotations

import pytest

from plans.values import JSON
from tools.pointers import followed

DOCUMENT: JSON = {"a/b": {"c~d": 1, "e f": 2}, "list": ["x", {"y": 3}], "": 4, "%25": 5}


@pytest.mark.parametrize(
    ("ref", "found"),
    [
        ("#", DOCUMENT), ("#/a~1b/c~0d", 1), ("#/a~1b/e%20f", 2), ("#/list/1/y", 3), ("#/", 4), ("#/%2525", 5),
        ("#/list/0", "x"),
    ],
)  # fmt: skip
def test_a_reference_leads_to_what_it_names(ref: str, found: JSON) -> None:
    """Escapes of pointers and of URLs are read, and lists are counted from 0."""
    assert followed(DOCUMENT, ref) == found


@pytest.mark.parametrize(
    "ref",
    ["", "list", "/list", "other.json#/list", "#list", "#/none", "#/list/2", "#/list/-1", "#/list/x",
     "#/list/" + "9" * 5_000, "#/list/0/x"],
)  # fmt: skip
def test_what_leads_out_or_to_nothing_is_said(ref: str) -> None:
    """Another document, a mark, a name that is not there, an index beyond the list, a place within a text."""
    with pytest.raises(LookupError):
        followed(DOCUMENT, ref)
