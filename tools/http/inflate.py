"""Content encodings undone piece by piece, so that what is small on the wire cannot become large in memory."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Protocol

from tools.output import BadOutput

TAKEN = "gzip, deflate"
_GZIP = 16 + zlib.MAX_WBITS
_RAW = -zlib.MAX_WBITS
_TELLING = 2
"""How many bytes it takes to tell zlib's header from a body without one."""


class Decoder(Protocol):
    """Turns what was received into what was sent."""

    def decoded(self, piece: bytes, most: int) -> bytes:
        """What this piece gives, cut off behind `most` bytes. Raises BadOutput for what cannot be decoded."""
        ...

    @property
    def ended(self) -> bool:
        """Whether all there should be has come."""
        ...


class Plain:
    """Nothing to undo."""

    ended = True

    def decoded(self, piece: bytes, most: int) -> bytes:
        """The piece itself."""
        return piece[:most]


class Inflated:
    """gzip or deflate, the latter with or without zlib's own header: servers send both."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._inflate = zlib.decompressobj(_GZIP if encoding == "gzip" else zlib.MAX_WBITS)
        self._begun = False
        self._held = b""

    @property
    def ended(self) -> bool:
        """Whether the stream has come to its own end, or never began."""
        return self._inflate.eof or not (self._begun or self._held)

    def decoded(self, piece: bytes, most: int) -> bytes:
        """What this piece gives; further members of a gzip file are parts of the same body."""
        found = b""
        while piece and len(found) < most:
            if self._inflate.eof:
                self._inflate = zlib.decompressobj(_GZIP)
            found += self._next(piece, most - len(found))
            piece = self._inflate.unused_data if self._encoding == "gzip" else b""
        return found

    def _next(self, piece: bytes, most: int) -> bytes:
        first = not self._begun
        if first and len(self._held + piece) < _TELLING:
            self._held += piece
            return b""
        piece, self._held, self._begun = self._held + piece, b"", True
        try:
            return self._inflate.decompress(piece, most)
        except zlib.error:
            if not (first and self._encoding == "deflate"):
                raise BadOutput("OUTPUT_INVALID", f"the answer says it is {self._encoding} and is not") from None
        self._inflate = zlib.decompressobj(_RAW)
        try:
            return self._inflate.decompress(piece, most)
        except zlib.error:
            raise BadOutput("OUTPUT_INVALID", "the answer says it is deflate and is not") from None


def decoder_for(encodings: Sequence[str]) -> Decoder:
    """What undoes a Content-Encoding. BadOutput for one that was not asked for, and for several at once."""
    named = [name for name in encodings if name not in ("", "identity")]
    if not named:
        return Plain()
    if len(named) == 1 and named[0].removeprefix("x-") in ("gzip", "deflate"):
        return Inflated(named[0].removeprefix("x-"))
    raise BadOutput("OUTPUT_INVALID", f"the answer is encoded as {', '.join(named)[:80]}; asked for was {TAKEN}")
