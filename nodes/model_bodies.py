"""What comes over the wire from a model: decoded here, and bounded, so that no answer fills the memory.

A body that is no stream is kept whole for whoever asks; of every body the beginning is, for the raw text of an error.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from tools.http.inflate import Decoder, decoder_for
from tools.output import BadOutput

MAX_STREAM = 64_000_000
"""Most bytes of a streamed answer: some 200,000 tokens with what stands around each."""
MAX_PIECE = 8_000_000
"""Most bytes of one event of a stream, and of a body that comes whole: the longest text that is read, in UTF-8."""
MAX_ERROR = 1_000_000
"""Bytes of an error's body that are read; the rest is left where it is."""
MAX_HEAD = 20_000
BOM = b"\xef\xbb\xbf"


class BodyRefused(Exception):
    """The body is not read on; what was received says why."""


@dataclass
class Received:
    """What came of one request: its beginning, all of it where it was no stream, and what was wrong with it."""

    head: bytes = b""
    whole: str | None = None
    too_large: bool = False
    undecodable: bool = False

    @property
    def begins(self) -> str:
        """The beginning as text."""
        return self.head.decode("utf-8", "replace")


RECEIVED: ContextVar[Received | None] = ContextVar("RECEIVED", default=None)
"""Where the request that is being made writes down what comes of it."""


class Body:
    """The bytes of a body, decoded and within bounds, without the mark that some servers put before their first one."""

    def __init__(
        self, wire: AsyncIterator[bytes], encodings: Sequence[str], received: Received, *, failed: bool, streamed: bool
    ) -> None:
        self._wire, self._encodings, self._received = wire, encodings, received
        self._failed, self._streamed = failed, streamed
        self._total = self._since_line = 0

    async def pieces(self) -> AsyncIterator[bytes]:
        """Piece by piece. Raises BodyRefused."""
        held, begun = b"", False
        decoder = self._decoder()
        async for raw in self._wire:
            piece = self._decoded(decoder, raw)
            if not begun:
                held += piece
                if len(held) < len(BOM) and BOM.startswith(held):
                    continue
                piece, begun = held.removeprefix(BOM), True
            if piece and not self._takes(piece):
                return
            yield piece
        if not begun and held:
            yield held

    def _decoder(self) -> Decoder:
        try:
            return decoder_for(self._encodings)
        except BadOutput as error:
            raise self._undecodable() from error

    def _decoded(self, decoder: Decoder, raw: bytes) -> bytes:
        try:
            return decoder.decoded(raw, MAX_PIECE + 1)
        except BadOutput as error:
            raise self._undecodable() from error

    def _undecodable(self) -> BodyRefused:
        self._received.undecodable = True
        return BodyRefused("the body is not encoded as it says")

    def _takes(self, piece: bytes) -> bool:
        """Whether the piece is passed on: false ends an error's body. Raises BodyRefused for too much of another."""
        self._received.head += piece[: MAX_HEAD - len(self._received.head)]
        self._total += len(piece)
        line_end = max(piece.rfind(b"\n"), piece.rfind(b"\r")) if self._streamed else -1
        self._since_line = self._since_line + len(piece) if line_end < 0 else len(piece) - line_end - 1
        if self._failed:
            return self._total <= MAX_ERROR
        if self._since_line > MAX_PIECE or self._total > MAX_STREAM:
            self._received.too_large = True
            raise BodyRefused("the body is longer than anything that is read")
        return True
