"""Finds what `setl peek` was asked for, and prints its records."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from arbiter.values import Channel, PipelineId
from setl.channel.file import Pipeline
from setl.channel.names.patterns import PatternError, TablePattern, parse_tables
from setl.channel.reading import read_channel_definition, resolve_and_parse
from setl.cli.access.cluster import pipeline_config
from setl.cli.terminal.output import console, to_stderr
from setl.errors import ConfigurationError
from setl.operate.peek.as_json import json_line
from setl.operate.peek.as_text import text_lines
from setl.operate.peek.look import Subject, look, source_subject, subject_at, target_subject
from setl.select.start_point import StartPoint
from setl.systems.registry import system_of
from setl.systems.seen_record import SeenRecord, Wanted

_PASSWORD: Final = "SETL_PEEK_PASSWORD"  # noqa: S105 - the variable's name
_LAST = 10
_STYLES = {"head": "bold", "detail": "dim", "changed": "yellow", "problem": "red"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What `setl peek` was asked for; its help says what each of them means."""

    source: str
    target: bool
    start: str | None
    tables: tuple[str, ...]
    count: int | None
    follow: bool
    timeout: float | None
    everything: bool
    output: str


def print_records(asked: Asked, stored: tuple[Channel, PipelineId] | None) -> None:
    """Print the records that are asked for, as they come.

    Args:
        asked: what is to be shown.
        stored: the pipeline as the cluster keeps it, None if an address or a file is meant.

    Raises:
        click.UsageError: the source, a table or the position is none.
        SetlError: a server refuses, or does not answer.
    """
    subject = _subject(asked.source, stored, target=asked.target)
    wanted = Wanted(tuple(_pattern(table) for table in asked.tables), asked.everything)
    start_point = None if asked.start is None else _position(asked.start, subject)
    backwards = system_of(subject.config).reads_backwards
    if start_point is None and not backwards and sys.stderr.isatty():
        to_stderr("waiting for what comes; --from shows what is there")
    count = asked.count
    records = look(subject, start_point, wanted, last=count or _LAST, follow=asked.follow)
    if start_point is None and asked.follow and backwards:
        count = None  # it says how many of the last ones come first
    try:
        with closing(records):
            _print_all(records, asked.output, count, asked.timeout)
    except BrokenPipeError:
        # Whoever reads has had enough, as `head` does. What is still buffered has to go somewhere
        # when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_all(
    records: Iterable[SeenRecord | None], output: str, count: int | None, timeout: float | None
) -> None:
    deadline = None if timeout is None else time.monotonic() + timeout
    show = _print_json if output == "json" else _text_printer()
    shown = 0
    for record in records:
        if record is None:
            sys.stdout.flush()
        else:
            show(record)
            shown += 1
        if shown == count or (deadline is not None and time.monotonic() >= deadline):
            break
    sys.stdout.flush()


def _print_json(record: SeenRecord) -> None:
    print(json_line(record))


def _text_printer() -> Callable[[SeenRecord], None]:
    if not sys.stdout.isatty():
        return lambda record: print(*(line.text for line in text_lines(record)), sep="\n")
    from rich.text import Text  # noqa: PLC0415

    out = console()

    def show(record: SeenRecord) -> None:
        for line in text_lines(record):
            out.print(Text(line.text, _STYLES.get(line.role, "")), soft_wrap=True)

    return show


def _subject(source: str, stored: tuple[Channel, PipelineId] | None, *, target: bool) -> Subject:
    if "://" in source:
        if target:
            raise click.UsageError("--target is for pipelines; an address says what it is")
        return subject_at(source, os.environ.get(_PASSWORD, ""))
    pipeline = _in_file(source) if stored is None else pipeline_config(*stored)
    return target_subject(pipeline) if target else source_subject(pipeline)


def _in_file(source: str) -> Pipeline:
    """The pipeline that a channel file has, or that FILE:PIPELINE names."""
    file, name = source, ""
    if not Path(file).is_file():
        file, _, name = source.rpartition(":")
    channel = resolve_and_parse(read_channel_definition(Path(file)), os.environ)
    found = [p for p in channel.pipelines if name in ("", p.name)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"{file}:{p.name}" for p in channel.pipelines)
    what = f"has no pipeline {name!r}" if name else "has several pipelines"
    raise click.UsageError(f"{file} {what}; write one of {known}")


def _position(text: str, subject: Subject) -> StartPoint:
    try:
        return system_of(subject.config).parse_start_point(text)
    except ConfigurationError as error:
        raise click.UsageError(str(error)) from None


def _pattern(text: str) -> TablePattern:
    try:
        try:
            return parse_tables(text)
        except PatternError:
            return parse_tables(f"*.{text}")  # a table of any schema
    except PatternError as error:
        raise click.BadParameter(f"{text!r} {error}", param_hint="--table") from None
