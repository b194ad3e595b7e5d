"""Personal data found by Microsoft Presidio (extra `presidio`), names and places among it, beside what we find by form.

Its language model has to be there: it is never downloaded by us.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from plans.errors import ConfigurationError
from plans.personal import Detector, Found, apart, personal_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable

KINDS: Mapping[str, str] = {
    "EMAIL_ADDRESS": "EMAIL", "PHONE_NUMBER": "PHONE", "CREDIT_CARD": "CARD", "IBAN_CODE": "IBAN", "PERSON": "PERSON",
    "LOCATION": "PLACE", "US_SSN": "ID", "US_PASSPORT": "ID", "US_DRIVER_LICENSE": "ID", "US_ITIN": "ID",
    "UK_NHS": "ID", "UK_NINO": "ID", "ES_NIF": "ID", "IT_FISCAL_CODE": "ID", "PL_PESEL": "ID", "IN_AADHAAR": "ID",
    "IN_PAN": "ID", "SG_NRIC_FIN": "ID", "AU_TFN": "ID", "MEDICAL_LICENSE": "ID",
}  # fmt: skip
"""Its kinds in our words; others are not asked for: a date or a URL is nobody's by itself."""
LEAST_SCORE = 0.5
"""How sure it has to be."""
INSTALL = (
    "privacy = \"presidio\" needs the extra and a language model: pip install 'surestep[presidio]', then "
    "python -m spacy download en_core_web_lg"
)


def presidio_detector() -> Detector:
    """What Presidio finds and what we find ourselves. Raises ConfigurationError where it or its language model is not
    there: nothing is let through for lack of it. Loads for seconds: not on an event loop."""
    analyzer = _analyzer()

    def find(text: str) -> Iterable[Found]:
        found = analyzer.analyze(text=text, language="en", entities=list(KINDS), score_threshold=LEAST_SCORE)
        named = sorted(found, key=lambda each: -each.score)
        return apart(
            [*personal_pieces(text), *(Found(each.start, each.end, KINDS[each.entity_type]) for each in named)]
        )

    return find


@cache
def _analyzer() -> Any:
    try:
        import spacy
        from presidio_analyzer import AnalyzerEngine
    except ImportError as error:
        raise ConfigurationError(f"{INSTALL} ({error.name} is missing)") from None
    if not spacy.util.is_package("en_core_web_lg"):  # asked first: Presidio would download it
        raise ConfigurationError(INSTALL)
    return AnalyzerEngine()
