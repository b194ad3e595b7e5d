"""Tests of loading a user's toolkit: every way in which it can go wrong is told in plain words."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plans.errors import NameClash, ToolkitNotLoadable
from tools.loading import load_toolkit

GOOD = """
from tools.registry import Toolkit
orders = Toolkit("mine")
class Kits:
    nested = Toolkit("nested")
number = 3
@orders.tool(effect="read")
def hello(name: str) -> str: return name
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty project that is the current folder; its modules are forgotten again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def refusal(reference: str) -> str:
    """What a person reads who gave this reference."""
    with pytest.raises(ToolkitNotLoadable) as refused:
        load_toolkit(reference)
    said = str(refused.value)
    assert "Traceback" not in said
    return said


def test_a_toolkit_is_found_in_the_current_folder(project: Path) -> None:
    """module:attr is looked for beside the user, also in packages and behind dots."""
    (project / "kit.py").write_text(GOOD)
    (project / "shop").mkdir()
    (project / "shop" / "kit2.py").write_text(GOOD)
    assert load_toolkit("kit:orders").name == "mine"
    assert load_toolkit("kit:Kits.nested").name == "nested"
    assert list(load_toolkit("shop.kit2:orders").tools) == ["hello"]


def test_the_current_folder_comes_last(project: Path) -> None:
    """A file of the user's never stands in for an installed module."""
    (project / "json.py").write_text("raise RuntimeError('shadowed')")
    (project / "kit.py").write_text("import json\njson.dumps({})\n" + GOOD)
    assert load_toolkit("kit:orders").name == "mine"
    assert sys.path[-1] == str(project)
    load_toolkit("kit:orders")
    assert sys.path.count(str(project)) == 1


@pytest.mark.parametrize("reference", ["kit", "kit:", ":orders", "kit:orders:x", "", "kit.:a", "kit:a b"])
def test_a_reference_of_another_form_is_told_the_form(project: Path, reference: str) -> None:
    """What is no module:attr is answered with the form and an example."""
    assert "module:attr (for example shop.kit:orders)" in refusal(reference)


@pytest.mark.parametrize("reference", ["shop/kit.py:orders", "shop/kit:orders", "kit.py"])
def test_a_path_is_told_the_module(project: Path, reference: str) -> None:
    """Whoever gives a file's path is told what to write instead."""
    said = refusal(reference)
    assert ("shop.kit:orders" if "orders" in reference else "kit:NAME") in said.split("write ")[1]


def test_a_missing_module_is_told_where_it_was_looked_for(project: Path) -> None:
    """The folder is named, and only the part of the name that is not there."""
    (project / "shop").mkdir()
    assert f"no module 'nothing', neither installed nor in {project}" in refusal("nothing:orders")
    assert "no module 'shop.kit'" in refusal("shop.kit:orders")


def test_a_missing_import_of_the_module_is_told_apart(project: Path) -> None:
    """A module that is there and needs one that is not names both, and the line."""
    (project / "kit.py").write_text("\nimport not_installed_at_all\n")
    said = refusal("kit:orders")
    assert "module 'kit' imports 'not_installed_at_all', which is not installed" in said
    assert f"{project / 'kit.py'}:2" in said


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def broken(:\n", "no valid Python"),
        ("x = 1\n\n1 / 0\n", "ZeroDivisionError: division by zero at"),
        ("\n\nraise SystemExit(3)\n", "ended the program while it was imported at"),
        ("\n\nimport sys; sys.exit('bye')\n", "ended the program while it was imported at"),
        ("\n\nclass E(Exception):\n    pass\nraise E\n", "E: no message"),
        ("\n\nfrom tools.registry import nothing_like_this\n", "ImportError: cannot import name"),
        ("\n\nassert False, 'multi\\nline'\n", "AssertionError: multi line"),
    ],
)
def test_an_error_at_import_is_one_line_with_its_place(project: Path, source: str, said: str) -> None:
    """Whatever a module does when it is imported, the answer names the error and the user's own line."""
    (project / "kit.py").write_text(source)
    answer = refusal("kit:orders")
    assert said in answer
    assert f"{project / 'kit.py'}:" in answer
    assert "\n" not in answer


def test_the_place_is_where_the_error_is(project: Path) -> None:
    """An error in a module that the toolkit imports is placed there."""
    (project / "kit.py").write_text("import inner\n")
    (project / "inner.py").write_text("\n\n\nboom()\n")
    assert f"{project / 'inner.py'}:4" in refusal("kit:orders")


def test_what_is_not_a_toolkit_is_told_what_there_is(project: Path) -> None:
    """A wrong attribute is answered with the toolkits of the module."""
    (project / "kit.py").write_text(GOOD)
    (project / "empty.py").write_text("")
    assert "'number' is a int, not a Toolkit; toolkits there: orders" in refusal("kit:number")
    assert "kit has no 'order'" in refusal("kit:order")
    assert "kit has no 'Kits.order'" in refusal("kit:Kits.order")
    assert "make one there" in refusal("empty:orders")


def test_ctrl_c_while_importing_is_no_answer_of_ours(project: Path) -> None:
    """An interrupt of the person ends the program, as it should."""
    (project / "kit.py").write_text("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        load_toolkit("kit:orders")


def test_what_a_module_prints_does_not_reach_stdout(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """stdout belongs to the one JSON object of the command."""
    (project / "kit.py").write_text("print('loading')\n" + GOOD)
    load_toolkit("kit:orders")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "loading\n")


@pytest.mark.parametrize("place", ["tools/kit.py", "graph/__init__.py", "plans/sub/x.py", "nodes.py"])
def test_a_package_named_like_ours_is_named(project: Path, place: str) -> None:
    """A project with code in a package of our name is told which one, and what to do."""
    file = project / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("")
    name = Path(place).parts[0].removesuffix(".py")
    with pytest.raises(NameClash, match=rf"{project / name}.*own package '{name}'.*Rename") as clash:
        load_toolkit("kit:orders")
    assert clash.value.exit_code == 2


def test_a_folder_without_code_is_no_clash(project: Path) -> None:
    """A folder of plan files called plans, or of model weights called checkpoints, is nobody's package."""
    (project / "plans").mkdir()
    (project / "plans" / "refund.yaml").write_text("")
    (project / "checkpoints").mkdir()
    (project / "kit.py").write_text(GOOD)
    assert load_toolkit("kit:orders").name == "mine"


def test_our_own_folder_is_no_clash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Surestep can be run from its own checkout."""
    root = Path(__file__).resolve().parents[2]
    monkeypatch.chdir(root)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert load_toolkit("tools.orders:orders").name == "orders"
