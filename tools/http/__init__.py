"""The toolkit `http`: JSON and text from hosts that a person has allowed.

    http(url, params={}, headers={}, method="GET"|"HEAD")                                                       read

The result has `status`, `url` (the last one of the redirects), `media_type`, `headers`, `json` or `text`, `truncated`.
Good criteria (`success_when`): `json.total > `0``, `status == `200``.

Which hosts: `http_hosts` (SURESTEP_HTTP_HOSTS); with none, the tool says so and is offered to no planner. Addresses
that are not public are refused after the look-up, at every redirect anew, and the connection goes to the address that
was checked; an internal service is allowed by `http_private_hosts` (SURESTEP_HTTP_PRIVATE_HOSTS), as name=address.
Nothing of the environment is used: no proxy, no cookie, no stored password. Not followed: redirects from https to http,
more than five, and those in a circle.

Failures: NOT_PERMITTED (the guard, 401, 403), INVALID_ARGS (the URL, other 4xx), NOT_FOUND, RATE_LIMITED, TIMEOUT,
UNAVAILABLE, OUTPUT_INVALID (neither JSON nor text, JSON that is not, too large).
"""

from __future__ import annotations

from tools.http.toolkit import http_toolkit

__all__ = ["http_toolkit"]
