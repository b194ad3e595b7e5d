"""Every sentence of the tabular tools in English."""

from __future__ import annotations

WORDS = {
    "assumed_encoding": "the encoding was guessed from the content: {encoding}",
    "assumed_preamble": "lines {lines} above the header (line {header}) were taken for a title or remarks and skipped",
    "assumed_no_header": "the first line looks like data, so there is no header: the columns are named {names}",
    "assumed_sheet": "the sheet {sheet} was read; the workbook has: {sheets}",
    "assumed_decimal": "{column}: {example} can be read two ways; {decimal} was taken for the decimal mark",
    "assumed_decimal_from_file": "{column}: {example} can be read two ways; {decimal} was taken for the decimal mark, "
    "as in the file's other columns",
    "assumed_order_dmy": "{column}: {example} can be read two ways; day before month was assumed",
    "assumed_order_mdy": "{column}: {example} can be read two ways; month before day was assumed",
    "assumed_order_from_file_dmy": "{column}: {example} can be read two ways; day before month was assumed, as in the "
    "file's other columns",
    "assumed_order_from_file_mdy": "{column}: {example} can be read two ways; month before day was assumed, as in the "
    "file's other columns",
    "assumed_utc": "{column}: {count} times with a zone were turned into UTC; {unzoned} without one were taken as UTC",
    "duplicate_name": "column {place} has the name of an earlier column, {name}; it is called {unique} here",
    "empty_name": "column {place} has no name; it is called {unique} here",
    "ragged": "{count} rows have too few or too many fields, the first in line {first}",
    "ragged_one": "1 row has too few or too many fields, in line {first}",
    "empty_rows": "{count} rows without any value were left out",
    "empty_rows_one": "1 row without any value was left out",
    "one_column": "there is only one column, {name}: if that is wrong, name the delimiter",
    "no_rows": "there is a header and no rows",
    "mixed": "{column}: some values look like {kind}, but most cannot be read so; it is treated as text",
    "mixed_order_dmy": "{column}: {dmy} dates have the day first and {mdy} the month; day before month was taken, the "
    "others are bad dates",
    "mixed_order_mdy": "{column}: {dmy} dates have the day first and {mdy} the month; month before day was taken, the "
    "others are bad dates",
}
