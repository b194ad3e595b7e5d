"""Order among steps: every property against a slower way to find the same answer."""

from __future__ import annotations

import heapq
import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.moves import Status
from plans.schedule import cycle_in, dependents_of, descendants, edges_of, in_order, ready, remaining_path
from tests.plans.sample import of_steps

Edges = dict[str, tuple[str, ...]]
STATUSES: list[Status] = ["pending", "running", "done", "failed", "skipped"]


@st.composite
def dags(draw: st.DrawFn, most: int = 7) -> Edges:
    """Steps that depend on earlier ones only, handed over in any order."""
    count = draw(st.integers(1, most))
    edges = {
        f"s{n}": tuple(draw(st.lists(st.sampled_from([f"s{m}" for m in range(n)]), max_size=3))) if n else ()
        for n in range(count)
    }
    return {step: edges[step] for step in draw(st.permutations(list(edges)))}


@st.composite
def graphs(draw: st.DrawFn) -> Edges:
    """Any edges at all, also to steps that do not exist."""
    names = [f"s{n}" for n in range(draw(st.integers(1, 6)))]
    return {name: tuple(draw(st.lists(st.sampled_from([*names, "nowhere"]), max_size=3))) for name in names}


def durations_for(edges: Edges) -> st.SearchStrategy[dict[str, float]]:
    """A time for each step, in whole seconds, so that sums are exact."""
    return st.fixed_dictionaries({step: st.integers(0, 9).map(float) for step in edges})


def reaches(edges: Edges, start: str, goal: str) -> bool:
    """Whether `goal` can be reached over one edge or more, by looking at everything."""
    seen: set[str] = set()
    waiting = list(edges.get(start, ()))
    while waiting:
        here = waiting.pop()
        if here == goal:
            return True
        if here not in seen:
            seen.add(here)
            waiting.extend(edges.get(here, ()))
    return False


def makespan(edges: Edges, duration: dict[str, float], workers: int) -> float:
    """When the last step ends, with longest remaining path first and never an idle worker beside a ready step."""
    priority = remaining_path(edges, duration.__getitem__)
    statuses: dict[str, Status] = {}
    running: list[tuple[float, str]] = []
    now = 0.0
    while len(statuses) < len(edges) or running:
        for step in sorted(ready(edges, statuses), key=lambda name: -priority[name])[: workers - len(running)]:
            statuses[step] = "running"
            heapq.heappush(running, (now + duration[step], step))
        now, done = heapq.heappop(running)
        statuses[done] = "done"
    return now


@given(dags())
def test_an_order_has_every_step_behind_what_it_needs(edges: Edges) -> None:
    """Each step once, after all its dependencies; steps that do not wait keep the order they were given in."""
    order = in_order(edges)
    assert sorted(order) == sorted(edges)
    assert all(order.index(needed) < order.index(step) for step in edges for needed in edges[step])
    free = [step for step in edges if not edges[step]]
    assert [step for step in order if step in free] == free


@given(graphs())
def test_a_cycle_is_found_exactly_where_there_is_one(edges: Edges) -> None:
    """There is a cycle if some step can reach itself; what is shown is such a way, closed, each step once."""
    path = cycle_in(edges)
    assert (path is not None) == any(reaches(edges, step, step) for step in edges)
    if path is not None:
        assert path[0] == path[-1]
        assert len(set(path)) == len(path) - 1
        assert all(needed in edges[step] for step, needed in itertools.pairwise(path))
        with pytest.raises(ValueError, match="cycle"):
            in_order(edges)


@given(dags(), st.data())
def test_ready_are_the_pending_steps_that_wait_for_nothing(edges: Edges, data: st.DataObject) -> None:
    """Pending, and every dependency has a status that satisfies; in the order given, nothing left out."""
    statuses = data.draw(st.dictionaries(st.sampled_from(sorted(edges)), st.sampled_from(STATUSES)))
    for satisfied in (("done",), ("done", "skipped")):
        found = ready(edges, statuses, satisfied)  # type: ignore[arg-type]
        expected = [
            step
            for step in edges
            if statuses.get(step, "pending") == "pending"
            and {statuses.get(n, "pending") for n in edges[step]} <= set(satisfied)
        ]
        assert found == expected


@given(dags(), st.data())
def test_the_remaining_path_is_the_longest_way_to_the_end(edges: Edges, data: st.DataObject) -> None:
    """For each step the largest sum of durations over all ways from it to a step that nobody waits for."""
    duration = data.draw(durations_for(edges))
    dependents = dependents_of(edges)

    def longest(step: str) -> float:
        return duration[step] + max((longest(next_) for next_ in dependents[step]), default=0.0)

    assert remaining_path(edges, duration.__getitem__) == {step: longest(step) for step in edges}
    assert remaining_path(edges) == remaining_path(edges, lambda _: 1.0)


@given(dags(), st.data(), st.integers(1, 4))
def test_longest_path_first_stays_within_the_bound_of_list_scheduling(
    edges: Edges, data: st.DataObject, workers: int
) -> None:
    """With k workers no run takes longer than critical path × (1 - 1/k) + work / k; with enough of them, the path."""
    duration = data.draw(durations_for(edges))
    path, work = max(remaining_path(edges, duration.__getitem__).values()), sum(duration.values())
    assert makespan(edges, duration, len(edges)) == path
    assert (
        max(path, work / workers) - 1e-9
        <= makespan(edges, duration, workers)
        <= path * (1 - 1 / workers) + work / workers + 1e-9
    )


@given(graphs())
def test_descendants_are_all_that_wait_for_a_step(edges: Edges) -> None:
    """Everything that reaches the step over its dependencies, and nothing else."""
    for step in edges:
        assert descendants(edges, step) == {other for other in edges if reaches(edges, other, step)}
    assert descendants(edges, "nowhere") == set()


@given(graphs())
def test_dependents_are_the_edges_turned_round(edges: Edges) -> None:
    """Each edge once for each time it stands there; edges to unknown steps are left out."""
    turned = dependents_of(edges)
    assert set(turned) == set(edges)
    for step, other in itertools.product(edges, edges):
        assert turned[other].count(step) == edges[step].count(other)


def test_edges_are_what_is_named_and_what_is_read() -> None:
    """depends_on first, then references and conditions, each dependency once, never inputs or item."""
    draft = of_steps(
        {"id": "a"},
        {
            "id": "b",
            "depends_on": ["c", "a", "a"],
            "args": {"x": ["${d.x} ${inputs.y}", "${a}"]},
            "instruction": "${e}",
        },
        {
            "id": "f",
            "for_each": "${g.list}",
            "args": {"x": "${item}"},
            "when": "h.x && inputs.y",
            "requires": "item.z || k",
        },
        {"id": "l", "when": "(", "success_when": "m.x"},
    )
    assert edges_of(draft.steps) == {"a": (), "b": ("c", "a", "d", "e"), "f": ("g", "h", "k"), "l": ()}


def test_a_large_plan_is_ordered_in_linear_time() -> None:
    """A chain and a fan of fifty thousand steps take seconds and no recursion."""
    count = 50_000
    chain: Edges = {f"s{n}": (f"s{n - 1}",) if n else () for n in range(count)}
    fan: Edges = {"s0": (), **{f"s{n}": ("s0",) for n in range(1, count)}}
    started = time.process_time()
    for edges in (chain, fan):
        assert cycle_in(edges) is None
        assert len(in_order(edges)) == count
        assert len(descendants(edges, "s0")) == count - 1
    assert remaining_path(chain)["s0"] == count
    assert cycle_in({**chain, "s0": (f"s{count - 1}",)}) is not None
    assert time.process_time() - started < 10
