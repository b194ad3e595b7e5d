"""`surestep token`: options and words. What it does stands in `graph/commands/token.py`."""

from __future__ import annotations

from typing import Annotated

import typer

from graph.cli_options import Json

Name = Annotated[str, typer.Argument(metavar="NAME", help="Who is to be known by it.")]
Roles = Annotated[list[str] | None, typer.Option("--role", metavar="ROLE", help="A role of theirs; repeatable.")]
Tenant = Annotated[str, typer.Option("--tenant", metavar="TENANT", help="Whose threads they see.")]
Lasting = Annotated[str, typer.Option("--for", metavar="AGE", help="How long it holds: 15m, 8h, 7d.")]


def token(name: Name, role: Roles = None, tenant: Tenant = "", lasting: Lasting = "8h", json: Json = False) -> None:
    """Make a token for a caller of a server that asks for them."""
    from graph.commands.token import show_token

    show_token(name, role or [], tenant, lasting, as_json=json)
