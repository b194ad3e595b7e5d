"""Child processes in which typed functions run and can be killed for real: kept, counted, and gone when we are.

Each child has a thread here that speaks with it, and a guard: a shell that leads the child's process group and reads
from a pipe of ours. When this process ends, however it does, the pipe closes, and the guard kills the whole group: what
a tool has started goes with its child, unless it made itself a session of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from weakref import WeakSet

from plans.failure import ToolFailure
from tools.child import unpacked
from tools.classify import Meaning
from tools.context import Progress
from tools.delivery import Ended, deliver, on_loop
from tools.errand import Errand, Surroundings
from tools.normalise import Told, ToldApart

MOST = 16
"""Most children of this process; one tool has half of them at most. Each takes some 40 MB."""
CALLS = 100
"""How many calls a child makes before a fresh one takes its place, so that what leaks in it does not for ever."""
IDLE_S = 300.0
"""After how long a child that nobody needs ends."""
GRACE_S = 0.2
"""How long a child that was told to end may take for it."""
LOOK_S = 0.05
"""How often somebody looks whether the caller still waits and the child still lives."""

_GUARD = 'trap "" TERM INT HUP; read _; kill -KILL 0'
_PROGRAM = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from tools.child import main; main()"


class Job:
    """One call on its way. `ended` gets what it returned and what it raised, `gone` is set when no child is at it."""

    def __init__(self, tool: str, errand: Errand, progress: Progress) -> None:
        self._loop = asyncio.get_running_loop()
        self.tool = tool
        self.errand = errand
        self.progress = progress
        self.ended: asyncio.Future[Ended] = self._loop.create_future()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self.abandoned = threading.Event()
        self._lock = threading.Lock()
        self._line: Connection | None = None

    def abandon(self) -> None:
        """Nobody waits any more: its child is killed. Whoever is still handing it over, or listens to half an answer,
        is not kept by a child that has stopped."""
        with self._lock:
            self.abandoned.set()
            if self._line is not None:
                with suppress(OSError), socket.socket(fileno=os.dup(self._line.fileno())) as line:
                    line.shutdown(socket.SHUT_RDWR)

    def travels_on(self, line: Connection | None) -> None:
        """Which child's line it is on; None before that line is closed, or is another call's."""
        with self._lock:
            self._line = line

    def over(self, ended: Ended) -> None:
        """From the thread that has seen to it: this is how it ended."""
        deliver(self._loop, self.ended, ended)
        on_loop(self._loop, lambda: None if self.gone.done() else self.gone.set_result(None))


class Child:
    """One process, its guard, and the line to it. Raises OSError where the system has none to give."""

    def __init__(self) -> None:
        self.line, theirs = Pipe()
        with theirs:
            self._guard = subprocess.Popen(  # noqa: S603 (a program of our own)
                ["/bin/sh", "-c", _GUARD],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=0,
            )
            try:
                self._own = self._started(theirs)
            except OSError:
                self._end_guard()
                raise
        self.calls = 0
        _OURS.add(self)

    def let_go(self) -> None:
        """In a fork of this process: it does not hold open what tells guard and child that this process has ended."""
        self.line.close()
        if self._guard.stdin is not None:
            self._guard.stdin.close()

    def _started(self, theirs: Connection) -> subprocess.Popen[bytes]:
        number = theirs.fileno()
        # What a tool prints goes where errors go: our stdout belongs to whoever reads our answer.
        return subprocess.Popen(  # noqa: S603 (a program of our own)
            [sys.executable, "-P", "-c", _PROGRAM, json.dumps(Surroundings.here().path), str(number)],
            stdin=subprocess.DEVNULL,
            stdout=2,
            pass_fds=(number,),
            process_group=self._guard.pid,
        )

    @property
    def lives(self) -> bool:
        """Whether it can be given a call."""
        return self._own.poll() is None

    def make(self, job: Job) -> Ended | None:
        """Have the call made: how it ended, or None where nobody waits for it any more. Whether the child is of further
        use then, `lives` says."""
        self.calls += 1
        begun = False
        job.travels_on(self.line)
        if job.abandoned.is_set():
            return None
        try:
            self.line.send_bytes(pickle.dumps(job.errand))
            while self._heard(job):
                kind, said = pickle.loads(self.line.recv_bytes())  # noqa: S301 (from our own child)
                match kind:
                    case "begun":
                        begun = True
                    case "progress":
                        job.progress(*said)
                    case "returned":
                        return unpacked(said)
                    case _:
                        return None, ToldApart(said)
        except (EOFError, OSError, pickle.UnpicklingError):
            job.travels_on(None)
            return None, self._died(job.tool, certain=not begun)
        return None

    def _heard(self, job: Job) -> bool:
        """Wait until the child says something; False once the caller has gone. EOFError when the child has died: a
        child of its own may hold the line open."""
        while not self.line.poll(LOOK_S):
            if job.abandoned.is_set():
                return False
            if not self.lives and not self.line.poll(0):
                raise EOFError
        return not job.abandoned.is_set()

    def _died(self, tool: str, *, certain: bool) -> ToldApart:
        with suppress(subprocess.TimeoutExpired):
            self._own.wait(GRACE_S)  # its line ends a moment before it does, and its own end is what is told
        self.end()
        status = self._own.returncode
        how = f"was ended by {_name_of(-status)}" if status < 0 else f"ended itself with status {status}"
        meaning = Meaning("TOOL_ERROR", f"lost its process, which {how}", certain)
        return ToldApart(Told(meaning, f"{tool} {meaning.said}", ""))

    def end(self) -> None:
        """End it, whatever it does, and its children with it; returns when it is gone."""
        if self.lives:
            os.killpg(self._guard.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._own.wait(GRACE_S)
        self._end_guard()
        self._own.wait()
        self.line.close()

    def _end_guard(self) -> None:
        """The guard is not waited for before this, so that its number is nobody else's."""
        if self._guard.returncode is None:
            os.killpg(self._guard.pid, signal.SIGKILL)
            self._guard.wait()
        if self._guard.stdin is not None:
            self._guard.stdin.close()


