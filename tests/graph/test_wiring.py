"""The graph as it is drawn: every label stands in it, and it is exported as a server wants it."""

from __future__ import annotations

import json
from pathlib import Path

from graph.agent import graph

LABELLED = {
    ("__start__", "plan", "new_goal"),
    ("__start__", "observe", "instruction"),
    ("__start__", "dispatch", "continue"),
    ("validate", "dispatch", "ready"),
    ("validate", "plan", "redraft"),
    ("validate", "replan", "repatch"),
    ("validate", "finish", "give_up"),
    ("dispatch", "execute", "run"),
    ("dispatch", "approve", "human_interrupt"),
    ("observe", "dispatch", "next"),
    ("observe", "execute", "retry"),
    ("observe", "replan", "local_replan"),
    ("observe", "plan", "global_replan"),
    ("approve", "dispatch", "approved"),
    ("approve", "validate", "edited"),
    ("approve", "observe", "rejected"),
}
NAMED_BY_THEIR_TARGET = {
    ("dispatch", "finish"),
    ("observe", "fallback"),
    ("observe", "finish"),
    ("plan", "validate"),
    ("execute", "observe"),
    ("fallback", "dispatch"),
    ("replan", "validate"),
    ("finish", "__end__"),
}


def test_every_edge_of_the_design_is_drawn_with_its_label_and_no_other_edge_is() -> None:
    """get_graph() shows exactly the designed edges; an edge whose label is its target's name draws none."""
    edges = graph.get_graph().edges
    assert {(edge.source, edge.target, edge.data) for edge in edges if edge.data is not None} == LABELLED
    assert {(edge.source, edge.target) for edge in edges if edge.data is None} == NAMED_BY_THEIR_TARGET


def test_the_exported_graph_brings_no_checkpointer_and_langgraph_json_names_modules() -> None:
    """A server refuses a graph with a checkpointer of its own, and loads a file path twice."""
    configured = json.loads((Path(__file__).parents[2] / "langgraph.json").read_text("utf-8"))
    assert graph.checkpointer is None
    assert configured["graphs"]["agent"]["path"] == "graph.agent:graph"
    assert configured["checkpointer"] == {"path": "graph.serving.open_saver"}
