"""Template files: YAML read strictly, and everything that is wrong with one said at once."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from nodes.schemas import problem_of, problems
from nodes.template_text import HOLE, LANGUAGES, Language, holes_in, spelled_out, whole_goal
from plans.principals import TenantName
from plans.references import parse
from plans.texts import texts_with
from plans.values import JSON

NAME = r"^[a-z][a-z0-9_]{0,63}$"
BUILT_IN_HOLES = frozenset({"goal", "language"})
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNSAFE_HOLE = re.compile(r"\$<<|>>\$?\{|>><<")
_EXPRESSIONS = ("when", "requires", "success_when", "for_each")

Text = str | dict[Language, str]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Parameter(_Frozen):
    """One parameter: where it comes from, what it may be. `words` turns what a goal says into a value, by pattern.

    A parameter `from: goal` is a named group of the patterns, an input of its name, or its default; one `from: input`
    is an input of its name, or its default; one `from: file` is the path of an input file with one of these suffixes.
    """

    source: Literal["goal", "input", "file"] = Field(default="goal", alias="from")
    about: Text
    json_schema: dict[str, JSON] = Field(default_factory=lambda: {"type": "string"}, alias="schema")
    default: JSON = None
    words: dict[str, JSON] = Field(default_factory=dict)
    suffixes: Annotated[tuple[str, ...], Field(strict=False)] = ()

    @property
    def required(self) -> bool:
        """Whether there is nothing to fall back on."""
        return "default" not in self.model_fields_set


class Example(_Frozen):
    """A goal that the template must match, the inputs it comes with (a file as `{file: name}`), what is extracted."""

    goal: str
    inputs: dict[str, JSON] = Field(default_factory=dict)
    parameters: dict[str, JSON] = Field(default_factory=dict)


class PlanBody(_Frozen):
    """The plan with its holes; what a step may hold is checked when an example fills them."""

    steps: Annotated[tuple[dict[str, JSON], ...], Field(strict=False, min_length=1)]
    answer: Text | None = None


class TemplateFile(_Frozen):
    """A template as it is written. `others` are goals it must leave alone; `on_exhausted` is a simplified plan, which a
    run turns to once when nothing mends its own, and a `critical` one has a person see to that. It is for these
    `tenants`; for all where none is named."""

    name: str = Field(pattern=NAME)
    title: Text
    toolkit: str
    critical: bool = False
    words: dict[Language, dict[str, str]] = Field(default_factory=dict)
    match: dict[Language, Annotated[tuple[str, ...], Field(strict=False)]]
    parameters: dict[str, Parameter] = Field(default_factory=dict)
    plan: PlanBody
    on_exhausted: PlanBody | None = None
    examples: Annotated[tuple[Example, ...], Field(strict=False, min_length=1)]
    others: Annotated[tuple[str, ...], Field(strict=False)] = ()
    tenants: Annotated[tuple[TenantName, ...], Field(strict=False)] = ()

    def patterns(self, language: Language) -> Iterator[re.Pattern[str]]:
        """The patterns of a language, each compiled once. Raises re.error or KeyError at a bad one."""
        words = tuple(self.words.get(language, {}).items())
        for pattern in self.match.get(language, ()):
            yield whole_goal(pattern, words, language)

    def spelled(self, language: Language) -> Iterator[str]:
        """The texts of a language's patterns, `{words}` put in."""
        for pattern in self.match.get(language, ()):
            yield spelled_out(pattern, self.words.get(language, {}))


Words = dict[Language, dict[str, str]]
"""Parts of patterns by language and name."""
_WORDS: TypeAdapter[Words] = TypeAdapter(Words)


def read_words(text: str) -> tuple[Words, list[str]]:
    """The shared words in a YAML text, and every fault of it."""
    try:
        return _WORDS.validate_python(_yaml(text)), []
    except (yaml.YAMLError, RecursionError) as error:
        return {}, [f"is not YAML: {' '.join(str(error).split())}"]
    except ValidationError as error:
        return {}, [_sentence(problem) for problem in error.errors()]


def read_template(text: str, shared: Words | None = None) -> tuple[TemplateFile | None, list[str]]:
    """The template in a YAML text, the shared words among its own; or what keeps it from being one, each a sentence
    that says where."""
    try:
        written = TemplateFile.model_validate(_yaml(text))
    except (yaml.YAMLError, RecursionError) as error:
        return None, [f"is not YAML: {' '.join(str(error).split())}"]
    except ValidationError as error:
        return None, [_sentence(problem) for problem in error.errors()]
    words = {
        language: {**(shared or {}).get(language, {}), **written.words.get(language, {})} for language in LANGUAGES
    }
    return written.model_copy(update={"words": words}), []


def faults_of(written: TemplateFile) -> list[str]:
    """What is wrong with a template's patterns, parameters and holes, all at once."""
    return [*_pattern_faults(written), *_parameter_faults(written), *_hole_faults(written)]


