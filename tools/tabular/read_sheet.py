"""Run as a program: reads one sheet of a workbook and writes its cells as text to an Arrow file.

Arguments: memory limit in bytes, workbook, sheet ("" for the first that holds anything), target file. Prints one JSON
object: {"sheets", "sheet"}, with a sheet of null when there is none of that name, or {"error"}.
"""

from __future__ import annotations

import json
import resource
import sys
from typing import Any


def main(limit: str, path: str, sheet: str, target: str) -> dict[str, Any]:
    """Reads the sheet and says what it read."""
    resource.setrlimit(resource.RLIMIT_AS, (int(limit), int(limit)))
    import fastexcel

    try:
        with open(path, "rb") as file:  # noqa: PTH123 - bytes: with a path the library trusts the name's ending
            reader = fastexcel.read_excel(file.read())
        names = reader.sheet_names
        if sheet and sheet not in names:
            return {"sheets": names, "sheet": None}
        chosen, frame = _first_filled(reader, [sheet] if sheet else names)
        frame.write_ipc(target, compression="uncompressed")
    except (fastexcel.FastExcelError, OSError) as error:
        return {"error": str(error).split("\n")[0]}
    return {"sheets": names, "sheet": chosen}


def _first_filled(reader: Any, names: list[str]) -> tuple[str, Any]:
    def cells(name: str) -> Any:
        return reader.load_sheet(name, header_row=None, skip_rows=0, dtypes="string").to_polars()

    loaded = ((name, cells(name)) for name in names)
    return next((found for found in loaded if found[1].height), (names[0], cells(names[0])))


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*sys.argv[1:])))
