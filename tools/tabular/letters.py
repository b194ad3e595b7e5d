"""Which letters the languages of an encoding use: enough to tell the common encodings of exported tables apart."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

_PUNCTUATION = "–—‘’“”„…•€£§°²³µ·«»¿¡©®™× ´"
_WEST = {
    "german": "äöüß", "french": "àâçéèêëîïôùûüÿœæ", "spanish": "áéíñóúü", "italian": "àèéìòù", "dutch": "ëïéèö",
    "portuguese": "áâãàçéêíóôõú", "nordic": "åäöæøéü", "icelandic": "áéíóúýþæöð",
}  # fmt: skip
_EAST = {
    "cp1250": ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "čćđšž", "ăâîșşțţ"),
    "cp1254": ("çğıöşüâîûİ",),
}
_SCRIPTS = {
    "cp1251": ("\u0400-\u04ff", "оеаинтср"), "koi8_r": ("\u0400-\u04ff", "оеаинтср"),
    "cp1253": ("\u0370-\u03ff", "αοιετσνηυρπκλςάόίέ"), "cp1255": ("\u0590-\u05ff", "יוהלאמרתבשנכ"),
    "cp1256": ("\u0600-\u06ff", "اليمونترب"),
}  # fmt: skip
_UNDEFINED_IN_CP1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
_NAMED_ENOUGH = 0.9
_CERTAIN = 0.98


class _Family(NamedTuple):
    """A multi-byte encoding and the test for the bytes of a character that its texts really use."""

    encoding: str
    common: Callable[[bytes], bool]


def _chinese(code: bytes) -> bool:
    return len(code) == 2 and code[1] >= 0xA1 and (0xB0 <= code[0] <= 0xD7 or code[0] in (0xA1, 0xA3))


def _korean(code: bytes) -> bool:
    return len(code) == 2 and code[1] >= 0xA1 and (0xB0 <= code[0] <= 0xC8 or code[0] in (0xA1, 0xA3))


def _traditional(code: bytes) -> bool:
    return len(code) == 2 and (0xA4 <= code[0] <= 0xC6 or code[0] == 0xA1)


def _japanese_euc(code: bytes) -> bool:
    return len(code) == 2 and (0xB0 <= code[0] <= 0xCF or code[0] in (0xA1, 0xA3, 0xA4, 0xA5))


def _japanese_sjis(code: bytes) -> bool:
    return 0x88 <= code[0] <= 0x97 or code[0] in (0x81, 0x82, 0x83) if len(code) == 2 else 0xA6 <= code[0] <= 0xDF


_FAMILIES = (
    _Family("gb18030", _chinese), _Family("cp949", _korean), _Family("big5", _traditional),
    _Family("euc_jp", _japanese_euc), _Family("cp932", _japanese_sjis),
)  # fmt: skip


def best_multibyte(sample: bytes) -> str | None:
    """The East Asian encoding whose everyday characters make up the sample, or None where none fits well."""
    shares = {family.encoding: _common_share(sample, family) for family in _FAMILIES}
    name, share = max(shares.items(), key=lambda item: item[1])
    if share < _NAMED_ENOUGH:
        return None
    leads = _lead_bytes(sample)
    if shares["euc_jp"] >= _NAMED_ENOUGH and sum(lead in (0xA4, 0xA5) for lead in leads) > 0.15 * len(leads):
        return "euc_jp"
    if shares["cp949"] == 1.0 and len(leads) >= 6 and all(lead <= 0xC8 for lead in leads):
        return "cp949"
    return name


def _lead_bytes(sample: bytes) -> list[int]:
    """The first byte of each pair, read the EUC way."""
    return [pair[0] for pair in re.findall(rb"[\x81-\xfe][\x40-\xfe]", sample)]


def _common_share(sample: bytes, family: _Family) -> float:
    try:
        characters = [c for c in sample.decode(family.encoding) if ord(c) > 127]
    except UnicodeDecodeError:
        return 0.0
    single = sum(len(c.encode(family.encoding)) == 1 for c in characters)
    if family.encoding == "cp932" and single and _alone(sample) > 0.2:
        return 0.0
    return sum(family.common(c.encode(family.encoding)) for c in characters) / max(len(characters), 1)


def _alone(sample: bytes) -> float:
    """The share of high bytes that have no high neighbour: near 1 in Western text, near 0 in East Asian."""
    high = len(re.findall(rb"[\x80-\xff]", sample))
    return len(re.findall(rb"(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])", sample)) / max(high, 1)


def best_single_byte(sample: bytes) -> str | None:
    """A code page that reads the sample as letters its languages use, or None."""
    if script := _other_script(sample):
        return script
    west = [c for c in _read(sample, "cp1252") if c != "\ufffd"]
    if max(_share(west, letters) for letters in _WEST.values()) < _CERTAIN:
        for encoding, languages in _EAST.items():
            letters = _read(sample, encoding)
            if len(set(letters)) > 2 and max(_share(letters, language) for language in languages) >= _CERTAIN:
                return encoding
    if _share(west, "".join(_WEST.values())) < 0.8:
        return None
    return "latin-1" if _UNDEFINED_IN_CP1252.search(sample) else "cp1252"


def _read(sample: bytes, encoding: str) -> list[str]:
    return [c for c in sample.decode(encoding, "replace") if ord(c) > 127]


def _share(characters: list[str], letters: str) -> float:
    known = set(letters + letters.upper() + _PUNCTUATION)
    return sum(c in known for c in characters) / max(len(characters), 1)


def _other_script(sample: bytes) -> str | None:
    """Cyrillic, Greek, Hebrew or Arabic: the words are of that script, and of its most frequent letters. cp1251 and
    koi8_r read each other's letters with the case turned round, so odd capitals count against a reading."""
    scores = {encoding: _script_score(sample, encoding, *script) for encoding, script in _SCRIPTS.items()}
    name, score = max(scores.items(), key=lambda item: item[1])
    return name if score > 0.7 else None


def _script_score(sample: bytes, encoding: str, script: str, frequent: str) -> float:
    text = sample.decode(encoding, "replace")
    words = re.findall(f"[{script}]{{2,}}", text)
    letters = sum(map(len, words))
    if letters < 0.8 * len(_read(sample, encoding)) or not letters:
        return 0.0
    usual = sum(c.lower() in frequent for word in words for c in word)
    odd = sum(len(word) for word in words if not (word.islower() or word.istitle() or word.isupper()) and word[0] < "֐")
    shouted = sum(len(word) for word in words if word.isupper())
    return 1 + (usual - odd - 0.25 * shouted) / letters - 0.4
