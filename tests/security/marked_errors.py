"""Errors as setl's own code makes them of rows, statements, files and answers with a marker."""

from pathlib import Path

import pymysql
from elastic_transport import ConnectionError as NoConnection

from setl.channel.reading import resolve_and_parse
from setl.errors import FatalError, FencedError, PositionLostError, SetlError, TransientError
from setl.run.spark.errors import spark_error
from setl.select.checkpoints.folder import confined
from setl.systems.elasticsearch.client import translate as elastic_error
from setl.systems.mysql.connection import translate as mysql_error
from setl.systems.search_index.errors import AnswerError, translate
from setl.transform.processing import processor_named

MARKER = "alice.liddell-4711@private.example"
"""No name of an object and no word of setl's own: it can only come from what it stands in."""


def _of_mysql(number, text, kind: type[pymysql.MySQLError] = pymysql.err.DataError):
    error = mysql_error(kind(number, text))
    return error.at(table="shop.customers", key=MARKER, server=f"{MARKER}:3306")


def _answer(reason):
    body = {"error": {"type": "document_parsing_exception", "reason": reason}, "status": 400}
    error = translate(AnswerError(400, body), "Elasticsearch")
    return error.at(index="customers", key=MARKER)


def _raised(act, *arguments):
    try:
        act(*arguments)
    except SetlError as error:
        return error
    raise AssertionError(f"{act} has raised nothing")


def _file():
    source = {"type": "mysql", "host": "db1", "user": "u", "port": MARKER}
    table = {"from": "shop.customers", "columns": {"x": f"'{MARKER}"}}
    file = {"channel": "shop", "pipelines": [{"name": "p", "source": source, "target": source,
                                              "tables": [table]}]}  # fmt: skip
    return _raised(resolve_and_parse, file, {})


def errors():
    """By what is at fault; each again, since places are added to errors."""
    integrity, operational = pymysql.err.IntegrityError, pymysql.err.OperationalError
    return {
        "a unique key": _of_mysql(1062, f"Duplicate entry '{MARKER}' for key 'mail'", integrity),
        "a value that is too long": _of_mysql(1406, f"Data too long: '{MARKER}'"),
        "a value that is wrong": _of_mysql(1366, f"Incorrect integer value: '{MARKER}'"),
        "a statement": _of_mysql(1064, f"syntax near '{MARKER}'", pymysql.err.ProgrammingError),
        "a lock": _of_mysql(1205, f"timeout, {MARKER}", operational),
        "a log-in": _of_mysql(1045, f"Access denied for user '{MARKER}'@'h'", operational),
        "no connection to MySQL": _of_mysql(2003, f"Can't connect to '{MARKER}'", operational),
        "a name of a host": mysql_error(OSError(f"[Errno -2] not known: {MARKER}")),
        "a document": _answer(f"failed to parse field [age], value: '{MARKER}'"),
        "no connection to Elasticsearch": elastic_error(NoConnection(f"http://{MARKER}:9200")),
        "an expression": spark_error(
            RuntimeError(f"[CAST_INVALID_INPUT] The value '{MARKER}' cannot be cast"),
            cancelled=False,
        ),
        "a module of a processor": _raised(processor_named, f"no_such.{MARKER}:f"),
        "a channel file": _file(),
        "a file of a checkpoint": _raised(confined, Path(f"/proc/{MARKER}"), Path("/var/lib/x")),
        "a position": PositionLostError(f"the source has purged {MARKER}", server=MARKER),
        "an epoch": FencedError(f"epoch 4 of {MARKER}", server=MARKER),
        "a schema change": FatalError(f"schema change at the source: ALTER … '{MARKER}'"),
        "a hint": TransientError("no answer", hint=f"Ask {MARKER}", statement=MARKER, file=MARKER),
    }
