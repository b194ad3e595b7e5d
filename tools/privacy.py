"""Personal data and credentials out of what leaves a run: prompts, errors, logs, traces, archive. Fails closed: a text
that cannot be looked through is withheld whole."""

from __future__ import annotations

from dataclasses import dataclass

from plans.personal import Detector, Found, masked, named, personal_pieces
from plans.texts import mapped
from plans.values import JSON
from tools.redaction import redacted, redacted_in

WITHHELD = "[withheld: personal data could not be looked for in it]"


class NotLookedThrough(Exception):
    """A detector has failed, so that nobody knows what is in the text."""


@dataclass(frozen=True)
class Privacy:
    """How personal data is found; `detect` None finds none, and leaves texts as they are but for credentials."""

    detect: Detector | None = personal_pieces

    def text(self, text: str) -> str:
        """The text for a log, a trace or an error: pieces of personal data by their kind alone, credentials blanked."""
        return redacted(self._masked(text))

    def value(self, value: JSON) -> JSON:
        """The same for all texts of a value of JSON. Fields that are called like a credential lose theirs too."""
        return redacted_in(self.personal_in(value))

    def personal_in(self, value: JSON) -> JSON:
        """A value without personal data; credentials stay, or are placeholders already."""
        return mapped(value, self._masked)

    def _masked(self, text: str) -> str:
        if self.detect is None:
            return text
        try:
            return masked(text, self.finding(), named)
        except NotLookedThrough:
            return WITHHELD

    def finding(self) -> Detector:
        """The detector, whose failures are NotLookedThrough whatever they were."""
        from tools.normalise import catching

        detect = self.detect

        def find(text: str) -> list[Found]:
            found: list[Found] = []
            with catching() as caught:
                found = list(detect(text)) if detect is not None else []
            if caught.error is not None:
                raise NotLookedThrough(type(caught.error).__name__) from None
            return found

        return find


BUILT_IN = Privacy()
