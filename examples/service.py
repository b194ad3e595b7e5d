"""Tools from an OpenAPI document, against a service on this machine: `python examples/service.py`."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from graph.agent import open_agent
from tools.openapi import openapi_toolkit

READING = {
    "type": "object",
    "required": ["station", "celsius"],
    "properties": {"station": {"type": "string"}, "celsius": {"type": "number"}},
}
DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "paths": {
        "/stations/{station}": {
            "get": {
                "operationId": "measure",
                "summary": "Read one station's thermometer.",
                "parameters": [{"name": "station", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {"200": {"content": {"application/json": {"schema": READING}}}},
            }
        }
    },
}
PLAN = {
    "goal": "how warm is it in Ulm?",
    "steps": [{"id": "s1", "tool": "measure", "args": {"station": "${inputs.station}"}}],
    "answer": "${s1.station}: ${s1.celsius} °C",
}


async def stations(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The service: anybody's, in any language; here it runs beside the example."""
    path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
    body = json.dumps({"station": path.rpartition("/")[2], "celsius": 10.5}).encode()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    await writer.drain()
    writer.close()


async def main() -> None:
    """Run the plan against the service and print its answer."""
    service = await asyncio.start_server(stations, "127.0.0.1", 0)
    kit = openapi_toolkit(
        "stations",
        DOCUMENT,
        base_url=f"http://localhost:{service.sockets[0].getsockname()[1]}",
        private_hosts=["localhost=127.0.0.1"],  # without this no address of this machine is reached
    )
    async with service, open_agent(toolkits=[kit]) as agent:
        result = await agent.run(plan=PLAN, inputs={"station": "Ulm"})
        print(result.status, "-", result.answer)


asyncio.run(main())
