"""A webhook: one message to one address that a person has configured, signed, to checked addresses only."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plans.errors import ConfigurationError
from plans.failure import ToolFailure
from tools.classify import retry_after
from tools.http.fetch import Reach, sent
from tools.http.hosts import HostPattern, Hosts, private_addresses
from tools.http.messages import Answer, Request
from tools.http.urls import Target, parse
from tools.output import BadOutput

if TYPE_CHECKING:
    from graph.settings import Settings
    from tools.http.connect import Resolver

TIMEOUT_S = 10.0
"""How long a receiver has to say that it has a message; what it does with it is for afterwards."""
MOST_BYTES = 10_000
"""What is read of a receiver's answer."""
_PREFIX = "whsec_"


class NotDelivered(Exception):
    """The receiver has not said that it has the message. `after_s` is how long it asks to be left alone, if it does."""

    def __init__(self, why: str, after_s: float | None = None) -> None:
        super().__init__(why)
        self.after_s = after_s


def signature(secret: bytes, message_id: str, sent_at: int, body: bytes) -> str:
    """What proves to the receiver that a message is ours and whole, in the form of standardwebhooks.com: version 1, an
    HMAC with SHA-256 over id, time (seconds since the epoch) and body."""
    signed = b".".join((message_id.encode(), str(sent_at).encode(), body))
    return "v1," + base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()


@dataclass(frozen=True)
class Webhook:
    """Where messages go. `reach` allows this one host, and no redirect to another."""

    target: Target
    secret: bytes
    reach: Reach

    async def send(self, message_id: str, body: bytes, *, now: float) -> None:
        """Deliver one message; returns when the receiver has it (any status of 200 to 299). Raises NotDelivered."""
        headers = {
            "content-type": "application/json",
            "webhook-id": message_id,
            "webhook-timestamp": str(int(now)),
            "webhook-signature": signature(self.secret, message_id, int(now), body),
        }
        answer = await self._answer(Request("POST", self.target, headers, body))
        if not 200 <= answer.status < 300:
            moved = " (redirects are not followed)" if 300 <= answer.status < 400 else ""
            raise NotDelivered(
                f"{self.target.authority} answered {answer.status}{moved}", retry_after(answer.headers, now)
            )

    async def _answer(self, request: Request) -> Answer:
        import httpcore

        where = self.target.authority
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await sent(request, self.reach)
        except TimeoutError:
            raise NotDelivered(f"{where} has not answered within {TIMEOUT_S:g} s") from None
        except (ToolFailure, BadOutput) as failure:
            raise NotDelivered(failure.message) from None
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError) as error:
            raise NotDelivered(f"{where} could not be reached ({type(error).__name__})") from None


def webhook_from(settings: Settings, *, resolve: Resolver | None = None) -> Webhook | None:
    """The webhook of the settings, if there is one. Raises ConfigurationError for one without a secret, and for one
    that would send in the clear to where others may read along."""
    if settings.notify_url is None:
        return None
    if settings.notify_secret is None:
        raise ConfigurationError(
            "notify_url is set and notify_secret is not: nobody could tell a message of Surestep's from a stranger's. "
            "Set SURESTEP_NOTIFY_SECRET to at least 16 characters that the receiver knows too"
        )
    target, private = parse(settings.notify_url), private_addresses(settings.http_private_hosts)
    if target.scheme != "https" and target.host not in private:
        is_address = target.host.replace(".", "").isdecimal() or ":" in target.host
        address = target.host if is_address else "10.0.0.5"
        raise ConfigurationError(
            f"notify_url leads to {target.authority} without TLS; use https, or name an internal service's address in "
            f"SURESTEP_HTTP_PRIVATE_HOSTS, such as {target.host}={address}"
        )
    hosts = Hosts((HostPattern(target.host, port=target.port),), private, "notify_url (SURESTEP_NOTIFY_URL)")
    reach = Reach(hosts, MOST_BYTES, settings.http_certificates, resolve)
    return Webhook(target, _key(settings.notify_secret.get_secret_value()), reach)


def _key(secret: str) -> bytes:
    """The key of a secret: base64 behind `whsec_`, as receivers hand it out, else its own letters."""
    if not secret.startswith(_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        raise ConfigurationError("notify_secret begins with whsec_ and goes on with what is no base64") from None
