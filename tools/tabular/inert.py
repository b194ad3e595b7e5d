"""Text from a file made inert for where it goes: Markdown, a spreadsheet, a page. Shown as it is, it does nothing.

Formulas: a spreadsheet runs a cell that begins with = + - @ (also in full width), a tab or a carriage return; such a
cell gets an apostrophe in front (OWASP, CSV Injection). Another program may part a line at other delimiters, so the
same holds right after , ; | and line ends inside of a cell. A plain number such as -12,50 stays what it is.
"""

from __future__ import annotations

import re

_SIGNS = "=+\\-@＝＋－＠"
FORMULA = rf'^(\s*"*[{_SIGNS}]|[\t\r\n])'
INNER_FORMULA = rf'([,;|\t\r\n]"*)([{_SIGNS}])'
NUMBER = r"^\s*[+-]?[0-9][0-9.,' ]*%?\s*$"
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_ESCAPES = {character: f"\\{character}" for character in "`*_[]{}~$^"} | {
    character: f"&#{ord(character)};" for character in "&<>@|\\"
}
_ADDRESS = re.compile(r":(?=[/A-Za-z])|(?<=[Ww]{3})\.")
_DOUBLED = re.compile(r"[=+](?=[=+])|(?<=[=+])[=+]")
_LISTED = re.compile(r"^([0-9]{0,9})([#+=.)-])")
"""What makes a heading, a list or an underline of a line that begins with it."""
_LINES = re.compile(r"\s*[\r\n\u2028\u2029\x85]+\s*")


def formula_free(text: str) -> str:
    """A cell for a spreadsheet that is text, whatever it looks like."""
    if re.match(NUMBER, text):
        return text
    text = re.sub(INNER_FORMULA, r"\1'\2", text)
    return f"'{text}" if re.match(FORMULA, text) else text


def plain(text: str) -> str:
    """Text in which every character can be seen: controls and marks that turn the direction of writing are written
    as ⟨U+202E⟩."""
    return _CONTROLS.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def one_line(text: str) -> str:
    """Visible text without line ends, each shown as ⏎."""
    return plain(_LINES.sub(" ⏎ ", text.strip()))


def markdown(text: str, longest: int | None = None) -> str:
    """One line of Markdown that renders as exactly this text: no markup, no HTML, no link of any kind."""
    line = one_line(text)
    if longest and len(line) > longest:
        line = f"{line[: longest - 1]}…"
    line = "".join(_ESCAPES.get(character, character) for character in line)
    line = _ADDRESS.sub(lambda found: f"&#{ord(found[0])};", line)
    line = _DOUBLED.sub(lambda found: f"\\{found[0]}", line)
    return _LISTED.sub(r"\1\\\2", line)
