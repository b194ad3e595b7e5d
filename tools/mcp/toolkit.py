"""The toolkit of an MCP server: its tools are listed when a registry is made, and its connection opened by the first
call on an event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from plans.errors import ConfigurationError
from plans.wording import nearest
from tools.callee import Callee
from tools.declaration import spec_of
from tools.json_arguments import SchemaArguments
from tools.json_result import SchemaResult
from tools.mcp.config import Policy, Server
from tools.mcp.definition import Definition, Faulty, name_of, read
from tools.mcp.names import names_for
from tools.mcp.policy import declared, errors_are_certain
from tools.output import Result
from tools.outside import CONTEXT, OutsideToolkit, ToolsAbsent
from tools.tool import Tool

if TYPE_CHECKING:
    from tools.mcp.calling import Pinned
    from tools.mcp.link import Link


def mcp_toolkit(
    name: str,
    *,
    command: Sequence[str] | str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | str | None = None,
    url: str | None = None,
    headers: Mapping[str, str] | None = None,
    tools: Mapping[str, Policy] | None = None,
    **more: Any,
) -> McpToolkit:
    """The tools of one MCP server, started by `command` or reached at `url`; nothing is opened yet. What each of them
    may do is said in `tools`, and the rest as in `tools.mcp.Server`: `every`, `only`, `without`, `prefix`,
    `trust_annotations`, `ignore_annotations`, `start_timeout_s`. Raises ConfigurationError."""
    said: dict[str, Any] = {
        "command": command, "env": env, "cwd": cwd, "url": url, "headers": headers, "tools": tools, **more,
    }  # fmt: skip
    try:
        return McpToolkit(name, Server.model_validate({key: value for key, value in said.items() if value is not None}))
    except ValidationError as error:
        told = [f"{'.'.join(map(str, each['loc'])) or name}: {each['msg']}" for each in error.errors(include_url=False)]
        raise ConfigurationError(f"the MCP toolkit {name!r} cannot be used: {'; '.join(told)}") from None


class McpToolkit(OutsideToolkit):
    """What a server offers and configuration allows. A tool stays what it was when it was listed: one that its server
    changes afterwards is refused, for as long as this toolkit lives."""

    def __init__(self, name: str, server: Server) -> None:
        super().__init__(name, prefix=f"{name}_" if server.prefix is None else server.prefix)
        self.server = server
        self._links: dict[asyncio.AbstractEventLoop, list[Link]] = {}
        self._verify: Any = True

    def prepare(self) -> None:
        """Load what speaks MCP, and the certificates that are trusted. Raises ConfigurationError where it is not
        installed."""
        if find_spec("mcp") is None or find_spec("httpx") is None:
            raise ConfigurationError(
                f"the toolkit {self.name!r} is an MCP server's, and what speaks to one is not installed: "
                "install Surestep with its extra `mcp` (pip install 'surestep[mcp]')"
            )
        import ssl

        import jsonschema  # noqa: F401  # for what importing it loads: it reads files, which no event loop may wait for
        import referencing.jsonschema  # noqa: F401  # the same

        import tools.mcp.calling  # noqa: F401  # the same
        from tools.mcp.logs import keep_quiet

        keep_quiet(self.server.secrets)
        if (self.server.url or "").startswith("https:"):
            self._verify = ssl.create_default_context()
        else:
            self._verify = False

    async def find(self) -> None:
        """List the server's tools by a connection of this search."""
        from tools.mcp.link import NotOpened
        from tools.mcp.peer import Answered, Lost

        link = self._new_link()
        until = time.monotonic() + 2 * self.server.start_timeout_s
        try:
            listed = await link.listed(until)
        except NotOpened as why:
            raise ToolsAbsent(str(why)) from None
        except Answered as error:
            raise ToolsAbsent(f"{self.server.shown} lists no tools (JSON-RPC error {error.code})") from None
        except (Lost, TimeoutError):
            raise ToolsAbsent(f"{self.server.shown} did not list its tools") from None
        finally:
            await link.close()
        self._declare(listed)

    async def close(self) -> None:
        """End this event loop's connection, and wait for those that are ending."""
        links = self._links.pop(asyncio.get_running_loop(), [])
        await asyncio.gather(*(link.close() for link in links))

    def _new_link(self) -> Link:
        from tools.mcp.link import Link

        return Link(self.server, self._verify)

    def _link(self) -> Link:
        """This event loop's connection; a new one where there is none, or where it is over."""
        loop = asyncio.get_running_loop()
        self._links = {each: links for each, links in self._links.items() if not each.is_closed()}
        links = self._links[loop] = [link for link in self._links.get(loop, []) if not link.ended]
        if not links or links[-1].over:
            links.append(self._new_link())
        return links[-1]

    def _declare(self, listed: Sequence[object]) -> None:
        self.tools.clear()
        self.faults.clear()
        self.left_out.clear()
        self.remarks.clear()
        found = self._readable(listed)
        chosen = {name: str(policy["name"]) for name, policy in self.server.tools.items() if "name" in policy}
        names = names_for(found, self.prefix, chosen)
        for definition in found.values():
            self._add_defined(definition, names[definition.name])
        self._remark_unknown({name for each in listed if (name := name_of(each, 0))})

    def _readable(self, listed: Sequence[object]) -> dict[str, Definition]:
        """The definitions that can be used and that configuration wants, the first of each name."""
        found: dict[str, Definition] = {}
        for position, each in enumerate(listed):
            name = name_of(each, position)
            if not self._wanted(name):
                continue
            try:
                definition = read(each)
                if definition.name in found:
                    raise Faulty("it is listed twice, and the first one is taken")
                found[definition.name] = definition
            except Faulty as fault:
                self.left_out[name] = str(fault)
        return found

    def _wanted(self, name: str) -> bool:
        only, without = self.server.only, self.server.without
        return (only is None or name in only) and name not in without

    def _add_defined(self, definition: Definition, name: str) -> None:
        """One tool: what is wrong with our configuration is a fault of ours, with its declaration one of the tool's."""
        said, remarks = declared(self.server, definition)
        described = "description" not in said
        digest = definition.digest(described=described)
        wanted = said.get("version", digest)
        said = {"description": definition.description, **said, "name": name, "version": digest}
        spec, faults = spec_of({**said, "isolation": "async"})
        self.faults += [f"tool {name!r} of the MCP server {self.name!r} {fault}" for fault in faults]
        if wanted != digest:
            self.left_out[name] = f"it is version {digest} now, and configuration wants {wanted}"
            return
        from tools.mcp.calling import Pinned

        certain = errors_are_certain(self.server, definition.name)
        pinned = Pinned(name, definition, digest, described, spec.effect == "read", certain)
        result = SchemaResult(definition.output_schema) if definition.output_schema is not None else Result()
        arguments = SchemaArguments(definition.input_schema)
        tool = Tool(spec, arguments, result, self._callee(pinned), toolkit=self.name)
        if CONTEXT in arguments.names:
            self.left_out[name] = f"it has an argument {CONTEXT!r}"
        else:
            self.tools[name] = tool
            self.remarks += [f"{name} {remark}" for remark in remarks]

    def _callee(self, pinned: Pinned) -> Callee:
        async def call(**named: Any) -> Any:
            from tools.mcp.calling import call as made

            ctx = named.pop(CONTEXT)
            return await made(self._link, pinned, named, ctx)

        return Callee(call, is_async=True, context=CONTEXT)

    def _remark_unknown(self, listed: set[str]) -> None:
        """Names in our configuration that the server does not know: a misspelt one would go unnoticed."""
        server = self.server
        for place, names in (("tools", server.tools), ("only", server.only or ()), ("without", server.without)):
            for name in names:
                if name not in listed:
                    close = nearest(name, listed)
                    self.remarks.append(
                        f"{place} names {name!r}, which its server does not list"
                        + (f"; did you mean {close!r}?" if close else "")
                    )
