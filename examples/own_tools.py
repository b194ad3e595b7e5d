"""Tools of your own, a plan of your own: `python examples/own_tools.py`."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel

from graph.agent import open_agent
from tools.registry import Toolkit

weather = Toolkit("weather")


class Reading(BaseModel):
    """What a station measured, in degrees Celsius."""

    station: str
    celsius: float


@weather.tool(effect="read", timeout_s=2)
async def measure(station: str) -> Reading:
    """Read one station's thermometer."""
    return Reading(station=station, celsius=len(station) * 3.5)


@weather.tool(effect="read")
def warmest(readings: list[Reading]) -> Reading:
    """The warmest of several readings."""
    return max(readings, key=lambda reading: reading.celsius)


PLAN = {
    "goal": "where is it warmest?",
    "steps": [
        {"id": "all", "tool": "measure", "for_each": "${inputs.stations}", "args": {"station": "${item}"}},
        {"id": "best", "tool": "warmest", "args": {"readings": "${all}"}},
    ],
    "answer": "It is warmest in ${best.station}: ${best.celsius} °C",
}


async def main() -> None:
    """Run the plan and print its answer."""
    async with open_agent(toolkits=[weather]) as agent:
        result = await agent.run(plan=PLAN, inputs={"stations": ["Ulm", "Bremen", "Heidelberg"]})
        print(result.status, "-", result.answer)


asyncio.run(main())
