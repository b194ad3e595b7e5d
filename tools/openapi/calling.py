"""One call of an operation: the request that its arguments make, and what its answer means."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from plans.failure import ToolFailure
from plans.values import JSON
from tools.context import ToolContext
from tools.error_flags import refuse_flagged
from tools.http.content import json_of, media_type, text_of
from tools.http.fetch import Reach, follow, sent
from tools.http.messages import Answer, Request, StatusError
from tools.http.urls import MAX_LENGTH, Target
from tools.openapi.arguments import FORM
from tools.openapi.authentication import Credential, blanked, blanked_value
from tools.openapi.operations import Operation
from tools.openapi.parameters import Parameter, Place, form, in_cookie, in_header, in_path, in_query
from tools.output import BadOutput, Result
from tools.spec import ToolSpec

_HOLE = re.compile(r"(\{[^{}]*\})")
# What a cookie's value may hold (RFC 6265): a token is sent as it was given.
_KEPT_IN_COOKIE = "!#$%&'()*+/:<=>?@[]^`{|}~"
_KEPT_IN_PATH = "!$&'()*+,;=:@/-._~%"


@dataclass(frozen=True)
class Endpoint:
    """An operation where it is called: below `base`, with these credentials, and the header for its key if it has one.
    `results` by status are what the value of an answer has to fit."""

    operation: Operation
    base: Target
    reach: Reach
    credentials: tuple[Credential, ...] = ()
    idempotency_header: str | None = None
    results: Mapping[str, Result] = field(default_factory=dict)


async def perform(endpoint: Endpoint, spec: ToolSpec, args: Mapping[str, JSON], ctx: ToolContext) -> JSON:
    """The value of the answer. Raises StatusError, ToolFailure, BadOutput, and httpcore's errors of the connection."""
    request = request_for(endpoint, args, ctx.idempotency_key)
    async with asyncio.timeout(ctx.seconds_left):
        answer = await _answered(endpoint, request)
    answer = replace(answer, body=blanked(answer.body, endpoint.credentials))
    if not 200 <= answer.status < 300:
        raise StatusError(answer, request.target)
    if endpoint.operation.method == "HEAD":  # an answer without a body, whatever the document says of one
        return None
    value = blanked_value(_value(endpoint.operation, answer), endpoint.credentials)
    refuse_flagged(spec, value)  # before the schema: an error body rarely has the fields of an answer
    result = endpoint.results.get(endpoint.operation.answering(answer.status) or "")
    return value if result is None else result.stored(value)


async def _answered(endpoint: Endpoint, request: Request) -> Answer:
    """What is no read is sent once and led nowhere: a redirect is its answer."""
    if not endpoint.operation.reads:
        return await sent(request, endpoint.reach)
    _, answer = await follow(request, endpoint.reach, stay=True)
    return answer


def request_for(endpoint: Endpoint, args: Mapping[str, JSON], key: str) -> Request:
    """The request that these arguments make. ToolFailure INVALID_ARGS for a value that cannot stand in its place."""
    operation = endpoint.operation
    placed: dict[Place, list[tuple[Parameter, JSON]]] = {"path": [], "query": [], "header": [], "cookie": []}
    for parameter, value in _given(operation, args):
        placed[parameter.place].append((parameter, value))
    query = [part for parameter, value in placed["query"] for part in in_query(parameter, value)]
    headers = {"Accept": "application/json, text/*;q=0.5"}
    headers |= {parameter.name: in_header(parameter, value) for parameter, value in placed["header"]}
    cookies = [in_cookie(parameter, value) for parameter, value in placed["cookie"]]
    for credential in endpoint.credentials:
        if credential.place == "header":
            headers[credential.name] = credential.value
        else:
            safe, parts = ("", query) if credential.place == "query" else (_KEPT_IN_COOKIE, cookies)
            parts.append(f"{quote(credential.name, safe='')}={quote(credential.value, safe=safe)}")
    if cookies:
        headers["Cookie"] = "; ".join(cookies)
    if endpoint.idempotency_header is not None:
        headers[endpoint.idempotency_header] = key
    content = _content(operation, args, headers)
    path = endpoint.base.path.rstrip("/") + _path(operation, placed["path"])
    whole = f"{path}?{'&'.join(query)}" if query else path
    if len(whole) > MAX_LENGTH:
        raise ToolFailure("INVALID_ARGS", f"these arguments make a URL of {len(whole):,} characters")
    return Request(operation.method, replace(endpoint.base, path=whole), headers, content)


def _given(operation: Operation, args: Mapping[str, JSON]) -> Iterator[tuple[Parameter, JSON]]:
    """What is to be written; null outside of a path is nothing, since no style can write it."""
    for parameter in operation.parameters:
        value = args.get(parameter.argument)
        if value is not None or (parameter.place == "path" and parameter.argument in args):
            yield parameter, value
        elif parameter.required and parameter.default is not ...:
            yield parameter, parameter.default


def _path(operation: Operation, placed: list[tuple[Parameter, JSON]]) -> str:
    """The template with each hole filled; what is put into one is not looked at for others."""
    written = {f"{{{parameter.name}}}": in_path(parameter, value) for parameter, value in placed}
    parts = _HOLE.split(operation.path)
    return "".join(written[part] if part in written else quote(part, safe=_KEPT_IN_PATH) for part in parts)


def _content(operation: Operation, args: Mapping[str, JSON], headers: dict[str, str]) -> bytes | None:
    body = operation.body
    if body is None or body.argument not in args:
        # A write without a body says so: some servers wait for one otherwise.
        return b"" if operation.method in ("POST", "PUT", "PATCH") else None
    value = args[body.argument]
    headers["Content-Type"] = body.media
    if body.media.partition(";")[0].strip().lower() != FORM:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    if not isinstance(value, Mapping):
        raise ToolFailure("INVALID_ARGS", f"{body.argument} is sent as a form, so it should be an object")
    return form(value).encode()


def _value(operation: Operation, answer: Answer) -> JSON:
    """JSON as its value, text as text, nothing as null."""
    if answer.truncated:
        raise BadOutput("OUTPUT_INVALID", f"the answer has more than {len(answer.body):,} bytes")
    if not answer.body:
        return None
    media = media_type(answer.headers.get("content-type"))
    declared = operation.answering(answer.status)
    if media.is_json or (not media.name and declared is not None):
        return json_of(answer.body)
    if media.is_text:
        return text_of(answer.body, media)
    raise BadOutput("OUTPUT_INVALID", f"the answer is {media.name[:80]}; only JSON and text can be given")
