"""Records of a delimited text file, streamed: every row with the line it starts on, and nothing dropped unsaid."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from plans.failure import ToolFailure
from tools.tabular.arguments import Reading
from tools.tabular.encodings import Encoding, undecodable
from tools.tabular.layout import Record, delimiter_of

_SAMPLED_LINES = 200
_LONGEST_SAMPLED_LINE = 100_000
_STRIDE = 1024
_SEP_LINE = re.compile(r'^"?sep=(.)"?\s*$', re.IGNORECASE)
_END = "\x1c\x1d\x1e"
"""Handed to the csv reader after the last line: a quote that is still open there swallows it, and shows."""
_UNQUOTE = 'Repair it, or, if quotes mean nothing in this file, read it with reading={"quoted": false}'


class TextSource:
    """A text file, read record by record. The delimiter is found from the first lines unless `reading` names it."""

    def __init__(self, path: Path, encoding: Encoding, reading: Reading) -> None:
        self.path = path
        self.encoding = encoding
        self.quoted = reading.quoted
        with self._open() as text:
            sample = [line[:_LONGEST_SAMPLED_LINE] for line in islice(self._lines(text), _SAMPLED_LINES)]
        named = _SEP_LINE.match(sample[0]) if sample else None
        self._skipped = 1 if named else 0
        self.delimiter = reading.delimiter or (named[1] if named else delimiter_of(sample[self._skipped :]))
        self._spaced_quotes = f'{self.delimiter} "' in "".join(sample)
        self.size = max(path.stat().st_size, 1)
        self.position = 0

    def records(self) -> Iterator[Record]:
        """All records but blank lines. ToolFailure INVALID_INPUT for bytes that do not fit the encoding, a quote that
        is never closed, or a cell beyond 131,072 characters."""
        line = end = self._skipped
        with self._open() as text:
            raw: io.BufferedReader = text.buffer  # type: ignore[assignment]
            reader = csv.reader(
                chain(islice(self._lines(text), self._skipped, None), [_END]), delimiter=self.delimiter,
                skipinitialspace=self._spaced_quotes, quoting=csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE,
            )  # fmt: skip
            cells: list[str] = []
            try:
                for cells in reader:
                    line, end = end + 1, reader.line_num + self._skipped
                    if cells and cells != [_END]:
                        yield line, cells
                    if end % _STRIDE == 0:
                        self.position = raw.tell()
            except csv.Error:
                raise self._too_long(end + 1) from None
        if cells != [_END]:
            raise self._unclosed(line)

    def _open(self) -> io.TextIOWrapper:
        return self.path.open(encoding=self.encoding.name, newline="", buffering=1 << 20)

    def _lines(self, text: io.TextIOWrapper) -> Iterator[str]:
        """The lines as written, ends included."""
        try:
            yield from text
        except UnicodeDecodeError:
            raise undecodable(self.path, self.encoding) from None

    def _unclosed(self, line: int) -> ToolFailure:
        return ToolFailure("INVALID_INPUT", f"{self.path.name}: a quote opened in the record of line {line:,} is never "
                           f"closed. {_UNQUOTE}")  # fmt: skip

    def _too_long(self, line: int) -> ToolFailure:
        limit = csv.field_size_limit()
        return ToolFailure(
            "INVALID_INPUT",
            f"{self.path.name}: a cell in the record of line {line:,} exceeds "
            f"{limit:,} characters: most likely a quote opened there is never closed. {_UNQUOTE}",
        )