def _yaml(text: str) -> Any:
    """The value of a YAML text. A key that stands twice is an error: the last one would win in silence."""
    if (node := yaml.compose(text, Loader=_LOADER)) is not None:
        _refuse_twins(node)
    return yaml.load(text, Loader=_LOADER)  # noqa: S506  # the safe loader, in C where there is one


def _refuse_twins(node: yaml.Node) -> None:
    if isinstance(node, yaml.MappingNode):
        keys = [str(key.value) for key, _ in node.value]
        if twins := sorted({key for key in keys if keys.count(key) > 1}):
            raise yaml.YAMLError(f"key {twins[0]!r} stands twice (line {node.start_mark.line + 1})")
        for _, value in node.value:
            _refuse_twins(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _refuse_twins(value)


def _sentence(problem: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in problem["loc"])
    return f"{where or 'the file'}: {problem['msg']}"


def _pattern_faults(written: TemplateFile) -> Iterator[str]:
    required = {name for name, parameter in written.parameters.items() if _only_from_goal(parameter)}
    yield from _empty_patterns(written)
    for language, patterns in written.match.items():
        for pattern in patterns:
            try:
                groups = set(whole_goal(pattern, tuple(written.words.get(language, {}).items()), language).groupindex)
            except (re.error, KeyError) as error:
                yield f"match.{language}: {pattern!r} is no pattern: {error}"
                continue
            if unknown := groups - set(written.parameters):
                yield f"match.{language}: {pattern!r} has the groups {sorted(unknown)}, which are no parameters"
            if missing := required - groups:
                yield f"match.{language}: {pattern!r} lacks the groups {sorted(missing)}; they have no default"


def _empty_patterns(written: TemplateFile) -> Iterator[str]:
    if not written.match:
        yield "match: needs a pattern in at least one language"
    for language, patterns in written.match.items():
        if not patterns:
            yield f"match.{language}: needs at least one pattern"


def _only_from_goal(parameter: Parameter) -> bool:
    return parameter.source == "goal" and parameter.required


def _parameter_faults(written: TemplateFile) -> Iterator[str]:
    for name, parameter in written.parameters.items():
        where = f"parameters.{name}"
        if not re.match(NAME, name) or name in BUILT_IN_HOLES:
            yield f"{where}: is no name for a parameter: a lower-case word, not goal or language"
        if wrong := problem_of(parameter.json_schema):
            yield f"{where}.schema: {wrong}"
            continue
        for value in [*parameter.words.values(), *([] if parameter.required else [parameter.default])]:
            for problem in problems(value, parameter.json_schema):
                yield f"{where}: {value!r} does not fit: {problem}"
        for word in parameter.words:
            if reason := _regex_problem(word):
                yield f"{where}.words: {word!r} is no pattern: {reason}"


def _regex_problem(pattern: str) -> str | None:
    try:
        re.compile(pattern)
    except re.error as error:
        return str(error)
    return None


def _hole_faults(written: TemplateFile) -> Iterator[str]:
    known = set(written.parameters) | BUILT_IN_HOLES
    if unused := set(written.parameters) - set(holes_in(written.plan.model_dump())):
        yield f"parameters: {sorted(unused)} are used nowhere in the plan"
    for name, body in (("plan", written.plan), ("on_exhausted", written.on_exhausted)):
        if body is not None:
            yield from _body_faults(name, body, known)
    if written.on_exhausted is not None:
        yield from _twin_faults(written.plan, written.on_exhausted)


def _body_faults(name: str, body: PlanBody, known: Collection[str]) -> Iterator[str]:
    plan = body.model_dump()
    if unknown := set(holes_in(plan)) - set(known):
        yield f"{name}: has the holes {sorted(unknown)}, which are no parameters"
    yield from _placement_faults(name, plan)
    for index, step in enumerate(body.steps):
        for field in _EXPRESSIONS:
            if HOLE.search(str(step.get(field) or "")):
                yield f"{name}.steps[{index}].{field}: an expression has no holes; pass the value as an argument"


def _twin_faults(plan: PlanBody, simpler: PlanBody) -> Iterator[str]:
    """A step that both plans have is the same one: where it is finished, the simplified plan takes its result over."""
    steps = {step.get("id"): step for step in plan.steps}
    for index, step in enumerate(simpler.steps):
        if (twin := steps.get(step.get("id"))) is not None and twin != step:
            yield f"on_exhausted.steps[{index}]: step {step.get('id')!r} is another one in plan; it needs its own id"


def _placement_faults(name: str, plan: Mapping[str, JSON]) -> Iterator[str]:
    for _, text in texts_with("", plan):
        if _UNSAFE_HOLE.search(text):
            # A value that begins with { or ends with $ would make a reference together with its neighbour.
            yield f"{name}: {text!r} has a hole beside a dollar, a brace or another hole"
        if any(HOLE.search(str(part)) for part in parse(text) if not isinstance(part, str)):
            yield f"{name}: {text!r} has a hole inside a reference; what a goal says is no expression"
