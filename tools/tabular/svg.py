"""Reduces a chart's SVG to what draws: known shapes, known attributes, no links, the page's own colours."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

INK, MUTED, GRID = "#010101", "#010102", "#010103"
SERIES = ("#010111", "#010112", "#010113", "#010114", "#010115", "#010116")
"""Placeholders for the page's colours; the second series is also the colour of a warning."""

_COLOURS = {INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--line)"} | {
    placeholder: f"var(--c{place})" for place, placeholder in enumerate(SERIES, start=1)
}
_NAMESPACE = "{http://www.w3.org/2000/svg}"
_SHAPES = {"svg", "g", "path", "rect", "line", "circle", "text", "tspan", "defs", "clipPath"}
_KEPT = {
    "d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "dx", "dy", "width", "height", "viewBox", "transform",
    "stroke-width", "stroke-dasharray", "stroke-miterlimit", "opacity", "fill-opacity", "stroke-opacity", "text-anchor",
    "font-size", "font-weight", "id", "clip-path", "fill", "stroke",
}  # fmt: skip
_VALUE = re.compile(r"^[A-Za-z0-9 ,.()#%+-]*$")


def cleaned(svg: str, alt_text: str, prefix: str) -> str:
    """The same picture as inline SVG for a page. Its ids are counted anew behind `prefix`: they differ from those of
    other pictures, and not from one drawing of the same picture to the next."""
    root = ET.fromstring(svg)  # noqa: S314 - our own chart, drawn a moment ago; no file's XML comes here
    kept = _reduced(root, _Ids(prefix))
    width = kept.attrib.pop("width", "600")
    kept.attrib.pop("height", None)
    kept.attrib |= {"role": "img", "aria-label": alt_text, "style": f"max-width:{float(width):.0f}px", "class": "chart"}
    return ET.tostring(kept, encoding="unicode")


class _Ids(dict[str, str]):
    """New ids by old ones, in the order in which they come up."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    def __missing__(self, old: str) -> str:
        return self.setdefault(old, f"{self._prefix}{len(self)}")


def _reduced(element: ET.Element, ids: _Ids) -> ET.Element:
    """The element without its namespace, unknown attributes and unknown children."""
    made = ET.Element(element.tag.removeprefix(_NAMESPACE), _attributes(element, ids))
    made.text = element.text
    for child in element:
        if child.tag.removeprefix(_NAMESPACE) in _SHAPES and child.get("display") != "none":
            made.append(_reduced(child, ids))
    return made


def _attributes(element: ET.Element, ids: _Ids) -> dict[str, str]:
    kept = {name: value for name, value in element.attrib.items() if name in _KEPT and _VALUE.match(value)}
    colours = {name: _COLOURS[value] for name in ("fill", "stroke") if (value := kept.get(name)) in _COLOURS}
    for name in colours:
        del kept[name]
    if "id" in kept:
        kept["id"] = ids[kept["id"]]
    kept.pop("clip-path", None)
    if clip := re.fullmatch(r"url\(#([\w-]+)\)", element.get("clip-path", "")):
        kept["clip-path"] = f"url(#{ids[clip[1]]})"
    if colours:
        kept["style"] = ";".join(f"{name}:{colour}" for name, colour in colours.items())
    return kept
