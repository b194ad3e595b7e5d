"""Bad input gets a clear error and loses nothing: one plain sentence, the right exit code, and no run left behind."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.graph.kits import plan, step
from tests.graph.program import COMMAND, Project, Run, stopped_by

GOAL = "Find anomalous orders in this file and summarise them"
GOOD = plan(step("s1", "double", args={"number": 4}))
KIT = ("--toolkit", "mykit:kit")
JUDGEMENT = {"id": "s2", "action": "llm", "instruction": "Is it rude?", "depends_on": ["s1"]}
Make = Callable[[Path], object]


def test_options_that_make_no_sense_are_named(surestep: Run) -> None:
    """What was given, what is expected: for every option that is read from text."""
    surestep("run").refuses("nothing to do", "--plan FILE", "--template NAME")
    surestep("run", "--plan", "p", "--template", "t").refuses("choose one")
    surestep("run", "x", "--limit", "nonsense").refuses("--limit takes NAME=VALUE, not 'nonsense'")
    surestep("run", "x", "--limit", "max_step=3").refuses("no limit 'max_step'", "did you mean max_steps?")
    surestep("run", "x", "--limit", "max_steps=abc").refuses("max_steps is 'abc'", "integer")
    surestep("run", "x", "--limit", "max_steps=0").refuses("max_steps is 0", "greater than or equal to 1")
    surestep("run", "x", "--limit", "a=1", "--limit", "max_wall_s=-1").refuses("no limit 'a'", "max_wall_s is -1")
    surestep("run", "x", "--input", "orders").refuses("--input takes NAME=VALUE, not 'orders'")
    surestep("run", "x", "--input", "=3").refuses("--input takes NAME=VALUE, not '=3'")
    surestep("run", "x", "--input", "a=[1,").refuses("--input a begins like JSON and is none")
    surestep("run", "x", "--input", 'a={"k":1,"k":2}').refuses("a key stands twice")
    surestep("run", "x", "--input", "a=1", "--input", "a=2").refuses("--input a is given twice ('1' and '2')")
    surestep("run", "x", "--input", "a b=1").refuses("'a b' cannot name an input", "letters")
    surestep("run", "x", "--input", "a=18446744073709551616").refuses("'a' cannot be stored", "64 bits")
    surestep("run", "x", "--file", "a=p", "--file", "a=q").refuses("--file a is given twice ('p' and 'q')")
    surestep("run", "x", "--file", "a=").refuses("--file a names no file")
    surestep("run", "x", "--file", "a=p", "--input", "a=1").refuses("a is given by --input and by --file")
    surestep("run", "x", "--approve", "maybe").refuses("'maybe' is not one of 'ask', 'all', 'none'")
    surestep("run", "--template", "nope").refuses("there is no template 'nope'", "anomalous_orders")
    surestep("run", "x", "--nope").refuses("No such option: --nope", "surestep run --help")
    surestep("frob").refuses("No such command 'frob'", "surestep --help")
    surestep("show").refuses("Missing argument 'THREAD'")
    surestep("--config", "none.toml", "runs").refuses("the settings file none.toml does not exist")


def test_a_command_alone_shows_what_there_is(surestep: Run) -> None:
    """`surestep` without a command is a usage error that lists the commands."""
    assert "doctor" in surestep().refuses("a command is missing")


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ("", "the goal is empty"),
        ("  \n", "the goal is empty"),
        ("x" * 100_000, "the goal has 100,000 characters; at most 20,000 are read"),
        ("a\x00b", "U+0000"),
        ("a\ud800b", "U+D800"),
    ],
    ids=["empty", "blank", "100 kB", "NUL", "lone surrogate"],
)
def test_a_goal_that_is_none_is_refused(goal: str, words: str, surestep: Run) -> None:
    """Nothing is stored, and the sentence says what a goal may be."""
    surestep("run", goal).refuses(words)
    assert surestep("runs", "--json").json == {"runs": []}


def test_a_goal_that_nothing_plans_says_what_to_set(surestep: Run) -> None:
    """No template and no model: exit 2, one message that names the settings, and no run."""
    surestep("run", "bake a cake").refuses("no template matches", "SURESTEP_MODEL", "OPENAI_BASE_URL", "--plan")
    assert surestep("runs", "--json").json == {"runs": []}


def test_a_judgement_without_a_model_is_refused_before_anything_is_done(project: Project, surestep: Run) -> None:
    """The step that comes before it would have been called for nothing; one that may be done without is let through."""
    judged = [step("s1", "send", args={"to": "ann", "text": "hi"}), JUDGEMENT]
    project.write("p.json", plan(*judged))
    surestep("run", "--plan", "p.json", *KIT, "--thread", "t").refuses("s2 is a judgement", "SURESTEP_SMALL_MODEL")
    assert project.calls() == []
    reader = step("s3", "double", "s2", args={"number": 1}, on_dependency_failure="degrade")
    project.write("p.json", plan(JUDGEMENT | {"depends_on": []}, reader))
    assert surestep("run", "--plan", "p.json", *KIT, "--thread", "t").code == 0


def test_a_broken_plan_names_the_command_that_says_all(project: Project, surestep: Run) -> None:
    """`run` reads a plan before it knows any tool; what else may be wrong with it is for `validate`."""
    project.write("p.json", {"goal": "g", "steps": [{"id": "a", "tool": "nope", "retries": 3}]})
    surestep("run", "--plan", "p.json", *KIT).refuses("retries", "surestep validate p.json")


@pytest.mark.parametrize("thread", ["", " ", "a\nb", "a\x00b", "-x", "x" * 201, " a", "a\u202eb", "a\ud800"])
def test_a_thread_id_that_cannot_be_used_is_refused(thread: str, project: Project, surestep: Run) -> None:
    """An id is one printable line of bounded length: everywhere that a thread is named."""
    project.write("p.json", GOOD)
    surestep("run", "--plan", "p.json", *KIT, f"--thread={thread}").refuses("the thread id")
    surestep("show", "--", thread).refuses("the thread id")
    surestep("run", "--plan", "p.json", *KIT, f"--request-id={thread}").refuses("the request id")


@pytest.mark.parametrize("thread", ["ann's thread", "线程/1", "a=b;c", "${s1}", "%s", "x" * 200])
def test_an_odd_thread_id_works(thread: str, project: Project, surestep: Run) -> None:
    """What can be stored and shown is taken as it is."""
    project.write("p.json", GOOD)
    assert surestep("run", "--plan", "p.json", *KIT, "--thread", thread, "--json").json["thread_id"] == thread
    assert surestep("show", thread, "--json").json["status"] == "done"


@pytest.mark.parametrize("command", ["show", "resume", "approve", "reject"])
def test_an_unknown_thread_is_told(command: str, surestep: Run) -> None:
    """Every command that takes a thread says that nothing ever ran on it, and where those are that did."""
    step_id = ["s1"] if command in ("approve", "reject") else []
    surestep(command, "nowhere", *step_id).refuses("thread 'nowhere'", "surestep runs")


def _missing(folder: Path) -> None:
    (folder / "other.csv").write_text("a\n1\n")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_missing, ("there is no such file", "other.csv")),
        (lambda folder: (folder / "orders.csv").mkdir(), ("is the folder", "give a file in it")),
        (lambda folder: os.mkfifo(folder / "orders.csv"), ("no regular file",)),
        (lambda folder: (folder / "orders.csv").symlink_to("orders.csv"), ("orders.csv",)),
    ],
    ids=["missing", "folder", "pipe", "loop of links"],
)
def test_a_file_that_cannot_be_an_input(make: Make, words: tuple[str, ...], project: Project, surestep: Run) -> None:
    """The input and the path are named, before anything is stored."""
    make(project.folder)
    surestep("run", GOAL, "--file", "orders=orders.csv").refuses("the input 'orders'", *words)
    assert surestep("runs", "--json").json == {"runs": []}


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00\x01\x02\xff" * 50, b"%PDF-1.4 ...", b"order_id,amount\n"],
    ids=["empty", "binary", "PDF", "header only"],
)
def test_a_file_that_is_no_table_fails_in_plain_words(content: bytes, project: Project, surestep: Run) -> None:
    """The run ends, done or failed, with a sentence; nothing breaks."""
    project.write("orders.csv", content)
    ended = surestep("run", GOAL, "--file", "orders=orders.csv")
    assert ended.code in (0, 1)
    assert "Traceback" not in ended.err + ended.out
    assert "a fault of Surestep's own" not in ended.err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty; expected JSON or YAML"),
        (" \n", "is empty"),
        (b"\xff\xfe\x00\x01binary", "is not UTF-8 text"),
        (b"x" * 9_000_000, "more than 8,000,004 bytes"),
        ("just some words", "fault"),
        ('{"goal": "x", "steps": [', "fault"),
        ("[1, 2]", "fault"),
        ('{"goal": "x", "steps": []}', "fault"),
    ],
    ids=["empty", "blank", "binary", "9 MB", "prose", "cut", "list", "no steps"],
)
def test_a_plan_file_that_is_no_plan(content: str | bytes, words: str, project: Project, surestep: Run) -> None:
    """The same refusal from `run`, `plan` and by standard input."""
    project.write("p.json", content)
    surestep("run", "--plan", "p.json", *KIT).refuses(words)
    surestep("plan", "--plan", "p.json", *KIT).refuses(words)
    body = content.encode() if isinstance(content, str) else content
    project.run("run", "--plan", "-", *KIT, stdin=body).refuses(words)


def test_a_plan_file_that_cannot_be_read(project: Project, surestep: Run) -> None:
    """Missing, and a folder."""
    surestep("run", "--plan", "none.yaml").refuses("the plan none.yaml cannot be read: No such file")
    surestep("run", "--plan", str(project.folder)).refuses("is a folder; name a file")
    surestep("validate", "none.yaml").refuses("cannot be read")


def test_every_fault_of_a_plan_is_told_at_once(project: Project, surestep: Run) -> None:
    """A cycle, an unknown tool, wrong arguments and an input that is not given, in one message."""
    project.write(
        "p.json",
        plan(
            step("a", "nope", "b"),
            step("b", "double", "a", args={"number": "x"}),
            step("c", "double", args={"number": "${inputs.count}"}),
        ),
    )
    said = surestep("run", "--plan", "p.json", *KIT).refuses("CYCLE", "UNKNOWN_TOOL", "INVALID_ARGS", "count")
    assert said.count("\n  - ") >= 4
    assert surestep("runs", "--json").json == {"runs": []}


def test_the_plan_from_standard_input_runs(project: Project) -> None:
    """`--plan -` reads it there."""
    ended = project.run("run", "--plan", "-", *KIT, "--json", stdin=b'{"goal":"g","steps":[{"id":"s","tool":"double","args":{"number":2},"reason":"r"}]}')  # fmt: skip  # noqa: E501
    assert (ended.code, ended.json["status"]) == (0, "done")


def test_two_runs_on_one_thread(project: Project) -> None:
    """While one process drives a thread, another start or resume of it is told so with exit 6, and disturbs nothing."""
    project.write("p.json", plan(step("s1", "wait", args={"seconds": 90})))
    first = project.start("run", "--plan", "p.json", *KIT, "--thread", "t", "--json")
    project.wait_for("wait 90.0", first)
    project.run("resume", "t", *KIT).refuses("is being driven by", code=6)
    project.run("run", "--plan", "p.json", *KIT, "--thread", "t").refuses("not finished", "surestep resume t")
    ended = stopped_by(first, signal.SIGINT)
    assert (ended.code, ended.json["steps"][0]["status"]) == (5, "pending"), ended
    assert project.calls() == ["wait 90.0"]


def test_a_database_that_cannot_be_used(project: Project) -> None:
    """Host down, and not a URL: quickly, in words, without the password."""
    down = project.run("runs", environment={"SURESTEP_DATABASE_URL": "postgresql://ann:topsecret@127.0.0.1:1/shop"})
    assert "topsecret" not in down.refuses("cannot connect to PostgreSQL at 127.0.0.1:1", "nothing listens there")
    strange = project.run("runs", environment={"SURESTEP_DATABASE_URL": "topsecret"})
    assert "topsecret" not in strange.refuses("the database URL cannot be read", "postgresql://user:password@host")


def test_a_wrong_password(project: Project, refusing_server: str) -> None:
    """The server's refusal in words: whose password, and never what it was."""
    ended = project.run("run", GOAL, environment={"SURESTEP_DATABASE_URL": refusing_server})
    assert "topsecret" not in ended.refuses("the password for user 'ann' is wrong")


