"""What a tool may say in SQL: the first word decides, however it is hidden."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.statements import CONTROL, ROWS, first_word, refuse_control, require_rows
from plans.failure import ToolFailure

BLANKS = st.lists(st.sampled_from([" ", "\n", "\t", "(", "-- select\n", "/* select */", "/* a /* b */ c */"])).map(
    "".join
)


@given(BLANKS, st.sampled_from(sorted(ROWS | CONTROL)), st.booleans())
def test_the_first_word_is_found_behind_blanks_comments_and_brackets(before: str, word: str, upper: bool) -> None:
    """Nothing that PostgreSQL skips hides a statement's first word, or stands in for it."""
    assert first_word(before + (word.upper() if upper else word) + " x") == word


@pytest.mark.parametrize("sql", ["", "  ", "--", "/* never closed", "-- select 1", "123", '"quoted"'])
def test_a_text_without_a_first_word_is_refused(sql: str) -> None:
    """What cannot be read is not let through."""
    with pytest.raises(ToolFailure):
        require_rows(sql)
    with pytest.raises(ToolFailure):
        refuse_control(sql)


@pytest.mark.parametrize("word", sorted(CONTROL))
def test_whatever_acts_on_the_transaction_is_refused_by_name(word: str) -> None:
    """Commit, rollback, savepoint, set, begin, listen, copy and their kind never pass, and the refusal names them."""
    for check in (require_rows, refuse_control):
        with pytest.raises(ToolFailure, match=word.upper()) as caught:
            check(f"/* x */ {word} y")
        assert caught.value.code == "NOT_PERMITTED"


@pytest.mark.parametrize("word", sorted(ROWS))
def test_whatever_reads_or_writes_rows_passes(word: str) -> None:
    """The statements tools are written with go through both checks."""
    require_rows(f"{word} x")
    refuse_control(f"{word} x")


def test_a_setting_changed_by_a_function_is_refused() -> None:
    """`set_config` is SET by another name."""
    with pytest.raises(ToolFailure, match="set_config"):
        require_rows("SELECT set_config ('search_path', 'evil', false)")
