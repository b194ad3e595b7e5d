"""A run as a person sees it: the command on a real terminal, read back from its screen."""

from __future__ import annotations

import pytest

from tests.graph.kits import plan, step
from tests.graph.program import Project
from tests.graph.ptys import at_desk
from tests.graph.terminal import Terminal

RUN = ("run", "--plan", "p.json", "--toolkit", "mykit:kit", "--thread", "t")
ASKING = plan(
    step("s1", "wait", args={"seconds": 1.5}, title="Wait a little"),
    step("s2", "send", "s1", args={"to": "ann", "text": "hi"}, require_approval=True, title="Tell Ann"),
    step("s3", "loud", args={"text": "words"}),
    goal="Tell Ann that we have waited",
    answer="waited ${s1.waited} s, and told ${s2.sent}",
)


@pytest.mark.parametrize(
    "width", [pytest.param(40, marks=pytest.mark.slow), 80, pytest.param(120, marks=pytest.mark.slow)]
)
def test_the_tree_the_question_and_the_answer(width: int, project: Project) -> None:
    """Steps with status, time and progress; the question below the tree; then the tree, the answer and the cost."""
    project.write("p.json", ASKING)
    with at_desk(project, *RUN, width=width) as desk:
        if width >= 80:
            desk.until("▸ s1  Wait a little  wait")
            screen = desk.until("after s1")
            assert any(row.startswith("Tell Ann that we have waited") for row in screen)
            desk.until("% part")
        desk.until("[l] later")
        assert any(row.startswith("! s2") for row in desk.terminal.screen)
        assert project.calls() == ["wait 1.5"]
        assert desk.echoes()
        desk.press("maybe\n")
        desk.until("nothing is decided")
        desk.until(lambda terminal: "".join(terminal.screen).count("[l] later") == 2)
        desk.press("a\n")
        assert desk.ended() == 0
    history = desk.terminal.history
    assert project.calls() == ["wait 1.5", "send ann"]
    last = "\n".join(history[-12:])
    assert "✓ s2" in last
    assert "waited 1.5 s, and told ann" in last.replace("\n", " ")
    assert "done · 3 steps · 3 calls" in last.replace("\n", " ")
    assert history.index("started words") < next(at for at, row in enumerate(history) if row.startswith("Tell Ann"))


@pytest.mark.slow
def test_finished_rows_are_written_once(project: Project) -> None:
    """While another step runs for two seconds, the row of a finished step and the goal are not written again."""
    project.write("p.json", plan(step("s1", "double", args={"number": 1}), step("s2", "wait", args={"seconds": 2.5})))
    with at_desk(project, *RUN) as desk:
        desk.until("✓ s1")
        row = next(at for at, text in enumerate(desk.terminal.history) if text.startswith("✓ s1"))
        before = desk.terminal.written[row]
        desk.until("done · 2 steps")
    assert desk.terminal.written[row] == before
    assert desk.terminal.written[row + 1] > before + 5


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("l\n", "paused"),
        pytest.param("\x03", "paused", marks=pytest.mark.slow),
        pytest.param("\x04", "paused", marks=pytest.mark.slow),
    ],
)
def test_later_leaves_it_paused(keys: str, said: str, project: Project) -> None:
    """ "later", Ctrl-C and Ctrl-D at a question decide nothing: exit 3, and the commands that answer."""
    project.write("p.json", ASKING)
    with at_desk(project, *RUN) as desk:
        desk.until("[l] later")
        desk.press(keys)
        assert desk.ended() == 3
    screen = "\n".join(desk.terminal.screen)
    assert said in screen
    assert "surestep approve t s2 --toolkit mykit:kit" in screen
    assert screen.count("s2: send") == 1, "what was just asked is not shown again"
    assert project.calls() == ["wait 1.5"]
    assert project.run("show", "t", "--json").json["status"] == "paused"


@pytest.mark.slow
def test_keys_pressed_before_a_question_do_not_answer_it(project: Project) -> None:
    """An impatient `a` and Enter while a step runs approves nothing, and does not write into the tree."""
    project.write("p.json", ASKING)
    with at_desk(project, *RUN) as desk:
        desk.until("% part")
        assert not desk.echoes()
        desk.press("a\na\n\n")
        desk.until("[l] later")
        rows = [row for row in desk.terminal.history if row.startswith("Tell Ann")]
        assert len(rows) == 1
        desk.press("r\n")
        desk.until("why (may be empty)")
        desk.press("not now\n")
        assert desk.ended() == 1
    assert "not now" in "\n".join(desk.terminal.screen)
    assert project.calls() == ["wait 1.5"]


@pytest.mark.slow
def test_ctrl_c_on_a_terminal_stops_and_says_how_to_go_on(project: Project) -> None:
    """The tree ends with where each step stands, the terminal is as before, exit 5; resume shows what was done."""
    project.write("p.json", plan(step("s1", "double", args={"number": 1}), step("s2", "wait", args={"seconds": 5})))
    with at_desk(project, *RUN) as desk:
        desk.until("% part")
        desk.press("\x03")
        assert desk.ended() == 5
    screen = "\n".join(desk.terminal.screen)
    assert "✓ s1" in screen
    assert "· s2" in screen
    assert "surestep resume t --toolkit mykit:kit" in screen
    with at_desk(project, "resume", "t", "--toolkit", "mykit:kit") as desk:
        desk.until("▸ s2")
        assert any(row.startswith("✓ s1") for row in desk.terminal.screen)
        assert desk.ended() == 0
        assert desk.terminal.screen[-1].startswith("done · 2 steps")
    assert sorted(project.calls()) == ["double 1", "wait 5.0", "wait 5.0"]


@pytest.mark.slow
def test_many_steps_fit_a_small_screen(project: Project) -> None:
    """On ten rows a plan of thirty steps shows what runs, counts the rest, and is printed in full at its end."""
    steps = [step(f"s{n}", "wait", *([f"s{n - 1}"] if n else []), args={"seconds": 0.1}) for n in range(30)]
    project.write("p.json", plan(*steps))

    def in_the_middle(terminal: Terminal) -> bool:
        screen = "\n".join(terminal.screen)
        return "finished step" in screen and "more steps to come" in screen and "▸" in screen

    with at_desk(project, *RUN, height=10) as desk:
        desk.until(in_the_middle)
        assert len(desk.terminal.screen) <= 10
        assert desk.ended() == 0
    assert [row.split()[1] for row in desk.terminal.history if row.startswith("✓ s")] == [f"s{n}" for n in range(30)]


def test_json_on_a_terminal_is_silent_and_asks_nothing(project: Project) -> None:
    """A program that runs on a terminal gets its one object, and a paused run stays paused."""
    project.write("p.json", ASKING)
    with at_desk(project, *RUN, "--json", width=4_000) as desk:
        assert desk.ended() == 3
    rows = [row for row in desk.terminal.history if row and row not in ("printed words", "started words")]
    assert rows[0].startswith("{")


def test_a_refusal_leaves_no_tree_behind(project: Project) -> None:
    """Where nothing begins, the screen holds the one sentence."""
    with at_desk(project, "run", "bake a cake", width=400) as desk:
        assert desk.ended() == 2
    rows = [row for row in desk.terminal.history if row]
    assert len(rows) == 1, rows
    (row,) = rows
    assert row.startswith("surestep: no template matches")