@pytest.mark.slow
def test_folders_that_cannot_be_written(project: Project) -> None:
    """The embedded database's folder at once; the output folder by the step that would write into it."""
    project.write("file", "no folder")
    without = {**project.environment, "SURESTEP_DATABASE_URL": ""}
    ended = project.run("runs", environment={**without, "SURESTEP_FOLDER": str(project.folder / "file" / "db")})
    ended.refuses("file/db")
    project.write("orders.csv", "order_id,amount\nA1,3\nA2,-4\n")
    output = {"SURESTEP_OUTPUT": str(project.folder / "file" / "out")}
    ended = project.run("run", GOAL, "--file", "orders=orders.csv", environment=output)
    assert ended.code in (1, 2)
    assert "file/out" in ended.out + ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("", "", ("there is no module 'brokenkit'",)),
        ("brokenkit.py", "x = 1", ("has no 'kit'",)),
        ("brokenkit.py", "kit = 3", ("'kit' is a int, not a Toolkit",)),
        ("brokenkit.py", "kit = (", ("is no valid Python", "brokenkit.py:1")),
        ("brokenkit.py", "raise ValueError('bad day')", ("ValueError: bad day", "brokenkit.py:1")),
        ("brokenkit.py", "import sys; sys.exit(0)", ("ended the program", "brokenkit.py:1")),
        ("brokenkit.py", "import not_there_at_all", ("imports 'not_there_at_all', which is not installed",)),
    ],
    ids=["missing", "no attribute", "no toolkit", "no Python", "raises", "SystemExit", "missing import"],
)
def test_a_toolkit_that_cannot_be_loaded(
    name: str, content: str, words: tuple[str, ...], project: Project, surestep: Run
) -> None:
    """The reference and the cause, with the place in the user's code, and no traceback."""
    if name:
        project.write(name, content)
    surestep("tools", "--toolkit", "brokenkit:kit").refuses("brokenkit", *words)


