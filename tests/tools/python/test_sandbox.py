"""Tests of the tool `python`: what code can do with what it is handed, and that there is nothing else to reach."""

from __future__ import annotations

import copy
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from plans.failure import ToolFailure
from plans.faults import errors_among
from plans.lint import lint
from plans.plan import PlanDraft, StepDraft
from tests.tools.calls import code_of, context, ports
from tools.call import CallFailure, Success, call
from tools.python import SandboxLimits, python, python_toolkit
from tools.registry import Registry
from tools.tool import Tool

TOOL = Registry.of(python)["python"]
QUICK = SandboxLimits(seconds=0.3, memory=32 * 1024 * 1024, result=10_000)
LINES = [{"price": 3, "count": 2}, {"price": 4, "count": 1}]


def limited(limits: SandboxLimits = QUICK, **functions: Any) -> Tool:
    """The tool with tight limits, and with functions that its code may call."""
    return Registry.of(python_toolkit(limits=limits, functions=functions))["python"]


async def answer(code: str, tool: Tool = TOOL, **inputs: Any) -> Any:
    """The result and what was printed."""
    return await tool.invoke({"code": code, "inputs": inputs}, context())


async def refusal(code: str, tool: Tool | None = None, **inputs: Any) -> ToolFailure:
    """How the code fails."""
    with pytest.raises(ToolFailure) as failure:
        await (tool or limited()).invoke({"code": code, "inputs": inputs}, context())
    return failure.value


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("sum(line['price'] * line['count'] for line in lines)", 10),
        ("sorted(lines, key=lambda line: -line['price'])[0]['price']", 4),
        ("def total(of):\n    return sum(line['count'] for line in of)\ntotal(lines)", 3),
        ("import re\n[w for w in re.findall(r'\\w+', text) if len(w) > 2]", ["late", "order"]),
        ("import json\njson.loads('{\"a\": [1, null]}')", {"a": [1, None]}),
        ("from decimal import Decimal\nDecimal('1.10') + Decimal('2.20')", "3.30"),
        ("import datetime\ndatetime.date(2024, 2, 28) + datetime.timedelta(days=2)", "2024-03-01"),
        ("from collections import Counter\nCounter(text)['e']", 2),
        ("{line['count'] for line in lines} | {10, 9}", [1, 2, 9, 10]),
        ("(1, (2, {'b', 'a'}))", [1, [2, ["a", "b"]]]),
        ("{1: 'a'}", {"1": "a"}),
        ("map(str, [1, 2])", ["1", "2"]),
        ("x = 3", None),
        ("s = '''a\nb'''\ns", "a\nb"),
        ("return 4", 4),
    ],
)
async def test_code_computes_from_what_it_is_handed(code: str, result: Any) -> None:
    """Each input is a variable; the value of the last expression is the result, as JSON."""
    assert await answer(code, lines=LINES, text="a late order") == {"result": result, "printed": ""}


