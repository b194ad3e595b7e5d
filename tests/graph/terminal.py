"""A terminal small enough to read: what a person would see after these bytes. It refuses escapes that we do not use."""

from __future__ import annotations

import re
import unicodedata

_TOKEN = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])|[\x00-\x1f\x7f]|[^\x00-\x1f\x7f\x1b]+")


class Terminal:
    """Rows of text, a cursor, and how often each row was written to."""

    def __init__(self, width: int = 80, height: int = 24) -> None:
        self.width, self.height = width, height
        self.rows: list[list[str]] = [[]]
        self.row = self.column = self.top = 0
        self.written: list[int] = [0]

    def feed(self, text: str) -> None:
        """Do what the text says."""
        position = 0
        while position < len(text):
            found = _TOKEN.match(text, position)
            assert found, f"no escape of ours: {text[position : position + 20]!r}"
            position = found.end()
            if found[2]:
                self._escape(found[1], found[2])
            elif found[0] in "\r\n\x07\x08":
                self._control(found[0])
            else:
                self._print(found[0])

    @property
    def screen(self) -> list[str]:
        """What is visible, without empty rows at the end."""
        shown = ["".join(row).rstrip() for row in self.rows[self.top :]]
        while shown and not shown[-1]:
            shown.pop()
        return shown

    @property
    def history(self) -> list[str]:
        """Everything, with what has scrolled away."""
        return ["".join(row).rstrip() for row in self.rows]

    def _print(self, text: str) -> None:
        self.written[self.row] += 1
        for character in text:
            wide = 2 if unicodedata.east_asian_width(character) in "WF" else 1
            if self.column + wide > self.width:
                self._control("\n")
                self.column = 0
            row = self.rows[self.row]
            row.extend(" " * (self.column + wide - len(row)))
            row[self.column : self.column + wide] = [character, *[""] * (wide - 1)]
            self.column += wide

    def _control(self, character: str) -> None:
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.row, self.column = self.row + 1, 0
            while len(self.rows) <= self.row:
                self.rows.append([])
                self.written.append(0)
            self.top = max(self.top, self.row - self.height + 1)

    def _escape(self, number: str, kind: str) -> None:
        match kind:
            case "m":
                return
            case "F":
                self.row, self.column = max(self.top, self.row - int(number or 1)), 0
            case "K":
                del self.rows[self.row][self.column :]
            case "J":
                del self.rows[self.row][self.column :]
                for row in self.rows[self.row + 1 :]:
                    row.clear()
            case _:
                raise AssertionError(f"no escape of ours: CSI {number}{kind}")
