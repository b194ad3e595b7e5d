"""`surestep token`: a signed token for somebody who calls a server, made where its secret is."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pydantic import ValidationError

from graph.commands.printing import print_json, write_out
from graph.commands.shared import load_settings
from graph.given import age_s
from graph.tokens import made_token
from plans.errors import InvalidInput
from plans.principals import Principal


def show_token(name: str, roles: Sequence[str], tenant: str, lasting: str, *, as_json: bool) -> None:
    """The token on stdout, and nothing else: it is a secret for as long as it holds. Raises InvalidInput,
    ConfigurationError."""
    settings, seconds = load_settings([]), age_s(lasting)
    try:
        principal = Principal(name=name, roles=tuple(roles), tenant=tenant or settings.tenant)
    except ValidationError as error:
        wrong = "; ".join(
            f"{each['loc'][0]} {each['input']!r}: {each['msg']}" for each in error.errors(include_url=False)
        )
        raise InvalidInput(f"no token for that: {wrong}") from None
    made = made_token(settings, principal, seconds, time.time())
    if as_json:
        print_json({"token": made, **principal.model_dump(mode="json"), "for_s": seconds})
    else:
        write_out(made + "\n")
