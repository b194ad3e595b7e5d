"""Credentials by how they look: passwords beside their names and in URLs, keys by their formats, private keys.

A safety net by pattern, not a promise: a secret that looks like an ordinary word passes. What is found is put through
a function of the caller's, which blanks it or puts a placeholder there. Takes time in proportion to the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from plans.texts import mapped

BLANK = "***"

Put = Callable[[str, str], str]
"""What stands in the place of a credential: from its kind ("password", "token", "key") and itself."""

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
_BESIDE = rf"(?i)(?P<name>(?:{_NAMED})[\w.-]{{0,40}}[\"']?\s{{0,3}}[:=]\s{{0,3}})"
_IN_QUERY = r"(?:key|sig|signature|credential|auth|code)"
_END = r"-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
# What was put in the place of one: of a credential that was blanked, or of one that is kept elsewhere.
_PUT = r"\*\*\*|[\"']?\[sealed:"

# Each with words of which one stands in every text that it can match, in small letters: looked for first, because most
# texts have none. What is captured as `s` is the credential; what stands around it stays.
_WORDS = ("pass", "pwd", "secret", "token", "key", "authorization", "credential", "session", "cookie")
_PATTERNS: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (kind, words, re.compile(pattern))
    for kind, words, pattern in (
        # private keys, also those whose beginning or end was cut away
        ("private_key", ("-----begin",), rf"(?P<s>-----BEGIN [A-Z ]{{0,40}}PRIVATE KEY(?s:.*?)(?:{_END}|\Z))"),
        ("private_key", ("-----end",), rf"(?P<s>\A(?s:.*){_END})"),
        # user and password, or a token, in a URL
        ("login", ("://",), r"(?<=://)(?P<s>(?!\*\*\*@|\[sealed:)[^\s/?#@\"']{1,400}(?:@[^\s/?#@\"']{1,400})*)@"),
        # formats that say whose they are: OpenAI and others, Stripe, GitHub, GitLab, Slack, AWS, Google, npm, Hugging
        # Face, SendGrid, JSON web tokens
        ("key", ("sk-", "sk_", "rk-", "rk_"), r"\b(?P<s>(?:sk|rk)[-_](?=[A-Za-z_-]{0,80}\d)[A-Za-z0-9_-]{12,})"),
        ("token", ("gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "xox", "npm_", "hf_"),
         r"\b(?P<s>(?:gh[opsur]_|github_pat_|glpat-|xox[abeoprs]-|npm_|hf_)[A-Za-z0-9_-]{10,})"),
        ("key", ("akia", "asia", "aroa", "aida"), r"\b(?P<s>(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,})\b"),
        ("key", ("aiza",), r"\b(?P<s>AIza[A-Za-z0-9_-]{30,})"),
        ("key", ("sg.",), r"\b(?P<s>SG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})"),
        ("token", ("eyj",), r"\b(?P<s>eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?)"),
        # Authorization: Bearer ..., Basic ...; "bearer authentication" is prose
        ("token", ("bearer", "basic"),
         r"(?i)\b(?:bearer|basic)[ \t]+(?=[^\s\"']*[\d+/=_.-]|[^\s\"']{20})(?P<s>[A-Za-z0-9+/=._~-]{6,})"),
        # name=value, "name": "value", name: value, --name value
        ("password", _WORDS, rf"{_BESIDE}(?!{_PUT})(?P<s>\"[^\"\n]{{1,4000}}\"|'[^'\n]{{1,4000}}')"),
        ("password", _WORDS,
         rf"{_BESIDE}(?!{_PROSE}|{_PUT}|bearer\b|basic\b)(?P<s>[^\s\"'&,;<>(){{}}\[\]]{{1,4000}})"),
        ("password", ("-pass", "-token", "-secret", "-api-key"),
         rf"(?i)--?(?:password|passwd|token|secret|api-key)[ \t]+(?!-|{_PUT})(?P<s>[^\s\"']{{1,4000}})"),
        ("key", ("key=", "sig=", "signature=", "credential=", "auth=", "code="),
         rf"(?i)[?&][\w.-]{{0,40}}{_IN_QUERY}=(?!{_PUT})(?P<s>[^\s&\"'#]{{1,4000}})"),
    )
)  # fmt: skip

# Fields of an object whose text is a credential whatever it looks like; `token_type` and `password_hint` are none.
_FIELD = re.compile(
    r"(?:\A|[_.-]|(?<=[a-z])(?=[A-Z]))(?:pass(?:word|wd|phrase)|pwd|secret|token|api[_-]?key|access[_-]?key|"
    r"private[_-]?key|authorization|credentials?|session[_-]?id|cookie)\Z",
    re.IGNORECASE,
)
_WORD = re.compile(rf"(?i)(?:{_PROSE}|[a-z]{{1,5}}\Z)")
LEAST_FIELD = 4
"""Shorter texts in such a field are no credentials."""


def blanked(_kind: str, _credential: str) -> str:
    """Puts a blank in its place."""
    return BLANK


def replaced(text: str, put: Put = blanked) -> str:
    """The text with each credential in it replaced. A text in which all were replaced stays as it is."""
    return _replaced(text, put, _PATTERNS)


_BY_FORM = tuple(each for each in _PATTERNS if each[0] != "password" and "key=" not in each[1])


def formats_blanked(text: str) -> str:
    """The text without credentials that are known by their form alone, whatever stands before them."""
    return _replaced(text, blanked, _BY_FORM)


_ALL_WORDS = tuple(dict.fromkeys(word for _, words, _ in _PATTERNS for word in words))
SHORT = 80
"""Longest text of which it is remembered whether there is anything to look for: names of fields come again."""


def _may_hold_one(text: str) -> bool:
    small = text.lower()
    for word in _ALL_WORDS:  # noqa: SIM110  # every result is asked, text by text: a generator takes three times as long
        if word in small:
            return True
    return False


_may_hold_one_before = lru_cache(maxsize=8_192)(_may_hold_one)


def _replaced(text: str, put: Put, patterns: Sequence[tuple[str, tuple[str, ...], re.Pattern[str]]]) -> str:
    if not (_may_hold_one_before(text) if len(text) <= SHORT else _may_hold_one(text)):
        return text
    small = text.lower()
    for kind, words, pattern in patterns:
        if any(word in small for word in words):
            text = pattern.sub(lambda found, kind=kind: _around(found, kind, put), text)  # type: ignore[misc]
    return text


def _around(found: re.Match[str], kind: str, put: Put) -> str:
    start, (begin, end) = found.start(), found.span("s")
    return found[0][: begin - start] + put(kind, found["s"]) + found[0][end - start :]


def replaced_in(value: Any, put: Put = blanked) -> Any:
    """A value of JSON with the credentials in all its texts and keys replaced, and the texts of fields that are called
    like a credential. The value itself where there is none."""
    return mapped(value, lambda text: replaced(text, put), lambda name, text: _field(name, text, put))


@lru_cache(maxsize=4_096)
def is_credential_field(name: str) -> bool:
    """Whether a field of this name holds a credential."""
    return bool(_FIELD.search(name))


def _field(name: str, text: str, put: Put) -> str:
    return put(_kind_of(name), text) if is_credential_field(name) and _is_one(text) else replaced(text, put)


def _is_one(text: str) -> bool:
    """Whether the text of such a field is a credential and not a word about one, nor what stands for one."""
    stands_for_one = text.startswith((BLANK, "[sealed:", "${"))
    return len(text) >= LEAST_FIELD and not stands_for_one and not _WORD.match(text)


def _kind_of(name: str) -> str:
    found = _FIELD.search(name)
    return re.sub(r"[^a-z]+", "_", found[0].lower()).strip("_") if found else "secret"
