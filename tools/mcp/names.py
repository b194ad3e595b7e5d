"""Names for a server's tools: ours allow letters, digits, _ and -, and no two tools share one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

MOST = 64
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


def names_for(listed: Iterable[str], prefix: str, chosen: Mapping[str, str]) -> dict[str, str]:
    """A name of ours for each of the server's, whatever their order: the chosen one, else the prefix and its own. One
    that had to be changed and then means two tools ends with a digest of the original."""
    originals = list(dict.fromkeys(listed))
    plain = {name: chosen.get(name) or _UNSAFE.sub("_", prefix + name)[:MOST] for name in originals}
    kept = {plain[name] for name in originals if plain[name] in (chosen.get(name), prefix + name)}
    changed = [plain[name] for name in originals if plain[name] not in (chosen.get(name), prefix + name)]
    return {
        name: ours
        if ours in (chosen.get(name), prefix + name) or (ours not in kept and changed.count(ours) == 1)
        else _told_apart(ours, name)
        for name, ours in plain.items()
    }


def _told_apart(ours: str, original: str) -> str:
    digest = hashlib.sha256(original.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{ours[: MOST - 9]}_{digest}"
