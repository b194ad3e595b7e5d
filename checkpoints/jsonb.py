"""JSON text for jsonb columns: what is read back is what was written, to the type."""

from __future__ import annotations

import json
import re
from decimal import Decimal

from plans.values import JSON, clean

_STRING_OR_LARGE_FLOAT = re.compile(r'"(?:[^"\\]|\\.)*"|-?[\d.]+e\+\d+')


def jsonb(value: JSON) -> str:
    """The text of a value for a jsonb column; ValueError names each place that PostgreSQL would refuse.

    jsonb keeps numbers as decimals: 1e+16 would come back as an integer, 1e+300 as one that no column takes again.
    Written out with a decimal point they come back as the floats they were.
    """
    text = json.dumps(clean(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _STRING_OR_LARGE_FLOAT.sub(_written_out, text) if "e+" in text else text


def _written_out(token: re.Match[str]) -> str:
    return token[0] if token[0].startswith('"') else f"{Decimal(token[0]):f}.0"