@pytest.mark.parametrize(
    ("code", "code_of_failure", "said"),
    [
        ("open('/etc/passwd').read()", "TOOL_ERROR", "PermissionError"),
        ("open('x', 'w').write('x')", "TOOL_ERROR", "PermissionError"),
        ("from pathlib import Path\nPath('/etc/passwd').read_text()", "TOOL_ERROR", "line 2: PermissionError"),
        ("import os\nos.listdir('/')", "TOOL_ERROR", "PermissionError"),
        ("import os\nos.environ['HOME']", "TOOL_ERROR", "not supported"),
        ("import os\nos.system('id')", "TOOL_ERROR", "no attribute"),
        ("__import__('os')", "TOOL_ERROR", "not defined"),
        ("import socket", "TOOL_ERROR", "No module named"),
        ("import subprocess", "TOOL_ERROR", "No module named"),
        ("import ctypes", "TOOL_ERROR", "No module named"),
        ("import sys\nsys.modules", "TOOL_ERROR", "no attribute"),
        ("import urllib.request", "TOOL_ERROR", "No module named"),
        ("import tools", "TOOL_ERROR", "No module named"),
        ("globals()", "TOOL_ERROR", "not defined"),
        ("__builtins__", "TOOL_ERROR", "not defined"),
        ("().__class__.__bases__", "TOOL_ERROR", "no attribute '__class__'"),
        ("(lambda: 0).__globals__", "TOOL_ERROR", "no attribute"),
        ("getattr(lines, '__class' + '__')", "TOOL_ERROR", "no attribute"),
        ("'{0.__class__}'.format(1)", "TOOL_ERROR", "no attribute"),
        ("print.__self__", "TOOL_ERROR", "no attribute"),
        ("eval('().__class__')", "TOOL_ERROR", "no attribute"),
        ("exec('import socket')", "TOOL_ERROR", "No module named"),
        ("import datetime\ndatetime.datetime.now()", "TOOL_ERROR", "not supported"),
        ("import time\ntime.time()", "TOOL_ERROR", "not supported"),
        ("import os\nos.urandom(3)", "TOOL_ERROR", "not supported"),
        ("input()", "TOOL_ERROR", "not defined"),
        ("while True: pass", "RESOURCE_LIMIT", "was stopped"),
        ("try:\n    while True: pass\nexcept BaseException:\n    1", "RESOURCE_LIMIT", "was stopped"),
        ("while True:\n    try: raise ValueError\n    except ValueError: pass", "RESOURCE_LIMIT", "was stopped"),
        ("sum(i for i in range(10**12))", "RESOURCE_LIMIT", ""),
        ("7 ** (10 ** 7)", "RESOURCE_LIMIT", "was stopped"),
        ("'a' * 10**10", "RESOURCE_LIMIT", "32 MiB of memory in line 1"),
        ("x = 'a'\nwhile True: x += x", "RESOURCE_LIMIT", "memory"),
        ("x = []\nwhile True: x.append('a' * 1000)", "RESOURCE_LIMIT", "memory"),
        ("x = [0]\nfor _ in range(60): x = [x, x, list(x)]\nx", "RESOURCE_LIMIT", "longer than 10,000 characters"),
        ("x = 'a' * 9_000\n[x] * 1_000_000", "RESOURCE_LIMIT", "longer than 10,000 characters"),
        ("list(range(10**9))", "RESOURCE_LIMIT", "memory"),
        ("10 ** 10 ** 8", "RESOURCE_LIMIT", "memory"),
        ("'%1000000000d' % 1", "RESOURCE_LIMIT", "memory"),
        ("def f(n): return f(n + 1)\nf(0)", "RESOURCE_LIMIT", "more than 200 levels deep"),
        ("'a' * 20_000", "RESOURCE_LIMIT", "longer than 10,000 characters"),
        ("2 ** 64", "OUTPUT_INVALID", "more than 64 bits"),
        ("10 ** 5_000", "OUTPUT_INVALID", "more than 64 bits"),
        ("float('nan')", "OUTPUT_INVALID", "nan"),
        ("[1e400]", "OUTPUT_INVALID", "inf"),
        ("b'abc'", "OUTPUT_INVALID", "bytes"),
        ("1j", "OUTPUT_INVALID", "complex"),
        ("{(1, 2): 3}", "OUTPUT_INVALID", "a tuple as a key"),
        ("{True: 3}", "OUTPUT_INVALID", "a bool as a key"),
        ("{'a': 1}.keys()", "OUTPUT_INVALID", "a dict_keys; give plain values"),
        ("lambda: 1", "OUTPUT_INVALID", "a function"),
        ("len", "OUTPUT_INVALID", "plain values"),
        ("int", "OUTPUT_INVALID", "plain values"),
        ("class A: pass\nA()", "OUTPUT_INVALID", "plain values"),
        ("x = []\nfor _ in range(100_000): x = [x]\nx", "OUTPUT_INVALID", "nested deeper"),
        ("'a\\0b'", "OUTPUT_INVALID", ""),
        ("1 / 0", "TOOL_ERROR", "failed in line 1: ZeroDivisionError: division by zero"),
        ("x = {}\nx['total']", "TOOL_ERROR", "failed in line 2: KeyError"),
        ("def f():\n    raise ValueError('no')\nf()", "TOOL_ERROR", "failed in line 2: ValueError: no"),
        ("raise ValueError('x' * 5_000)", "TOOL_ERROR", "ValueError"),
        ("assert lines == []", "TOOL_ERROR", "AssertionError"),
        ("raise TimeoutError('mine')", "TOOL_ERROR", "mine"),
        ("await x", "TOOL_ERROR", "not defined"),
        ("y = = 3", "INVALID_ARGS", "line 1"),
        ("y = (3", "INVALID_ARGS", "line 1"),
        ("x = 1\ndef f(:\n  pass", "INVALID_ARGS", "line 2"),
        ("class A(list): pass", "INVALID_ARGS", "does not know class inheritance"),
        ("(" * 15_000, "INVALID_ARGS", ""),
        ("-" * 15_000 + "1", "INVALID_ARGS", ""),
        ("\ud800", "INVALID_ARGS", ""),
        ("", "INVALID_ARGS", "at least 1 character"),
        ("a" * 20_001, "INVALID_ARGS", "at most 20000 characters"),
    ],
)  # fmt: skip
async def test_there_is_nothing_to_reach_and_no_way_to_stay(code: str, code_of_failure: str, said: str) -> None:
    """Files, network, other modules, the classes behind an object, time, memory, depth, odd results: each ends as a
    failure of its own kind, in a sentence of bounded length, and the worker goes on."""
    began = time.monotonic()
    failure = await refusal(code, lines=LINES)
    assert (failure.code, said in failure.message) == (code_of_failure, True), failure.message
    assert len(failure.message) < 400
    assert time.monotonic() - began < 4


