"""What other planners and formats call the fields of a plan and of a step. Only for saying what would be right: a field
of another name is a fault, and never read as ours."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from plans.wording import bare, nearest

_NAMES: Mapping[str, str] = {
    "args": "arguments parameters params kwargs input inputs tool_input tool_args tool_parameters action_input",
    "depends_on": "dependencies dependency deps dep depends after prerequisites needs parents",
    "tool": "tool_name function function_name name task",
    "id": "step_id step step_number number index key name",
    "instruction": "prompt question query task",
    "reason": "rationale reasoning thought thoughts explanation why description",
    "title": "name label",
    "for_each": "foreach loop loop_over iterate_over map",
    "when": "condition if",
    "success_when": "success_criteria success_criterion expected_output",
    "on_dependency_failure": "on_failure on_error",
    "timeout_s": "timeout",
    "require_approval": "approval needs_approval human_approval confirm",
    "steps": "plan tasks actions task_nodes task_steps nodes",
    "goal": "objective task query question",
    "answer": "final_answer response",
}
FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        name: tuple(field for field, names in _NAMES.items() if name in names.split())
        for name in " ".join(_NAMES.values()).split()
    }
)
"""By a name used elsewhere the fields that it may stand for, the likeliest first."""


def field_meant(name: str, free: Collection[str]) -> str | None:
    """The field that a name was probably to be, out of those that are not written yet; None: nobody can tell."""
    return next((field for field in FIELDS.get(bare(name), ()) if field in free), None) or nearest(name, free)