def test_a_toolkit_reference_that_is_none(surestep: Run) -> None:
    """What a reference looks like, and what was probably meant."""
    surestep("tools", "--toolkit", "brokenkit").refuses("module:attr", "not 'brokenkit'")
    surestep("tools", "--toolkit", "kits/shop.py:kit").refuses("write kits.shop:kit")


@pytest.mark.parametrize("name", ["tools", "graph"])
@pytest.mark.parametrize("way", ["folder", "PYTHONPATH", "python -m"])
@pytest.mark.slow
def test_a_folder_of_the_user_named_like_ours(name: str, way: str, project: Project) -> None:
    """The clash is named with its folder and what to do, however it comes about."""
    project.write(f"{name}/__init__.py", "")
    more: dict[str, Any] = {}
    if way == "PYTHONPATH":
        path = f"{project.folder}{os.pathsep}{project.environment['PYTHONPATH']}"
        more = {"environment": {"PYTHONPATH": path}, "cwd": project.folder.parent}
    if way == "python -m":
        more = {"command": [part for part in COMMAND if part != "-P"]}
    said = project.run("tools", *KIT, **more).refuses(str(project.folder / name), f"{name!r}")
    assert "ename" in said


def test_a_deleted_current_folder(project: Project) -> None:
    """A shell that stands in a folder which is gone is told to go elsewhere."""
    project.write("gone/here.txt", "")
    code = (
        "import os, sys, shutil; shutil.rmtree(os.getcwd()); os.execv(sys.executable, "
        "[sys.executable, '-P', '-m', 'surestep', *sys.argv[1:]])"
    )
    ended = project.run("runs", command=[sys.executable, "-c", code], cwd=project.folder / "gone")
    ended.refuses("the current folder has been deleted")


