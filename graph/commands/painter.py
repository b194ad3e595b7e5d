"""A block of lines at the end of a terminal, kept up to date by rewriting only those that have changed."""

from __future__ import annotations

from collections.abc import Sequence

_END_OF_LINE = "\x1b[0m\x1b[K\n"
"""Clears what the line before had more; a line is never cleared first, so that it never blinks."""
_CLEAR_BELOW = "\x1b[J"


class Painter:
    """Says what to write so that a terminal shows these lines. The cursor rests at the start of the line below them.

    Pure but for what it remembers: the lines that stand there, and how wide the terminal was then. A line is a text
    with its escapes, and the columns that it takes.
    """

    def __init__(self) -> None:
        self._begun = ""
        self._shown: list[tuple[str, int]] = []
        self._width = 0

    def frame(self, lines: Sequence[tuple[str, int]], width: int) -> str:
        """What brings the block to these lines; empty if it shows them already."""
        if width == self._width and list(lines) == self._shown:
            return ""
        kept = self._shown if width == self._width else []
        start = self._to_start(width)
        changed = [
            "\n" if index < len(kept) and kept[index] == line else f"{line[0]}{_END_OF_LINE}"
            for index, line in enumerate(lines)
        ]
        self._shown, self._width = list(lines), width
        return f"{start}{''.join(changed)}{_CLEAR_BELOW}"

    def above(self, text: str) -> str:
        """What writes a text where the block is, with the block again below it. A line is kept until it ends."""
        whole, end, self._begun = f"{self._begun}{text}".rpartition("\n")
        if not end:
            return ""
        start = self._to_start(self._width)
        block = "".join(f"{line}{_END_OF_LINE}" for line, _ in self._shown)
        return f"{start}{_CLEAR_BELOW}{whole}\n{block}"

    def forget(self) -> None:
        """The block that stands there is left as it is; the next frame is a new one below it."""
        self._shown = []

    def rest(self) -> str:
        """A last line that nobody has ended, to be written above the last frame."""
        return self.above("\n") if self._begun else ""

    def _to_start(self, width: int) -> str:
        """Up to the block's first line. A terminal that has become narrower has broken the lines into more rows."""
        rows = sum(max(1, -(-columns // width)) if width else 1 for _, columns in self._shown)
        return f"\x1b[{rows}F" if rows else "\r"
