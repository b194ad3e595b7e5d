"""Who acts: names that can be stored, and the one role that a run of theirs acts in."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from plans.errors import NotPermitted
from plans.principals import Principal


def test_a_run_acts_in_a_role_that_its_principal_has_and_in_no_other() -> None:
    """Who asks for a role that is not theirs gets none; who has one need not name it; who has several has to."""
    ann = Principal(name="ann", roles=("support", "finance"))
    assert ann.acting_in("finance") == "finance"
    assert ann.acting_in(None) is None
    assert Principal(name="bob", roles=("support",)).acting_in(None) == "support"
    assert Principal(name="eve").acting_in(None) is None
    for principal in (ann, Principal(name="eve")):
        with pytest.raises(NotPermitted, match="cannot act as 'admin'"):
            principal.acting_in("admin")


def test_who_is_asked_for_by_no_role_is_everybody() -> None:
    """An empty list of roles is open to all, any other to those who have one of them."""
    ann = Principal(name="ann", roles=("support",))
    assert ann.is_one_of(())
    assert ann.is_one_of(("finance", "support"))
    assert not ann.is_one_of(("finance",))
    assert not Principal(name="eve").is_one_of(("finance",))


@pytest.mark.parametrize("tenant", ["..", "a/b", "a\\b", ".hidden", "-x", "a b", "a\n", "x" * 101, "\u202ea"])
def test_a_tenant_that_could_be_another_folder_is_refused(tenant: str) -> None:
    """A tenant names its folder of inputs: nothing that leads out of it, hides, or looks like another name."""
    with pytest.raises(ValidationError):
        Principal(name="ann", tenant=tenant)


@pytest.mark.parametrize("role", ["", "a b", "a,b", "a\n", "x" * 101, "a\u202eb"])
def test_a_role_is_one_word(role: str) -> None:
    """Roles are listed with commas and spaces in settings and policies; no name may hold either."""
    with pytest.raises(ValidationError):
        Principal(name="ann", roles=(role,))
