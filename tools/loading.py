"""From a reference like `shop.kit:orders` to the toolkit that it names, or to a plain word about why not."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from plans.errors import NameClash, ToolkitNotLoadable
from tools.normalise import catching, plain_sentence
from tools.registry import Toolkit

_OURS = ("plans", "tools", "checkpoints", "nodes", "graph", "evals")
_HOME = Path(__file__).resolve().parent.parent


def load_toolkit(reference: str) -> Toolkit:
    """The toolkit that `module:attr` names; modules are looked for where Python looks and then in the current folder.

    ToolkitNotLoadable says what is wrong with the reference or the module, NameClash which package of the project has
    a name that Surestep uses itself. Neither shows a traceback.
    """
    module_name, attribute = _parts(reference)
    folder = Path.cwd()
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    _refuse_clash(folder)
    return _toolkit(_module(module_name, reference), attribute, reference)


def _parts(reference: str) -> tuple[str, str]:
    module_name, _, attribute = reference.partition(":")
    names = [*module_name.split("."), *attribute.split(".")]
    if all(name.isidentifier() for name in names):
        return module_name, attribute
    hint = ""
    if "/" in module_name or module_name.endswith(".py"):
        dotted = ".".join(Path(module_name).with_suffix("").parts)
        hint = f"; for that file write {dotted}:{attribute or 'NAME'} and run from the folder that it is in"
    raise ToolkitNotLoadable(
        f"a toolkit is named as module:attr (for example shop.kit:orders), not {reference!r}{hint}"
    )


def _refuse_clash(folder: Path) -> None:
    """Python gives one name to one package: code of the project's in a package named like ours cannot be reached."""
    for name in _OURS:
        package = folder / name
        file = package.with_suffix(".py")
        if file.is_file() or (package.resolve() != _HOME / name and _holds_code(package)):
            place = file if file.is_file() else package
            raise NameClash(
                f"{place} has the name of Surestep's own package {name!r}, so Python can find only one of them. "
                f"Rename yours (for example to my_{name}), or run from another folder. A checkout of "
                "Surestep itself has to be installed in place: pip install -e ."
            )


def _holds_code(folder: Path) -> bool:
    return folder.is_dir() and any(next(folder.glob(pattern), None) for pattern in ("*.py", "*/*.py"))


def _module(name: str, reference: str) -> ModuleType:
    module: ModuleType | None = None
    # What a module prints while it is imported must not get into somebody's JSON on stdout.
    with catching() as caught, contextlib.redirect_stdout(sys.stderr):
        module = importlib.import_module(name)
    if module is None:
        raise ToolkitNotLoadable(f"toolkit {reference!r}: {_why(caught.error, name)}")
    return module


def _why(error: BaseException | None, name: str) -> str:
    """Why an import failed, and where in the user's code."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        if name == error.name or name.startswith(f"{error.name}."):
            return f"there is no module {error.name!r}, neither installed nor in {Path.cwd()}"
        return f"module {name!r} imports {error.name!r}, which is not installed{_place(error)}"
    if isinstance(error, SyntaxError):
        return f"module {name!r} is no valid Python: {error.msg} at {error.filename}:{error.lineno}"
    if isinstance(error, SystemExit):
        return f"module {name!r} ended the program while it was imported{_place(error)}"
    said = plain_sentence(str(error)) if str(error) else "no message"
    return f"module {name!r} failed while it was imported: {type(error).__name__}: {said}{_place(error)}"


def _place(error: BaseException | None) -> str:
    """The innermost line that is not the import machinery's."""
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    own = [
        f for f in frames if not f.filename.startswith("<frozen") and f.filename not in (__file__, importlib.__file__)
    ]
    return f" at {own[-1].filename}:{own[-1].lineno}" if own else ""


def _toolkit(module: ModuleType, attribute: str, reference: str) -> Toolkit:
    found: Any = module
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise ToolkitNotLoadable(
                f"toolkit {reference!r}: {module.__name__} has no {attribute!r}; {_offers(module)}"
            )
        found = getattr(found, name)
    if isinstance(found, Toolkit):
        return found
    raise ToolkitNotLoadable(
        f"toolkit {reference!r}: {attribute!r} is a {type(found).__name__}, not a Toolkit; {_offers(module, attribute)}"
    )


def _offers(module: ModuleType, wanted: str = "") -> str:
    names = [name for name, value in vars(module).items() if isinstance(value, Toolkit)]
    if not names:
        return "make one there: NAME = Toolkit('NAME'), from tools.registry"
    close = difflib.get_close_matches(wanted, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"toolkits there: {', '.join(names)}"