_OURS: WeakSet[Child] = WeakSet()
os.register_at_fork(after_in_child=lambda: list(map(Child.let_go, _OURS)))


class ChildPool:
    """Children, made when needed and kept."""

    def __init__(self, most: int = MOST, *, calls: int = CALLS, idle_s: float = IDLE_S) -> None:
        self._most = most
        self._per_tool = max(1, most // 2)
        self._calls = calls
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self._idle: list[queue.SimpleQueue[Job]] = []

    @property
    def running(self) -> int:
        """How many calls hold a child now, those included whose child is being killed."""
        with self._lock:
            return self._running.total()

    @property
    def idle(self) -> int:
        """How many children wait for a call."""
        with self._lock:
            return len(self._idle)

    def submit(self, tool: str, errand: Errand, progress: Progress) -> Job:
        """Begin the call now, or raise ToolFailure POOL_FULL."""
        job = Job(tool, errand, progress)
        with self._lock:
            if self._running.total() >= self._most or self._running[tool] >= self._per_tool:
                said = f"{self._running[tool]} calls of {tool} still run; no process is free for more"
                raise ToolFailure("POOL_FULL", said)
            self._running[tool] += 1
            if self._idle:
                self._idle.pop().put(job)
                return job
        jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        jobs.put(job)
        try:
            threading.Thread(target=self._keep, args=(jobs,), name="surestep-child", daemon=True).start()
        except RuntimeError as error:  # the system has none to give
            self._free(tool)
            raise ToolFailure("POOL_FULL", f"no process could be started for {tool}: {error}") from None
        return job

    def _keep(self, jobs: queue.SimpleQueue[Job]) -> None:
        """The life of a child, on a thread of its own. Nothing of the last call is held while the child is idle."""
        child: Child | None = None
        kept = True
        while kept and (job := self._awaited(jobs)) is not None:
            if child is not None and not child.lives:  # it died while nothing was asked of it
                child.end()
                child = None
            try:
                child = child or Child()
            except OSError as error:
                self._free(job.tool)
                job.over((None, ToolFailure("POOL_FULL", f"no process could be started for {job.tool}: {error}")))
                return
            kept = self._made(child, job, jobs)
            del job
        if child is not None:
            child.end()

    def _made(self, child: Child, job: Job, jobs: queue.SimpleQueue[Job]) -> bool:
        """Make the call and tell its end; whether the child is kept for more. Its place is free before the end is
        told."""
        ended: Ended | None = None
        kept = False
        try:
            ended = child.make(job)
            kept = ended is not None and child.calls < self._calls and child.lives
        finally:
            job.travels_on(None)
            if ended is None:
                child.end()
            self._free(job.tool, jobs if kept else None)
            job.over(ended or (None, RuntimeError(f"nobody waits for {job.tool} any more")))
        return kept

    def _free(self, tool: str, jobs: queue.SimpleQueue[Job] | None = None) -> None:
        with self._lock:
            self._running[tool] -= 1
            if jobs is not None:
                self._idle.append(jobs)

    def _awaited(self, jobs: queue.SimpleQueue[Job]) -> Job | None:
        try:
            return jobs.get(timeout=self._idle_s)
        except queue.Empty:
            with self._lock:
                if jobs in self._idle:
                    self._idle.remove(jobs)
                    return None
            return jobs.get()  # somebody has just chosen this child


CHILDREN = ChildPool()


def _name_of(number: int) -> str:
    """A signal's name, where it has one."""
    known = {each.value: each.name for each in signal.Signals}
    return known.get(number, f"signal {number}")