async def test_a_regular_expression_cannot_hang() -> None:
    """What takes for ever elsewhere ends at once or at the limit."""
    outcome = await call(limited(), {"code": "import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')"}, context(), ports())
    assert code_of(outcome) in ("OK", "RESOURCE_LIMIT")


async def test_what_is_printed_is_kept_up_to_a_bound() -> None:
    """The beginning stands beside the result, and says where it was cut."""
    assert (await answer("print('a', 1)\nprint('b')\n3")) == {"result": 3, "printed": "a 1\nb\n"}
    printed = (await answer("for i in range(3_000): print('x' * 100)\n3"))["printed"]
    assert 10_000 <= len(printed) < 10_100
    assert printed.endswith("more was printed)")
    assert (await refusal("while True: print('x' * 1000)")).code == "RESOURCE_LIMIT"


async def test_the_values_of_the_caller_stay_as_they_are() -> None:
    """Code may change what it was handed; that is a copy."""
    lines = copy.deepcopy(LINES)
    found = await answer("lines.append(1)\nlines[0]['price'] = 'changed'\nlines", lines=lines)
    assert found["result"] == [{"price": "changed", "count": 2}, LINES[1], 1]
    assert lines == LINES


async def test_the_same_code_gives_the_same() -> None:
    """There is no clock and no chance in it, and nothing of one run is there in the next."""
    code = "import random\n[random.random(), random.randint(1, 10**9)]"
    assert await answer(code) == await answer(code)
    await answer("left = 1")
    assert (await refusal("left")).code == "TOOL_ERROR"


async def test_code_calls_the_functions_it_is_handed_and_no_others() -> None:
    """A function of ours gets values and gives values; its errors are the code's, and it is not in the other tool."""
    asked: list[Any] = []

    def rate(currency: str) -> float:
        asked.append(currency)
        if currency == "QQQ":
            raise LookupError("no rate for QQQ")
        return 1.5

    tool = limited(rate=rate)
    assert (await answer("rate('USD') * 2", tool))["result"] == 3
    assert asked == ["USD"]
    assert "no rate for QQQ" in (await refusal("rate('QQQ')", tool)).message
    assert "'rate' is not defined" in (await refusal("rate('USD')")).message
    assert tool.spec.cache_ttl_s is None
    assert TOOL.spec.cache_ttl_s == 300


