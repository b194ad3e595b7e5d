"""`surestep plan` and `surestep validate`: plans that do not run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from graph.commands.printing import print_json, say, show, write_out
from graph.commands.reading import read_text
from graph.commands.run import RunOptions
from graph.commands.shared import load_settings, opened, registry_for, waited
from plans.wording import counted

if TYPE_CHECKING:
    from graph.result import PlanPreview


def show_plan(options: RunOptions, toolkits: Sequence[str], *, as_json: bool) -> None:
    """The plan on stdout, as YAML that `run --plan` takes; what it will ask and take on stderr."""
    options.one_source()
    inputs, draft = options.named_inputs(), options.draft()
    opening = opened(toolkits)

    async def work() -> PlanPreview:
        async with opening as agent:
            return await agent.plan(options.goal, inputs=inputs, plan=draft, template=options.template)

    preview = waited(work)
    if as_json:
        print_json(preview.model_dump(mode="json"))
        return
    write_out(_yaml(preview.plan.draft.model_dump(mode="json", exclude_defaults=True)))
    estimate = preview.estimate
    asks = ", ".join(preview.approvals) or "nobody"
    say(
        f"\n{counted(round(estimate['steps']), 'step')}, {estimate['critical_path_steps']:.0f} in a row, "
        f"at most {estimate['at_most_s']:.0f} s; asks a person at: {asks}"
    )
    for warning in preview.warnings:
        say(f"warning: {warning}")


def validate_file(file: str, finish_reason: str | None, toolkits: Sequence[str], *, as_json: bool) -> NoReturn:
    """Every fault of a plan; exit 0 if it is valid, else 1."""
    from graph.validation import validation

    text = read_text(file, "the plan")
    found = validation(registry_for(load_settings(toolkits)), text, finish_reason)
    if as_json:
        print_json(found.model_dump(mode="json"))
    else:
        for fault in found.faults:
            show(f"{fault.severity}: {fault}")
        steps = f", {counted(len(found.plan['steps']), 'step')}" if found.plan else ""
        show(f"{'valid' if found.valid else 'not valid'}{' (repaired)' if found.repaired else ''}{steps}")
    raise SystemExit(0 if found.valid else 1)


def _yaml(value: Any) -> str:
    import yaml

    return str(yaml.safe_dump(value, allow_unicode=True, sort_keys=False, width=110))
