"""Who counts as dead: only a worker of which this very kernel knows that it has ended."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from checkpoints.workers import known_dead, name_of_worker, present

NAMED = "from checkpoints.workers import name_of_worker; print(name_of_worker(), flush=True); input()"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells boots and namespaces on Linux only")


@contextmanager
def another() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A living process, and the name of its worker."""
    child = subprocess.Popen([sys.executable, "-c", NAMED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout is not None
        try:
            yield child.stdout.readline().strip(), child
        finally:
            child.kill()


def test_a_process_is_dead_once_it_is_killed() -> None:
    """While it lives it is not; killed it is, whether or not its parent has taken notice."""
    with another() as (name, child):
        assert not known_dead(name)
        child.kill()
        assert child.stdout is not None
        child.stdout.read()
        while " Z " not in Path(f"/proc/{child.pid}/stat").read_text("utf-8"):
            time.sleep(0.01)
        assert known_dead(name)
        child.wait()
        assert known_dead(name)


@pytest.mark.parametrize(("place", "other"), [(0, "elsewhere"), (1, "another-boot"), (2, "pid:[1]"), (4, "-")])
def test_of_another_machine_boot_or_container_nothing_is_known(place: int, other: str) -> None:
    """A dead process's name, changed in what tells where it ran: it may live there."""
    with another() as (name, child):
        child.kill()
        child.wait()
        parts = name.split(" ")
        parts[place] = other
        assert known_dead(name)
        assert not known_dead(" ".join(parts))


def test_a_pid_that_was_given_again_is_another_process() -> None:
    """The same number with another start is not the worker that was meant."""
    with another() as (name, _):
        parts = name.split(" ")
        parts[4] = str(int(parts[4]) - 1)
        assert known_dead(" ".join(parts))


def test_a_worker_of_this_process_lives_until_it_is_closed() -> None:
    """Two engines in one process know of each other; one that has closed has awaited what it did."""
    name = name_of_worker()
    with present(name):
        assert not known_dead(name)
    assert known_dead(name)


@pytest.mark.parametrize("name", ["", "host:12", "a b c"])
def test_a_name_that_says_too_little_is_nobody_known(name: str) -> None:
    """An older version's name, or none: whoever that was may live."""
    assert not known_dead(name)
