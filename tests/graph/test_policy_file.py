"""The policy in a file: what is refused of it, in words, and when it is looked at again."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.opening import policy_from
from graph.policy_file import MOST_BYTES, PolicyFile, policy_of
from graph.settings import Settings
from nodes.policing import NO_POLICY
from plans.errors import ConfigurationError

RULES = """
[asking]
expires_s = 600

[[rules]]
name = "small refunds"
tools = "*refund*"
args.amount = { at_most = 50 }
then = "allow"

[[rules]]
name = "large refunds"
tools = "*refund*"
then = "ask"
approvers = ["finance"]
needed = 2
"""

BAD = [
    ("rules = 3", "rules input should be a valid tuple"),
    ("[[rule]]\nname = 'a'", "rule is unknown; did you mean rules?"),
    ("[[rules]]\nname = 'a'\nthen = 'allow'\ntool = 'x'", "rules[1] 'a' tool is unknown; did you mean tools?"),
    ("[[rules]]\nthen = 'allow'", "rules[1] name field required"),
    ("[[rules]]\nname = 'a'\nthen = 'alow'", "rules[1] 'a' then input should be 'allow', 'ask' or 'deny'"),
    (
        "[[rules]]\nname = 'a'\nthen = 'allow'\nargs.amount = {atmost = 3}",
        "rules[1] 'a' args.amount.atmost is unknown; did you mean at_most?",
    ),
    (
        "[[rules]]\nname = 'a'\nthen = 'deny'\napprovers = ['x']",
        "rules[1] 'a' says approvers and then = 'deny'; that is for rules that ask",
    ),
    ("[asking]\nneeded = 0\n[[floors]]\nname = 'f'", "floors[1] 'f' risk field required"),
    ("[[rules]", "is no TOML"),
    ("version = 1\nversion = 1", "is no TOML"),
    ("\xff", "is no TOML"),
]


@pytest.mark.parametrize(("content", "words"), BAD)
def test_what_is_wrong_with_a_policy_is_said_with_its_place(content: str, words: str) -> None:
    """Rules by number and name, unknown words with the one that was probably meant."""
    with pytest.raises(ConfigurationError) as refused:
        policy_of(content.encode("latin-1"), Path("p.toml"))
    assert words in str(refused.value)
    assert "p.toml" in str(refused.value)


def test_all_errors_are_told_at_once() -> None:
    """Two rules, two errors, one message."""
    content = b"[[rules]]\nname = 'a'\n[[rules]]\nname = 'b'\nthen = 'x'"
    with pytest.raises(ConfigurationError, match=r"rules\[1\] 'a' then .*; rules\[2\] 'b' then"):
        policy_of(content, Path("p.toml"))


def test_a_file_is_looked_at_again(tmp_path: Path) -> None:
    """What it says now counts; broken or gone it is an error, and nothing older is used in its place."""
    file = tmp_path / "policy.toml"
    file.write_text(RULES)
    source = PolicyFile(file)
    first = source.read()
    assert source.read() is first
    assert [rule.name for rule in first.rules] == ["small refunds", "large refunds"]
    file.write_text(RULES.replace("50", "90"))
    assert source.read().sha256 != first.sha256
    file.write_text("[[rules]")
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="no TOML"):
            source.read()
    file.unlink()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        source.read()
    file.write_text("#" * (MOST_BYTES + 1))
    with pytest.raises(ConfigurationError, match="bytes"):
        source.read()


def test_the_documented_policy_can_be_used() -> None:
    """The example in docs/policy.md is one: it denies, asks and allows what it says."""
    page = (Path(__file__).resolve().parents[2] / "docs/policy.md").read_text(encoding="utf-8")
    shown = policy_of(page.split("```toml\n")[1].split("```")[0].encode(), Path("docs/policy.md"))
    assert [rule.then for rule in shown.rules] == ["allow", "ask", "allow"]
    assert (len(shown.floors), len(shown.trusted), shown.asking.approvers) == (1, 1, ("operations",))


def test_settings_name_the_file(tmp_path: Path) -> None:
    """By the file of settings or the environment; one that is not there is refused at once."""
    file = tmp_path / "policy.toml"
    with pytest.raises(ConfigurationError, match="cannot be read"):
        policy_from(Settings.load(environment={"SURESTEP_POLICY": str(file)}))
    file.write_text("")
    assert policy_from(Settings.load(environment={"SURESTEP_POLICY": str(file)})) is not NO_POLICY
    assert policy_from(Settings.load(environment={})) is NO_POLICY
