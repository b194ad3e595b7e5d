"""The `surestep policy` commands: options and words. What they do stands in `graph/commands`, imported when called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from graph.cli_options import Json, Toolkits

policy_app = typer.Typer(help="The rules that say who may do what, and who is asked.", no_args_is_help=True)

PolicyFile = Annotated[
    Path | None, typer.Option("--policy", metavar="FILE", help="This policy; default: the setting `policy`.")
]


@policy_app.command("check")
def policy_check(policy: PolicyFile = None, toolkit: Toolkits = None, json: Json = False) -> None:
    """Judge a policy against the tools there are, and show what a call of each may come to."""
    from graph.commands.policy import check_policy

    check_policy(policy, toolkit or [], as_json=json)


@policy_app.command("explain")
def policy_explain(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The tool that is called.")],
    arg: Annotated[
        list[str] | None, typer.Option("--arg", metavar="NAME=VALUE", help="An argument, JSON or text; repeatable.")
    ] = None,
    unknown: Annotated[
        list[str] | None, typer.Option("--unknown", metavar="NAME", help="An argument not known yet; repeatable.")
    ] = None,
    tainted: Annotated[
        list[str] | None, typer.Option("--tainted", metavar="NAME", help="One with text of strangers; repeatable.")
    ] = None,
    role: Annotated[str | None, typer.Option("--role", help="The role that the run acts in.")] = None,
    tenant: Annotated[str, typer.Option("--tenant", help="The tenant whose run it is.")] = "",
    risk: Annotated[
        Literal["low", "medium", "high"] | None,
        typer.Option("--risk", help="The risk of the step; default: its tool's."),
    ] = None,
    policy: PolicyFile = None,
    toolkit: Toolkits = None,
    json: Json = False,
) -> None:
    """Show rule by rule what a call comes to, and why."""
    from graph.commands.policy import Supposed, explain_call

    supposed = Supposed(tool, arg or [], unknown or [], tainted or [], role, tenant, risk)
    explain_call(supposed, policy, toolkit or [], as_json=json)
