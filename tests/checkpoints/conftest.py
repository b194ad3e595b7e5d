"""What the tests of storage share: a file system that is really small."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB; skips where none can be mounted."""
    place = tmp_path / "small disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], capture_output=True, check=False
    )
    if os.geteuid() != 0 or mounted.returncode:
        pytest.skip("only root can mount a small file system, and not everywhere")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)
