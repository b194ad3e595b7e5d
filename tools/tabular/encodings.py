"""Which encoding a text file is in: its byte order mark, strict UTF-8, or an educated and stated guess.

UTF-8 is proven over the whole file, not a sample: a single Latin-1 name may stand in the last line. Only what is not
UTF-8 is guessed, from the lines that hold other bytes than ASCII. charset-normalizer alone took 11 of 19 short samples
for something else (names in a table are little text), so the common families are told apart first by the letters their
languages use; it decides what is left.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from plans.failure import ToolFailure
from tools.tabular.letters import best_multibyte, best_single_byte

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
_CHUNK = 1 << 20
_SAMPLE = 64 << 10
_LONGEST_SEARCH = 256 << 20
_MULTIBYTE_UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH_LINES = re.compile(rb"[^\n]*[\x80-\xff][^\n]*")


class Encoding(NamedTuple):
    """A codec's name and how it was found."""

    name: str
    how: Literal["byte order mark", "valid throughout", "guessed", "given"]


def detect(path: Path) -> Encoding:
    """The encoding of a text file. ToolFailure INVALID_INPUT for bytes that are no text, or for UTF-8 with damage."""
    head = _head(path)
    for mark, name in _BOMS:
        if head.startswith(mark):
            return Encoding(name, "byte order mark")
    if wide := _without_mark(head):
        return Encoding(wide, "guessed")
    if b"\x00" in head:
        raise ToolFailure("INVALID_INPUT", f"{path.name} is no table: it holds zero bytes, as programs and images do")
    offset = first_bad_byte(path, "utf-8")
    if offset is None:
        return Encoding("utf-8", "valid throughout")
    sample = _sample(path, offset)
    _refuse_damaged_utf8(path, sample, offset)
    return Encoding(_guess(sample), "guessed")


def given(name: str, path: Path) -> Encoding:
    """An encoding that the caller names; ToolFailure INVALID_ARGS when Python knows none of that name."""
    try:
        codecs.lookup(name)
        b"".decode(name)
    except LookupError:
        raise ToolFailure(
            "INVALID_ARGS", f"unknown encoding {name!r} for {path.name}; known are utf-8, utf-16, cp1252, latin-1, "
            "gb18030, big5, shift_jis, euc_jp, cp949, cp1250, cp1251 and the rest of Python's"
        ) from None  # fmt: skip
    if name.lower().replace("_", "-") in {"utf-8", "utf8"}:
        return Encoding("utf-8-sig", "given")
    return Encoding(name, "given")


def undecodable(path: Path, encoding: Encoding) -> ToolFailure:
    """The failure for a file that does not follow its encoding: names the byte, its offset and its line."""
    offset = first_bad_byte(path, encoding.name) or 0
    return ToolFailure("INVALID_INPUT", f"{path.name} is not {encoding.name} throughout: {_where(path, offset)}. "
                       'Save it again as UTF-8, or name its encoding: reading={"encoding": "cp1252"}')  # fmt: skip


def first_bad_byte(path: Path, encoding: str) -> int | None:
    """Offset of the first byte that the encoding cannot read, or None when it reads the whole file."""
    decoder = codecs.getincrementaldecoder(encoding)()
    done = pending = 0
    for chunk in _chunks(path):
        try:
            decoder.decode(chunk)
        except UnicodeDecodeError as error:
            return done - pending + error.start
        pending = len(decoder.getstate()[0])
        done += len(chunk)
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        return done - pending + error.start
    return None


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4096)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _without_mark(head: bytes) -> str | None:
    """UTF-16 without a mark shows as zero bytes on every other place."""
    even, odd = head[0::2].count(0), head[1::2].count(0)
    half = max(len(head) // 2, 1)
    if odd > 0.4 * half and even < 0.05 * half:
        return "utf-16-le"
    return "utf-16-be" if even > 0.4 * half and odd < 0.05 * half else None


def _sample(path: Path, offset: int) -> bytes:
    """Lines that hold bytes beyond ASCII, from a little before the first bad byte on, until there are enough."""
    lines: list[bytes] = []
    with path.open("rb") as file:
        file.seek(max(0, offset - _CHUNK))
        while (chunk := file.read(_CHUNK)) and file.tell() - offset < _LONGEST_SEARCH:
            chunk += file.readline(_CHUNK)
            lines += _HIGH_LINES.findall(chunk)
            if sum(map(len, lines)) > _SAMPLE:
                break
    return b"\n".join(lines)[: 4 * _SAMPLE].rsplit(b"\n", 1)[0] if len(lines) > 1 else b"\n".join(lines)


def _refuse_damaged_utf8(path: Path, sample: bytes, offset: int) -> None:
    good = sum(map(len, _MULTIBYTE_UTF8.findall(sample)))
    bad = sum(byte >= 0x80 for byte in sample) - good
    if good >= 6 and good > 5 * bad:
        raise ToolFailure("INVALID_INPUT", f"{path.name} is UTF-8 with damage: {_where(path, offset)}. Repair that "
                          'place, or read the file as it is with reading={"encoding": "cp1252"}')  # fmt: skip


def _where(path: Path, offset: int) -> str:
    line = 1
    with path.open("rb") as file:
        left = offset
        while left > 0 and (chunk := file.read(min(_CHUNK, left))):
            line += chunk.count(b"\n")
            left -= len(chunk)
        byte = file.read(1)
    return f"byte 0x{byte.hex().upper()} at offset {offset:,} (line {line:,}) does not fit" if byte else (
        f"it ends in the middle of a character (line {line:,})"
    )  # fmt: skip


def _guess(sample: bytes) -> str:
    if name := best_multibyte(sample) or best_single_byte(sample):
        return name
    from charset_normalizer import from_bytes

    best = from_bytes(sample).best()
    return best.encoding if best else "latin-1"
