"""Secrets out of texts: what looks like a credential is blanked before a text is stored, shown or sent anywhere.

A safety net by pattern, not a promise: a secret that looks like an ordinary word passes. Secrets that are known by
themselves are blanked wherever they stand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

BLANK = "***"

# Names that are followed by a secret. "tokens" and the like count something, and stay.
_NAMED = (
    r"pass(?:word|wd|phrase)|pwd|secret(?!ar)|token(?!s\b|iz)|api[_-]?key|access[_-]?key|private[_-]?key|authorization"
    r"|credentials?|session[_-]?id|cookie"
)
# Words with which a sentence goes on after "password:"; anything else there is taken for the secret itself.
_PROSE = (
    r"(?:is|are|was|has|have|should|must|may|can|cannot|not|no|none|null|true|false|missing|required|invalid|expected|"
    r"expired|wrong|unknown|needs?|the|an?|it|this|field|value|input|string|does|did|got|too|or|and)\b"
)
_BESIDE = rf"(?i)((?:{_NAMED})[\w.-]{{0,40}}[\"']?\s{{0,3}}[:=]\s{{0,3}})"
_IN_QUERY = r"(?:key|sig|signature|credential|auth|code)"

_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), kept)
    for pattern, kept in (
        # private keys, also those whose beginning or end was cut away
        (r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?s:.*?)(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)", BLANK),
        (r"\A(?s:.*)-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----", BLANK),
        # user and password, or a token, in a URL
        (r"(?<=://)[^\s/?#@\"']{1,400}(?:@[^\s/?#@\"']{1,400})*@", f"{BLANK}@"),
        # formats that say whose they are: OpenAI and others, Stripe, GitHub, GitLab, Slack, AWS, Google, npm, Hugging
        # Face, SendGrid, JSON web tokens
        (r"\b(?:sk|rk)[-_](?=[A-Za-z_-]{0,80}\d)[A-Za-z0-9_-]{12,}", BLANK),
        (r"\b(?:gh[opsur]_|github_pat_|glpat-|xox[abeoprs]-|npm_|hf_)[A-Za-z0-9_-]{10,}", BLANK),
        (r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}\b", BLANK),
        (r"\bAIza[A-Za-z0-9_-]{30,}", BLANK),
        (r"\bSG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}", BLANK),
        (r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?", BLANK),
        # Authorization: Bearer ..., Basic ...; "bearer authentication" is prose
        (r"(?i)\b(bearer|basic)[ \t]+(?=[^\s\"']*[\d+/=_.-]|[^\s\"']{20})[A-Za-z0-9+/=._~-]{6,}", rf"\1 {BLANK}"),
        # name=value, "name": "value", name: value, --name value
        (rf"{_BESIDE}(\"[^\"\n]{{1,4000}}\"|'[^'\n]{{1,4000}}')", rf"\1{BLANK}"),
        (rf"{_BESIDE}(?!{_PROSE}|\*\*\*|bearer\b|basic\b)[^\s\"'&,;<>(){{}}\[\]]{{1,4000}}", rf"\1{BLANK}"),
        (r"(?i)(--?(?:password|passwd|token|secret|api-key)[ \t]+)(?!-)[^\s\"']{1,4000}", rf"\1{BLANK}"),
        (rf"(?i)([?&][\w.-]{{0,40}}{_IN_QUERY}=)[^\s&\"'#]{{1,4000}}", rf"\1{BLANK}"),
    )
)  # fmt: skip


def redacted(text: str) -> str:
    """The text without what looks like a credential: private keys, passwords in URLs and beside their names, tokens and
    keys by their formats. Takes time in proportion to the text; a text that was redacted stays as it is."""
    for pattern, kept in _PATTERNS:
        text = pattern.sub(kept, text)
    return text


def without(text: str, secrets: Sequence[str], blank: str = BLANK) -> str:
    """The text with each of these secrets blanked; of two that begin alike the longer one should come first."""
    for secret in secrets:
        text = text.replace(secret, blank)
    return text


def value_without(value: Any, secrets: Sequence[str], blank: str = BLANK) -> Any:
    """The same for a value of JSON: in all its texts and names."""
    if not secrets:
        return value
    if isinstance(value, Mapping):
        return {without(name, secrets, blank): value_without(item, secrets, blank) for name, item in value.items()}
    if isinstance(value, list):
        return [value_without(item, secrets, blank) for item in value]
    return without(value, secrets, blank) if isinstance(value, str) else value
