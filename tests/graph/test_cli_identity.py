"""Who works at the command line: by the settings, in one role, among one tenant's threads; and tokens for others."""

from __future__ import annotations

import jwt
import pytest

from tests.graph.kits import plan, step
from tests.graph.program import Project, Run

KIT = ("--toolkit", "rolekit:kit")
ROLE_KIT = '''
from tools.registry import Toolkit

kit = Toolkit("talk")


@kit.tool(effect="read", roles=("support",))
def look(text: str) -> str:
    """Look."""
    return text
'''
SECRET = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def talking(project: Project, surestep: Run) -> Run:
    """A project with a tool for one role, and a plan of it."""
    project.write("rolekit.py", ROLE_KIT)
    project.write("p.json", plan(step("s1", "look", args={"text": "hi"})))
    return surestep


def test_a_run_acts_in_the_role_that_is_named(talking: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--role` is one of SURESTEP_ROLES; another is refused in a sentence, and without one a tool of a role is not
    there."""
    monkeypatch.setenv("SURESTEP_USER", "ann")
    monkeypatch.setenv("SURESTEP_ROLES", "support,sales")
    assert talking("run", "--plan", "p.json", *KIT, "--role", "support").code == 0
    for role, why in ((("--role", "admin"), "ann cannot act as 'admin': it has support, sales"), ((), "NOT_PERMITTED")):
        ended = talking("run", "--plan", "p.json", *KIT, *role)
        assert (ended.code, why in ended.err) == (2, True), ended.err
        assert talking("plan", "--plan", "p.json", *KIT, *role).code == 2
    monkeypatch.setenv("SURESTEP_ROLES", "support")
    assert talking("run", "--plan", "p.json", *KIT).code == 0


def test_threads_of_another_tenant_are_not_there(talking: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """SURESTEP_TENANT says whose threads are listed, shown and archived."""
    monkeypatch.setenv("SURESTEP_ROLES", "support")
    monkeypatch.setenv("SURESTEP_TENANT", "acme")
    assert talking("run", "--plan", "p.json", *KIT, "--thread", "t1").code == 0
    monkeypatch.setenv("SURESTEP_TENANT", "best")
    assert talking("runs", "--json").json == {"runs": []}
    assert "no run was ever started on thread 't1'" in talking("show", "t1").err
    assert talking("archive", "--older-than", "0s", "--json").json["archived"] == []
    assert "runs: none yet" in talking("doctor", *KIT).out
    monkeypatch.setenv("SURESTEP_TENANT", "acme")
    assert talking("show", "t1").code == 0
    assert len(talking("archive", "--older-than", "0s", "--json").json["archived"]) == 1


@pytest.mark.parametrize("name", ["SURESTEP_USER", "SURESTEP_ROLES", "SURESTEP_TENANT"])
def test_a_name_that_cannot_be_one_is_told_as_any_setting(
    talking: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A wrong user, role or tenant is a sentence that names the variable, and no run begins."""
    monkeypatch.setenv(name, "a\u202eb/../c")
    ended = talking("run", "--plan", "p.json", *KIT)
    assert (ended.code, name in ended.err) == (2, True), ended.err
    assert "Traceback" not in ended.err


def test_a_token_is_made_where_the_secret_is(surestep: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`surestep token` prints a token and nothing else; without a key, or with a wrong name, it says what to do."""
    assert "set auth_key and auth_audience first" in surestep("token", "ann").err
    monkeypatch.setenv("SURESTEP_AUTH_KEY", SECRET)
    assert "without auth_audience" in surestep("token", "ann").err
    monkeypatch.setenv("SURESTEP_AUTH_AUDIENCE", "surestep")
    made = surestep("token", "ann", "--role", "support", "--role", "sales", "--tenant", "acme", "--for", "15m")
    claims = jwt.decode(made.out.strip(), SECRET, algorithms=["HS256"], audience="surestep")
    assert {"sub": "ann", "roles": ["support", "sales"], "tenant": "acme", "aud": "surestep"}.items() <= claims.items()
    assert claims["exp"] - claims["iat"] == 900
    for wrong in (("a\u202eb",), ("ann", "--role", "a b"), ("ann", "--tenant", "../x"), ("ann", "--for", "7")):
        ended = surestep("token", *wrong)
        assert (ended.code, ended.out) == (2, ""), ended
    assert surestep("token", "ann", "--json").json["for_s"] == 28_800
