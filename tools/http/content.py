"""From the bytes of an answer to JSON or text, by what it says it is; anything else is refused."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from email.message import Message

from plans.json_text import strict_json
from plans.values import JSON, clean
from tools.output import BadOutput

_JSON = re.compile(r"(application|text)/json|[\w.+-]+/[\w.+-]+\+json")
_TEXT = re.compile(
    r"text/[\w.+-]+|[\w.+-]+/[\w.+-]+\+xml|application/"
    r"(xml|javascript|ecmascript|yaml|x-yaml|toml|sql|graphql|x-ndjson|ndjson|jsonlines|json-seq|x-www-form-urlencoded)"
)
_IN_HTML = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
_NO_CHARSETS = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"})
"""Codecs of Python's that no page is written in: some fail on anything, one takes the square of the time."""
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


@dataclass(frozen=True, slots=True)
class MediaType:
    """What an answer says it is: the type in lower case ("" if it says nothing) and its charset."""

    name: str
    charset: str | None

    @property
    def is_json(self) -> bool:
        """Whether the body should be JSON."""
        return _JSON.fullmatch(self.name) is not None

    @property
    def is_text(self) -> bool:
        """Whether the body may be text; an answer that does not say what it is may be."""
        return not self.name or _TEXT.fullmatch(self.name) is not None


def media_type(header: str | None) -> MediaType:
    """The Content-Type header, read."""
    if not header:
        return MediaType("", None)
    message = Message()
    message["content-type"] = header
    charset = message.get_content_charset()
    return MediaType(header.partition(";")[0].strip().lower(), charset)


def json_of(body: bytes) -> JSON:
    """The value of a JSON body, read strictly: BadOutput for a key that stands twice, for what cannot be stored, such
    as 1e999, and for a body that is cut."""
    try:
        return clean(strict_json(body.decode("utf-8-sig")))
    except ValueError as error:
        said = "it is no UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise BadOutput("OUTPUT_INVALID", f"the answer says it is JSON, and cannot be read as such: {said}") from None


def text_of(body: bytes, media: MediaType, *, truncated: bool = False) -> str:
    """The body as text: by its mark, by what the header says, by what an HTML page says, else UTF-8. Bytes that are
    none of it become U+FFFD. BadOutput for what is no text: it holds NUL."""
    decoder = codecs.getincrementaldecoder(_charset(body, media))(errors="replace")
    text = decoder.decode(body, final=not truncated)
    if "\x00" in text:
        raise BadOutput("OUTPUT_INVALID", "the answer is binary; only JSON and text can be given")
    return text


def _charset(body: bytes, media: MediaType) -> str:
    marked = next((codec for mark, codec in _MARKS if body.startswith(mark)), None)
    declared = media.charset
    if marked is None and declared is None and "html" in media.name and (found := _IN_HTML.search(body[:4_096])):
        declared = found[1].decode("ascii")
    return marked or _known(declared) or "utf-8"


def _known(charset: str | None) -> str | None:
    """A charset's codec, if it is one of text: Python has others too, which unpack archives."""
    try:
        found = codecs.lookup(charset or "")
    except (LookupError, ValueError):
        return None
    return found.name if getattr(found, "_is_text_encoding", False) and found.name not in _NO_CHARSETS else None
