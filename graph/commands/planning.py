"""`surestep plan` and `surestep validate`: plans that do not run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from graph.commands.printing import print_json, say, show, write_out
from graph.commands.reading import NoText, answer_in, read_bytes, values
from graph.commands.run import RunOptions
from graph.commands.shared import load_settings, opened, registry_for, waited
from graph.commands.verdict import verdict_lines
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
            return await agent.plan(
                options.goal, inputs=inputs, plan=draft, template=options.template, role=options.role
            )

    preview = waited(work)
    if as_json:
        print_json(preview.model_dump(mode="json"))
        return
    write_out(_yaml(preview.plan.draft.model_dump(mode="json", exclude_defaults=True)))
    estimate = preview.estimate
    asks = ", ".join(preview.approvals) or "nobody"
    later = ", ".join(step.id for step in preview.plan.steps if step.action == "plan" and not step.args)
    say(
        f"\n{counted(round(estimate['steps']), 'step')}, {estimate['critical_path_steps']:.0f} in a row, "
        f"at most {estimate['at_most_s']:.0f} s; asks a person at: {asks}"
        f"{f'; planned when reached: {later}' if later else ''}"
    )
    for warning in preview.warnings:
        say(f"warning: {warning}")


def validate_file(
    file: str, finish_reason: str | None, toolkits: Sequence[str], limits: Sequence[str], *, as_json: bool
) -> NoReturn:
    """Every fault of a plan; exit 0 if it is valid, else 1. A file that can be read and holds no text is a plan with a
    fault; one that cannot be read is InvalidInput."""
    from graph.given import limits_from
    from graph.validation import unreadable, validation

    body = read_bytes(file, "the plan")
    bounds = limits_from(values(limits, "--limit"))
    try:
        settings = load_settings(toolkits)
        found = validation(registry_for(settings), answer_in(body), finish_reason, bounds, [*settings.secrets])
    except NoText as error:
        found = unreadable(f"the file {error}")
    if as_json:
        print_json(found.model_dump(mode="json"))
    else:
        show(*verdict_lines(found))
    raise SystemExit(0 if found.valid else 1)


def _yaml(value: Any) -> str:
    import yaml

    return str(yaml.safe_dump(value, allow_unicode=True, sort_keys=False, width=110))