@pytest.mark.parametrize("name", ["for", "a-b", "_x", "__builtins__", "1a", ""])
def test_an_input_must_be_able_to_be_a_variable(name: str) -> None:
    """What could not be read by the code, or would stand in for something else, is refused."""
    assert "name of a variable" in str(TOOL.check_args({"code": "1", "inputs": {name: 1}}))


def test_a_plan_is_told_that_its_code_cannot_be_read() -> None:
    """Literal code is read when the plan is checked; nothing of it is run."""
    step = StepDraft(id="s1", action="tool", tool="python", args={"code": "x = 1\ny = = 2"}, depends_on=(), reason="r")
    (fault,) = errors_among(lint(PlanDraft(goal="g", steps=(step,)), {"python": TOOL}))
    assert (fault.code, fault.path) == ("INVALID_ARGS", "steps[0].args.code")
    assert "line 2" in fault.message
    assert TOOL.check_args({"code": "while True: pass"}) == []
    assert TOOL.check_args({"code": "${s1.code}", "inputs": "${s1}"}, [("code",), ("inputs",)]) == []


async def test_a_killed_interpreter_takes_nothing_down() -> None:
    """The process that runs the code is killed in the middle: a failure of this call, and the next one works."""

    def kill() -> None:
        for _ in range(200):
            time.sleep(0.02)
            if children := interpreters(os.getpid()):
                os.kill(children[0], signal.SIGKILL)
                return

    killer = threading.Thread(target=kill)
    killer.start()
    failure = await refusal("while True: pass", limited(SandboxLimits(seconds=5)))
    killer.join()
    assert (failure.code, "took the sandbox down" in failure.message) == ("TOOL_ERROR", True)
    assert (await answer("1 + 1"))["result"] == 2
    assert interpreters(os.getpid()) == []


def interpreters(parent: int) -> list[int]:
    """The interpreters that a process has started and that still run."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = entry.read_text().rpartition(")")
        except OSError:
            continue
        state, ppid = rest.split()[:2]
        if name.endswith("(monty") and int(ppid) == parent and state != "Z":
            found.append(int(entry.parent.name))
    return found


async def test_at_the_deadline_code_is_stopped_and_not_only_left() -> None:
    """A call that is out of time ends there, and its interpreter does not run on."""
    began = time.monotonic()
    outcome = await call(TOOL, {"code": "while True: pass"}, context(deadline=began + 0.8), ports())
    assert time.monotonic() - began < 1.5
    assert code_of(outcome) == "RESOURCE_LIMIT"
    assert interpreters(os.getpid()) == []


async def test_failures_of_code_are_neither_tried_again_nor_held_against_the_tool() -> None:
    """Each broken code is run once; after twenty of them, code that is right still runs."""
    around = ports()
    for number in range(20):
        outcome = await call(TOOL, {"code": f"{number} / 0"}, context(), around)
        assert isinstance(outcome, CallFailure)
        assert outcome.failure.code == "TOOL_ERROR"
        assert not outcome.in_doubt
    assert isinstance(await call(TOOL, {"code": "6 * 7"}, context(), around), Success)


async def test_the_same_question_is_asked_once() -> None:
    """A result is cached: the same code with the same inputs makes no second interpreter."""
    around = ports()
    args = {"code": "print(1)\nn + 1", "inputs": {"n": 1}}
    first, second = [await call(TOOL, args, context(), around) for _ in range(2)]
    assert isinstance(first, Success)
    assert isinstance(second, Success)
    assert first.value == second.value == {"result": 2, "printed": "1\n"}


def test_a_process_with_a_running_sandbox_ends_cleanly() -> None:
    """Leaving the program while code runs is no crash, and the interpreter ends by itself."""
    program = textwrap.dedent("""
        import threading, time
        from tools.python.sandbox import SandboxLimits, run

        run("1", {}, SandboxLimits(), seconds_left=5)
        limits = SandboxLimits(seconds=1)
        work = lambda: run("while True: pass", {}, limits, seconds_left=5)
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.3)
    """)
    root = Path(__file__).resolve().parents[3]
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
