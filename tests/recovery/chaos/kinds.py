"""What is done to a run in each kind of trial; each gives what is wrong afterwards, nothing if all is well."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checkpoints.cluster import Cluster
from tests.recovery.chaos.cases import DURABILITIES, RENEWED, Case, Kind
from tests.recovery.child import cut
from tests.recovery.forks import Child
from tests.recovery.kit import WIRE
from tests.recovery.trial import Trial, Trials

SHORT_S = 2.0
"""A lease that a trial can wait for."""
DISK = "1m"


@dataclass(frozen=True)
class Verdict:
    """What a trial came to. `hit` says that the run was stopped where it should be; `surfaced` are effects that
    happened twice at the one point where only the receiver can prevent it (rule 6), after somebody was asked."""

    wrong: tuple[str, ...] = ()
    hit: bool = True
    surfaced: tuple[str, ...] = ()


@dataclass(frozen=True)
class Place:
    """Where the trials take place: `shared` for most, `fresh` makes a database for one alone, `cluster` its server.

    `usual_s` is how long a run takes that nobody stops."""

    shared: Trials
    fresh: Callable[[], Any]
    cluster: Cluster
    seed: int
    usual_s: float


def killed(place: Place, case: Case) -> Verdict:
    """SIGKILL at a point; another process goes on."""
    trial = place.shared.trial()
    first = trial.start("first", at=case.point, nth=case.nth, durability=case.durability, **_renewed(case))
    return _gone_on(trial, first.ends() == -signal.SIGKILL)


def interrupted(place: Place, case: Case) -> Verdict:
    """SIGINT at a point: an orderly end leaves nothing in doubt, and the next process need not wait for the lease."""
    trial = place.shared.trial()
    more = {"at": case.point, "nth": case.nth, "action": "interrupt", "durability": case.durability}
    hit = trial.start("first", **more, **_renewed(case)).ends() != 0
    left = trial.moment().in_doubt()
    verdict = _gone_on(trial, hit)
    return Verdict((*verdict.wrong, *(f"{unit} is in doubt after an orderly end" for unit in left)), hit)


def random_kill(place: Place, case: Case) -> Verdict:
    """SIGKILL at any moment; the one that goes on is killed too now and then."""
    chance = case.chance(place.seed)
    trial = place.shared.trial()
    first = trial.start("first", durability=chance.choice([*DURABILITIES, None]))
    hit = _killed_after(first, chance.uniform(0, place.usual_s))
    before = trial.moment()
    if chance.random() < 0.3:
        _killed_after(trial.start("second"), chance.uniform(0, place.usual_s))
    verdict = _gone_on(trial, hit)
    return Verdict((*verdict.wrong, *trial.violations(before, trial.start("last").ended())), hit)


def together(place: Place, case: Case) -> Verdict:
    """Two processes resume a killed run at the same moment: one drives it, both have its answer."""
    trial = place.shared.trial()
    hit = _killed_after(trial.start("first"), case.chance(place.seed).uniform(0.1, place.usual_s))
    before = trial.moment()
    pair = [trial.start("left"), trial.start("right")]
    ended = [child.ended() for child in pair]
    wrong = trial.violations(before, trial.start("last").ended())
    told = {(each["status"], each["answer"]) for each in ended}
    if told != {(place.shared.expected["status"], place.shared.expected["answer"])}:
        wrong.append(f"the two were told {told}")
    return Verdict(tuple(wrong), hit)


def stopped(place: Place, case: Case) -> Verdict:
    """A worker is paused past its lease, another one goes on, and the first one wakes: its late writes are refused."""
    trial = place.shared.trial()
    more = dict(_renewed(case)) or {"lease_s": SHORT_S}
    first = trial.start("first", at=case.point, nth=case.nth, action="stop", **more)
    try:
        first.until("stopped")
    except AssertionError:
        return Verdict(hit=False)
    before = trial.moment()
    trial.start("second", lease_s=SHORT_S).ended()
    first.signal(signal.SIGCONT)
    first.ends()
    wrong = trial.violations(before, trial.start("third", lease_s=SHORT_S).ended())
    return _sorted_out(case, wrong)


def connections_cut(place: Place, case: Case) -> Verdict:
    """All connections to the database end at a point, or at any moment; the run goes on by itself or is resumed."""
    with place.fresh() as trials:
        trial: Trial = trials.trial()
        if case.point is not None:
            more = {"at": case.point, "nth": case.nth, "action": "cut"}
            return _survived(trial, trial.start("first", **more, **_renewed(case)), hit=True)
        first = trial.start("first")
        time.sleep(case.chance(place.seed).uniform(0, place.usual_s))
        cut(trials.url)
        return _survived(trial, first, hit=True)


def restarted(place: Place, case: Case) -> Verdict:
    """The server is restarted in the middle of a run, half of the times without a chance to end anything."""
    chance = case.chance(place.seed)
    trial = place.shared.trial()
    first = trial.start("first", lease_s=SHORT_S)
    time.sleep(chance.uniform(0.05, place.usual_s))
    if chance.random() < 0.5:
        pid = int((place.cluster.home / "postmaster.pid").read_text().split("\n", 1)[0])
        subprocess.run(["kill", "-QUIT", str(pid)], check=True)
        _until_gone(place.cluster)
    else:
        place.cluster.stop()
    place.cluster.start()
    return _survived(trial, first, hit=True)


def disk_full(place: Place, case: Case) -> Verdict:
    """The folder of large results is full; when there is room again, the run goes on and ends as it would have."""
    trial = place.shared.trial()
    folder = trial.folder / "artifacts"
    folder.mkdir(parents=True)
    with _small_disk(folder) as small:
        if not small:
            return Verdict(hit=False)
        (folder / "filler").write_bytes(b"x" * (1 << 20))
        first = trial.start("first")
        first.ends()
        before = trial.moment()
        (folder / "filler").unlink()
        second = trial.start("second")
        wrong = trial.violations(before, second.ended())
    return Verdict(tuple(wrong))


KINDS: Mapping[Kind, Callable[[Place, Case], Verdict]] = {
    "kill": killed,
    "interrupt": interrupted,
    "random": random_kill,
    "together": together,
    "stop": stopped,
    "cut": connections_cut,
    "cut-random": connections_cut,
    "restart": restarted,
    "full": disk_full,
}
ALONE: frozenset[Kind] = frozenset({"restart"})
"""Kinds that would disturb all other trials: they come last, one at a time."""


def _gone_on(trial: Trial, hit: bool) -> Verdict:
    return Verdict(tuple(trial.violations(trial.moment(), trial.start("next").ended())), hit)


def _survived(trial: Trial, first: Child, *, hit: bool) -> Verdict:
    """Whether or not the process has survived it, the run ends as it should."""
    first.ends()
    return Verdict(tuple(trial.violations(trial.moment(), trial.start("next", lease_s=SHORT_S).ended())), hit)


def _killed_after(child: Child, seconds: float) -> bool:
    time.sleep(seconds)
    child.signal(signal.SIGKILL)
    return child.ends() == -signal.SIGKILL


def _sorted_out(case: Case, wrong: list[str]) -> Verdict:
    """At the wire, the residual point, an effect that happened twice is named, if nothing else is wrong."""
    twice = tuple(each for each in wrong if each.endswith("has happened 2 times"))
    if case.point == WIRE and len(twice) == len(wrong):
        return Verdict(surfaced=twice)
    return Verdict(tuple(wrong))


def _renewed(case: Case) -> Mapping[str, Any]:
    return RENEWED if case.point == "lease.renewed" else {}


def _until_gone(cluster: Cluster) -> None:
    until = time.monotonic() + 20
    while (cluster.home / "postmaster.pid").exists():
        assert time.monotonic() < until
        time.sleep(0.02)


@contextmanager
def _small_disk(folder: Path) -> Iterator[bool]:
    """A file system of 1 MB in this place; False where none can be mounted."""
    if shutil.which("mount") is None:
        yield False
        return
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
