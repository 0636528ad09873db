"""User code: a Python function that each change of a table goes through, in Spark tasks.

A mapping names it as ``module:function``. It takes a `TypedChange` and returns what is to be
applied in its place: a change, several of them, or None for nothing::

    def mask(change: TypedChange) -> TypedChange | None:
        if change.row.as_integer("internal"):
            return change.as_delete()
        return change.mapped(lambda row: {"email": hashed(row.as_text("email"))})

It is called for the changes of a row in their order, before compaction, and its results are
compacted like any changes: what is written are the last states under their keys. The same change
may be given to it again after a crash, perhaps on another machine, so it must return the same
again: no clock, no chance, no counter.

Modules are looked for where Python finds them in the task: files of the node's ``--py-files``
are sent there. A module is imported once in each worker and stays as it is until the node ends.
"""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, cast

from setl.errors import ConfigurationError, DataError, NodeNotReadyError, SetlError
from setl.model.change import DecodedRows, Op
from setl.model.schema import RowSchema
from setl.model.typed import TypedChange, typed_changes
from setl.transform.columns import identity_indexes, key_indexes

Processor = Callable[[TypedChange], "TypedChange | Iterable[TypedChange] | None"]

_MISSING = "Give the file with --py-files, or install the module where tasks run"


@lru_cache(maxsize=256)
def processor_named(name: str) -> Processor:
    """The function of a ``module:function``.

    Raises:
        NodeNotReadyError: it cannot be imported, or is no function.
    """
    module_name, _, function_name = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    # The module's own code runs here, and may raise anything, or end as a program does.
    except (Exception, SystemExit) as error:
        raise NodeNotReadyError(
            f"the processor {name} cannot be imported: {type(error).__name__}: {error}",
            hint=_MISSING if isinstance(error, ImportError) else f"Fix {module_name}",
            processor=name,
        ) from error
    function: Any = module
    for part in function_name.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        raise NodeNotReadyError(
            f"the module {module_name} has no function {function_name}",
            hint="Name it as module:function",
            processor=name,
        )
    return cast("Processor", function)


def processed(
    name: str, decoded: DecodedRows, key: tuple[str, ...], routing: str | None = None
) -> Iterator[DecodedRows]:
    """What a processor makes of the changes of one entry, in order.

    Args:
        name: the processor.
        decoded: the changes.
        key: columns that identify a row in place of the primary key.
        routing: a column by which its document is found, too.

    Raises:
        ConfigurationError: the processor is not there, or returns what is no change.
        DataError: it raised; names the row.
    """
    processor = processor_named(name)
    pending: DecodedRows | None = None
    for change in typed_changes(decoded, _identity(decoded.schema, key, routing)):
        for result in _results(name, processor, change, key):
            if (
                pending is None
                or result.op is not pending.op
                # Equal schemas are one object nearly always; comparing them costs more.
                or result.schema is not pending.schema
            ):
                if pending is not None:
                    yield pending
                pending = DecodedRows(result.schema, result.op, [])
            pending.images.append(result.images)
    if pending is not None:
        yield pending


def _results(
    name: str, processor: Processor, change: TypedChange, key: tuple[str, ...]
) -> list[TypedChange]:
    try:
        result: Any = processor(change)
        if result is None or isinstance(result, TypedChange):
            results: list[Any] = [] if result is None else [result]
        else:
            results = list(result)  # a generator runs here
    # It is the user's code, and may raise anything, or end as a program does.
    except (Exception, SystemExit) as error:
        raise _failure(name, error, change, key) from error
    for each in results:
        # What the source leaves out is no fault of the processor.
        if each is not change and (problem := _problem(each)):
            raise ConfigurationError(
                f"the processor {name} returns {problem}",
                hint="Return a TypedChange, several of them, or None; make others of the one that"
                " was given, with its methods",
                processor=name,
                table=change.schema.name,
            )
    return results


def _problem(result: object) -> str:
    """Why what a processor returned cannot be applied, in words; "" if it can."""
    if not isinstance(result, TypedChange):
        return f"{type(result).__name__}, which is no change"
    before, after = result.images
    width = len(result.schema.columns)
    if any(row is not None and len(row) != width for row in (before, after)):
        return f"a row that has not a value for each of the {width} columns"
    if result.op is Op.DELETE:
        return "a delete without the row before it" if before is None else ""
    return f"an {result.op.value} without the row after it" if after is None else ""


def _identity(
    schema: RowSchema, key: tuple[str, ...], routing: str | None
) -> tuple[int, ...] | None:
    """Places of the columns by which a row is found at the target; None if that is the key."""
    if not key and routing is None:
        return None
    try:
        return identity_indexes(schema, key, routing)
    except SetlError:  # whoever maps the rows says so
        return None


def _failure(
    name: str, error: BaseException, change: TypedChange, key: tuple[str, ...]
) -> SetlError:
    """The error of a processor, with the row and the position in its code."""
    schema, row = change.schema, change.row
    try:
        shown = ", ".join(str(row.value(i)) for i in key_indexes(schema, key))
    except SetlError:
        shown = ""
    where = {"processor": name, "table": schema.name, "key": shown[:200]}
    if isinstance(error, DataError):
        return error.at(**where)
    frames = traceback.extract_tb(error.__traceback__)[1:]
    line = f" in line {frames[-1].lineno} of {frames[-1].name}" if frames else ""
    return DataError(
        f"the processor raised {type(error).__name__}: {error}{line}",
        hint="Fix the processor, or the row at the source",
        **where,
    )
