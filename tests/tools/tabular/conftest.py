"""What tests of the tabular toolkit share: a folder with files that a run may read, and the tools called on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from plans.failure import ToolFailure
from plans.values import clean
from tools.context import ToolContext
from tools.files import FileScope
from tools.tabular import toolkit
from tools.tabular.arguments import Reading, Rule
from tools.tabular.opening import open_table
from tools.tabular.results import Aggregate, Anomalies, FieldChecks, Outcome, TableDescription
from tools.tabular.table import Table

ROOT = Path(__file__).resolve().parents[3]
ORDERS = ROOT / "examples" / "data" / "orders.csv"

R = TypeVar("R", bound=Outcome)


@dataclass
class Desk:
    """Files as inputs of a run, and calls of the tools on them; every result is checked to be storable."""

    folder: Path
    inputs: dict[str, Path] = field(default_factory=dict)
    told: list[tuple[float | None, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.out = self.folder / "out"
        self.out.mkdir()

    def file(self, content: str | bytes, name: str = "table.csv", encoding: str = "utf-8") -> str:
        """Writes a file and declares it."""
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
        return self.declare(path)

    def declare(self, path: Path) -> str:
        """Makes an existing file an input."""
        self.inputs[path.name] = path
        return str(path)

    def ctx(self, seconds: float = 60.0) -> ToolContext:
        """The context of a call."""
        bare = ToolContext.bare(self.out, seconds=seconds)
        scope = FileScope(self.inputs, self.out)
        return ToolContext(**{**vars(bare), "files": scope, "progress": lambda f, m: self.told.append((f, m))})

    def table(self, content: str | bytes, name: str = "table.csv", reading: Reading | None = None) -> Table:
        """The content as a table."""
        return open_table(self.ctx(), self.file(content, name), None, reading)

    def describe(self, path: str, **options: Any) -> TableDescription:
        """describe_table."""
        return _storable(toolkit.describe_table(self.ctx(), path, **options))

    def check(self, path: str, **options: Any) -> FieldChecks:
        """check_fields."""
        return _storable(toolkit.check_fields(self.ctx(), path, **options))

    def find(self, path: str, rules: Sequence[Rule] | None = None, **options: Any) -> Anomalies:
        """find_anomalies."""
        given = None if rules is None else tuple(rules)
        return _storable(toolkit.find_anomalies(self.ctx(), path, given, **options))

    def aggregate(self, path: str, **options: Any) -> Aggregate:
        """aggregate."""
        return _storable(toolkit.aggregate(self.ctx(), path, **options))

    def refusal(self, path: str, **options: Any) -> ToolFailure:
        """The failure of describing a file that must not be described."""
        with pytest.raises(ToolFailure) as failure:
            self.describe(path, **options)
        return failure.value


def _storable(result: R) -> R:
    clean(result.model_dump(mode="json"))
    return result


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """An empty desk."""
    return Desk(tmp_path)
