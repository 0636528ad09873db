"""``python -m tests.bench.documents``: what a number of a JSON document costs on its way.

Embeddings of 1,536 doubles go from MySQL's binary JSON to a statement, and into a MySQL. Beside
that stands what the server takes for the same documents as plain text, which is what a script would
send. All bits of what the table holds afterwards are compared.
"""

from __future__ import annotations

import json
import struct
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import click

from setl.codec.binlog.values.mysql_json import json_text
from setl.systems.mysql.values.json_literal import PARSES_EXACTLY, json_literal
from setl_embedded import MySql

_NUMBERS = 1_536
_TIMES = 5


def binary_array(values: Sequence[float]) -> bytes:
    """An array of doubles as MySQL keeps it."""
    large = len(values) * 11 + 4 > 65_535
    width, form = (4, "<I") if large else (2, "<H")
    front = 2 * width + len(values) * (1 + width)
    entries = (b"\x0b" + struct.pack(form, front + 8 * i) for i in range(len(values)))
    sizes = struct.pack(form, len(values)) + struct.pack(form, front + 8 * len(values))
    numbers = struct.pack(f"<{len(values)}d", *values)
    return bytes([3 if large else 2]) + sizes + b"".join(entries) + numbers


def _best(work: Callable[[], Any]) -> tuple[float, Any]:
    took, result = float("inf"), None
    for _ in range(_TIMES):
        began = time.perf_counter()
        result = work()
        took = min(took, time.perf_counter() - began)
    return took, result


def _inserted(cursor: Any, literals: Sequence[str]) -> Callable[[], None]:
    rows = ",".join(f"({i},{literal})" for i, literal in enumerate(literals))

    def insert() -> None:
        cursor.execute("DELETE FROM measured.t")
        cursor.execute(f"INSERT INTO measured.t VALUES {rows}")

    return insert


@click.command()
@click.option("--documents", default=100, show_default=True)
def main(documents: int) -> None:
    """Measure, and print microseconds a number."""
    draw = Random(1)
    given = [[draw.gauss(0, 0.025) for _ in range(_NUMBERS)] for _ in range(documents)]
    binary = [binary_array(values) for values in given]
    with (
        tempfile.TemporaryDirectory() as folder,
        MySql(Path(folder) / "m", "m", 1) as server,
        server.connect() as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("CREATE DATABASE measured")
        cursor.execute("CREATE TABLE measured.t (id INT PRIMARY KEY, d JSON)")
        cursor.execute(PARSES_EXACTLY)
        exact = cursor.fetchall() == ((1,),)
        decoding, texts = _best(lambda: [json_text(data) for data in binary])
        writing, literals = _best(lambda: [json_literal(text, exact=exact) for text in texts])
        taking, _ = _best(_inserted(cursor, literals))
        cursor.execute("SELECT d FROM measured.t ORDER BY id")
        held = [json.loads(row[0]) for row in cursor.fetchall()]
        if list(map(binary_array, held)) != binary:
            raise SystemExit("the table holds other numbers")
        plain, _ = _best(_inserted(cursor, [f"'{text}'" for text in texts]))
    unit = documents * _NUMBERS / 1e6
    click.echo(f"a number: decoded in {decoding / unit:.2f} us, written in {writing / unit:.2f} us")
    click.echo(
        f"the server takes it in {taking / unit:.2f} us, and as plain text {plain / unit:.2f} us"
    )
    click.echo(f"all of it beside plain text alone: {(decoding + writing + taking) / plain:.2f}")


if __name__ == "__main__":
    main()