@pytest.mark.slow
def test_readers_who_go_away_are_no_error(project: Project) -> None:
    """`surestep … | head -1`, and a closed stdout: the exit code is the run's, and nothing is said."""
    project.write("p.json", plan(step("s1", "double", args={"number": 4}), answer="line\n" * 100_000))
    run = f"{' '.join(COMMAND_WORDS)} run --plan p.json --toolkit mykit:kit 2>err; echo $? >code"
    piped = project.run(command=["sh", "-c", f"({run}) | head -1"])
    assert (piped.out.strip(), (project.folder / "code").read_text().strip()) in {("", "0"), ("line", "0")}
    assert "Traceback" not in (project.folder / "err").read_text()
    closed = project.run(command=["sh", "-c", f"{' '.join(COMMAND_WORDS)} runs >&-"])
    assert (closed.code, closed.err) == (0, "")
    full = project.run(command=["sh", "-c", f"{' '.join(COMMAND_WORDS)} runs >/dev/full"])
    assert full.code == 2
    assert "cannot be written to standard output: No space left" in full.err


@pytest.mark.slow
def test_nobody_listening_to_the_progress_does_not_stop_a_run(project: Project) -> None:
    """Stderr goes away in the middle: the run goes on to its end."""
    project.write("p.json", plan(*(step(f"s{n}", "double", args={"number": n}) for n in range(20))))
    run = f"{' '.join(COMMAND_WORDS)} run --plan p.json --toolkit mykit:kit --thread t"
    project.run(command=["sh", "-c", f"{run} 2>&1 >/dev/null | head -1"])
    assert len(project.calls()) == 20
    assert project.run("show", "t", "--json").json["status"] == "done"


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "latin-1"}, {"PYTHONIOENCODING": "ascii"}])
@pytest.mark.slow
def test_a_terminal_that_knows_few_characters(locale: dict[str, str], project: Project) -> None:
    """Marks are written in ASCII and other characters as escapes; nothing fails."""
    project.write("p.json", plan(step("s1", "loud", args={"text": "订单 ✓ é"}, title="统计 ✓"), answer="订单 ✓ é"))
    ended = project.run("run", "--plan", "p.json", *KIT, "--thread", "t", environment=locale)
    assert (ended.code, "Traceback" in ended.err) == (0, False)
    listed = project.run("templates", "--language", "zh", environment=locale)
    assert (listed.code, listed.err) == (0, "")


@pytest.mark.parametrize("columns", ["40", "1", "0", "x", "100000"])
def test_a_narrow_screen(columns: str, project: Project, surestep: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever COLUMNS says, every listing is printed."""
    project.write("p.json", GOOD)
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("FORCE_COLOR", "1")
    for command in (["run", "--plan", "p.json", *KIT], ["tools"], ["runs"], ["templates"], ["doctor"]):
        ended = surestep(*command)
        assert (ended.code, ended.out != "", "Traceback" in ended.err) == (0, True, False), ended


COMMAND_WORDS = ("${PYTHON}", "-P", "-m", "surestep")
