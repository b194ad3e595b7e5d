"""The style gates over every file: sizes, names, first lines, blind excepts, unfinished work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import gates

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("plans", "tools", "checkpoints", "nodes", "graph", "evals")
SOURCES = sorted([ROOT / "surestep.py", *(file for name in PACKAGES for file in (ROOT / name).rglob("*.py"))])
TESTS = sorted((ROOT / "tests").rglob("*.py"))
BESIDE = sorted(file for name in ("examples", "bench") for file in (ROOT / name).rglob("*.py"))
MODULE_LINES = 300
TEST_MODULE_LINES = 600
# Where a tool's error becomes a value, and where what a tool raised in a thread is carried to where it is awaited.
CATCH_ALL = {ROOT / "tools" / "normalise.py", ROOT / "tools" / "isolation.py"}

Gate = Callable[[str], Iterator[str]]


def offences(files: list[Path], gate: Gate) -> str:
    """What a gate finds, a line each with file and place; empty when all is well."""
    found = [f"{file.relative_to(ROOT)}:{line}" for file in files for line in gate(file.read_text(encoding="utf-8"))]
    return "\n".join(found)


def test_every_room_is_covered() -> None:
    """The gates see every package: a gate over no files would pass for ever."""
    assert {file.relative_to(ROOT).parts[0] for file in SOURCES} == {*PACKAGES, "surestep.py"}
    assert TESTS


def test_modules_and_functions_stay_short() -> None:
    """No module has more than 300 lines (600 in tests), no function more than 50."""
    assert offences(SOURCES + BESIDE, lambda source: gates.too_long(source, MODULE_LINES)) == ""
    assert offences(TESTS, lambda source: gates.too_long(source, TEST_MODULE_LINES)) == ""


def test_every_file_says_its_job_in_its_first_line() -> None:
    """A reader learns from line 1 what a file is for."""
    assert offences(SOURCES + BESIDE + TESTS, gates.without_first_line) == ""


def test_names_say_something() -> None:
    """No name of ours holds a word that fits everything."""
    assert offences(SOURCES + BESIDE, gates.unused_words) == ""
    files = [file for file in SOURCES + BESIDE + TESTS if gates.empty_word(file.stem)]
    assert not files


def test_blind_excepts_stand_around_tools_only() -> None:
    """Everything may be caught only around a foreign tool: bugs of ours surface."""
    assert offences([file for file in SOURCES if file not in CATCH_ALL], gates.blind_excepts) == ""


def test_nothing_is_left_unfinished() -> None:
    """No file says that something is still to be written."""
    files = [file for file in SOURCES + BESIDE + TESTS if file.name not in {"gates.py", "test_sizes.py"}]
    assert offences(files, gates.unfinished) == ""


def test_patterns_match_alike_on_every_python() -> None:
    """No pattern uses what the first releases of Python 3.11 get wrong."""
    assert offences(SOURCES + BESIDE, gates.possessive_patterns) == ""


def test_every_test_states_its_guarantee() -> None:
    """Each test says in its docstring what it guarantees."""
    assert offences(TESTS, gates.tests_without_guarantee) == ""


LONG = "def long():\n" + "    x = 1\n" * gates.FUNCTION_LINES


@pytest.mark.parametrize(
    ("gate", "source", "offence"),
    [
        (lambda source: gates.too_long(source, 2), "a = 1\n" * 3, "1: the module has 3 lines, 2 are allowed"),
        (lambda source: gates.too_long(source, 300), LONG, "1: long has 51 lines, 50 are allowed"),
        (gates.without_first_line, '# first\n"""Says its job."""\n', "1: the first line"),
        (gates.without_first_line, '"""\nSays its job."""\n', "1: the first line"),
        (gates.unused_words, "class OrderManager: pass", "1: OrderManager holds 'manager'"),
        (gates.unused_words, "def f(row_data): ...", "1: row_data holds 'data'"),
        (gates.unused_words, "process: int = 1", "1: process holds 'process'"),
        (gates.unused_words, "def do_it(): ...", "1: do_it holds 'do_'"),
        (gates.blind_excepts, "try: f()\nexcept (ValueError, Exception): pass", "2: except (ValueError, Exception)"),
        (gates.blind_excepts, "try: f()\nexcept: pass", "2: except"),
        (gates.blind_excepts, "try: f()\nexcept Exception: raise", "2: except Exception"),
        (gates.blind_excepts, "try: f()\nexcept BaseException: g()", "2: except BaseException"),
        (gates.unfinished, "x = 1  # TODO later", "1: TODO"),
        (gates.unfinished, "raise NotImplementedError", "1: raise NotImplementedError"),
        (gates.possessive_patterns, "re.compile(r'a*+b')", "1: a*+b"),
        (gates.possessive_patterns, "re.match('(?>a|ab)c', text)", "1: (?>a|ab)c"),
        (gates.tests_without_guarantee, "def test_a():\n    assert 1", "1: test_a has no docstring"),
    ],
)
def test_each_gate_sees_its_offence(gate: Gate, source: str, offence: str) -> None:
    """Every gate can fail: it names the offence in a source that has it."""
    assert any(found.startswith(offence) for found in gate(source))


@pytest.mark.parametrize("name", ["metadata", "processed", "informed", "do", "Database", "undo_step", "information"])
def test_words_that_only_look_alike_pass(name: str) -> None:
    """A gate over names looks at whole words, never at parts of them."""
    assert gates.empty_word(name) is None


def test_cleaning_up_and_passing_on_is_no_blind_except() -> None:
    """A roll back for whatever came, cancellation included, may stand anywhere when it raises again."""
    assert not list(gates.blind_excepts("try: f()\nexcept BaseException:\n    undo()\n    raise"))


def test_an_override_keeps_the_names_of_its_base() -> None:
    """A parameter that a foreign base class named is no name of ours; the same parameter without the mark is."""
    source = "def loads(self, data): ..."
    assert list(gates.unused_words(source))
    assert not list(gates.unused_words(f"@override\n{source}"))
