"""What a run may read and write: its declared inputs and its output folder, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from plans.failure import ToolFailure


@dataclass(frozen=True)
class FileScope:
    """The files of one run. Inside means inside after every symbolic link is followed.

    `earlier` are the output folders of the runs that this one was forked from, the nearest first: they can be read.
    """

    inputs: Mapping[str, Path]
    output_dir: Path
    earlier: Sequence[Path] = ()

    def readable(self, path: str) -> Path:
        """The real path of a declared input, or of a file in the output folder (relative paths start there, and what is
        not there is looked for in the earlier ones).

        ToolFailure: NOT_PERMITTED outside of these, NOT_FOUND when nothing is there, INVALID_INPUT for a folder.
        """
        real = self._real(path)
        if self._in_output(real) and not real.exists():
            real = self._earlier(path) or real
        if real not in self._real_inputs() and not any(_inside(real, d) for d in (self.output_dir, *self.earlier)):
            raise ToolFailure("NOT_PERMITTED", f"{path!r} may not be read; {self._may_read()}")
        if not real.exists():
            raise ToolFailure("NOT_FOUND", f"there is no file {path!r}; {self._may_read()}")
        if not real.is_file():
            raise ToolFailure("INVALID_INPUT", f"{path!r} is not a file")
        return real

    def writable(self, name: str) -> Path:
        """Where an output of this name goes; folders above it are made.

        ToolFailure: NOT_PERMITTED outside of the output folder or over a declared input, INVALID_INPUT for a folder.
        """
        real = self._real(name)
        if not self._in_output(real):
            raise ToolFailure("NOT_PERMITTED", f"{name!r} may not be written; outputs go into {self.output_dir}")
        if real in self._real_inputs():
            raise ToolFailure("NOT_PERMITTED", f"{name!r} is an input of this run and is not overwritten")
        if real.is_dir():
            raise ToolFailure("INVALID_INPUT", f"{name!r} is a folder; name a file in it")
        try:
            real.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ToolFailure("INVALID_INPUT", f"{name!r} cannot be made in {real.parent}: {_reason(error)}") from None
        return real

    def _real(self, path: str) -> Path:
        try:
            return (self.output_dir / path).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise ToolFailure("NOT_PERMITTED", f"{path!r} is not a usable path ({_reason(error)})") from None

    def _real_inputs(self) -> frozenset[Path]:
        return frozenset(path.resolve() for path in self.inputs.values())

    def _in_output(self, real: Path) -> bool:
        return _inside(real, self.output_dir)

    def _earlier(self, path: str) -> Path | None:
        """Where the nearest earlier run has written a file of this name."""
        found = ((folder / path).resolve() for folder in self.earlier)
        return next((real for real in found if real.is_file()), None)

    def _may_read(self) -> str:
        declared = ", ".join(f"{name} ({path})" for name, path in self.inputs.items()) or "none declared"
        return f"this run's inputs are: {declared}; and it may read what it wrote into {self.output_dir}"


def _inside(real: Path, folder: Path) -> bool:
    root = folder.resolve()
    return real != root and real.is_relative_to(root)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__
