"""What the end of a run says of the template its plan was made of: it has served, it has failed, or nothing."""

from __future__ import annotations

from typing import Any

import pytest

from nodes.fold import RunFold, fold
from nodes.state import TemplateUse
from nodes.template_record import served
from plans.failure import CODES, Failure
from tests.nodes.rows import Row, a_plan, a_step, answered, begun, decided, done, failed, planned

MADE_FROM = TemplateUse(name="late", sha256="a", parameters={"order_id": "A1234"})


def made(*steps: str, revision: int = 1, source: str = "template", **more: Any) -> Row:
    """A revision of a template's plan; `made_from` stands in the first."""
    plan = a_plan(*(a_step(step_id, tool=f"look{revision}") for step_id in steps), revision=revision)
    kind, unit, attempt, body = planned(plan.model_copy(update={"template": "late", "source": source, **more}))
    first = {"made_from": MADE_FROM.model_dump()} if revision == 1 else {}
    return kind, unit, attempt, {**body, **first}


def ended(status: str, *codes: str, cause: str | None = None) -> dict[str, Any]:
    failures = [Failure(code=code, message="it failed", step_id="a", cause=cause).model_dump() for code in codes]
    return {"status": status, "failures": failures}


def picture(*rows: Row) -> RunFold:
    return fold([begun(), made("a"), *rows])


def verdict_of(fold: RunFold, body: dict[str, Any]) -> bool | None:
    found = served(fold, body)
    assert found is not None
    assert (found.template, found.sha256, found.code is not None) == ("late", "a", found.succeeded is False)
    return found.succeeded


def test_the_template_is_known_from_the_plan_s_row() -> None:
    """With its hash and parameters, also after it was mended or written anew: that was the template's failure."""
    assert picture().made_from == MADE_FROM
    assert picture(made("a", revision=2, source="local_replan")).made_from == MADE_FROM
    assert picture(made("b", revision=2, source="global_replan", template=None)).made_from == MADE_FROM


def test_a_run_that_went_through_has_served_its_template() -> None:
    """Retries and fallbacks of its steps are no failure of it, nor is one that its plan tolerates."""
    assert verdict_of(picture(done("a")), ended("done")) is True
    assert verdict_of(picture(failed("a"), decided("a", 1, "retry"), done("a", 2)), ended("done")) is True
    assert verdict_of(picture(done("a")), ended("done", "TOOL_ERROR")) is True


@pytest.mark.parametrize("status", ["running", "paused", "limited"])
def test_a_run_that_may_go_on_says_nothing_yet(status: str) -> None:
    """It is counted at its end."""
    assert served(picture(done("a")), ended(status)) is None


def test_a_run_without_a_template_is_not_counted() -> None:
    """Whoever wrote its plan."""
    assert served(fold([begun(), planned(a_plan(a_step("a")))]), ended("done")) is None


def test_every_code_either_blames_the_template_or_says_nothing() -> None:
    """A hard or semantic failure of the plan's own doing blames it; an outage, a limit, a person, the goal do not."""
    blames = {
        "UNRESOLVED_REFERENCE", "INVALID_ARGS", "RULE_VIOLATED", "OUTPUT_INVALID", "OUTPUT_EMPTY", "TOOL_ERROR",
        "REPEATED_FAILURE", "PLAN_INVALID", "CRITERION_FALSE", "PREMISE_BROKEN", "PRECONDITION_FAILED",
    }  # fmt: skip
    assert {code for code in CODES if verdict_of(picture(), ended("failed", code)) is False} == blames


def test_a_call_that_was_not_repeated_is_judged_by_what_failed_before() -> None:
    """An outage stays one, however often it was met."""
    assert verdict_of(picture(), ended("failed", "REPEATED_FAILURE", cause="TIMEOUT")) is None
    assert verdict_of(picture(), ended("failed", "REPEATED_FAILURE", cause="TOOL_ERROR")) is False


def test_a_plan_that_had_to_be_mended_has_failed_even_where_the_run_has_not() -> None:
    """But not for an outage, nor for what a person wanted changed."""
    mended = [made("a", revision=2, source="local_replan"), done("a", 2)]
    broken = [failed("a", 1, "TOOL_ERROR"), decided("a", 1, "local_replan", "TOOL_ERROR")]
    assert verdict_of(picture(*broken, *mended), ended("done")) is False
    away = [failed("a", 1, "UNAVAILABLE"), decided("a", 1, "local_replan", "UNAVAILABLE")]
    assert verdict_of(picture(*away, *mended), ended("done")) is None
    edited = made("a", revision=2, source="human")
    assert verdict_of(picture(edited, done("a")), ended("done")) is None
    assert verdict_of(picture(answered("a", {"type": "reject"}), done("a")), ended("done")) is None


def test_a_cancelled_run_says_nothing() -> None:
    """Whatever had failed before."""
    assert verdict_of(picture(failed("a", 1, "TOOL_ERROR")), ended("cancelled", "TOOL_ERROR")) is None
