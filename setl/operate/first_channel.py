"""Looks at servers, and writes the channel file that fits what is there."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from setl.channel.fields.endpoint import SourceConfig
from setl.channel.fields.endpoints import takes_documents
from setl.channel.file import ChannelFile
from setl.channel.first_file import (
    FirstFile,
    FirstTable,
    Remark,
    channel_name,
    fields_of,
    invented_target,
    password_variable,
    with_indexes,
    written,
)
from setl.channel.names.patterns import is_system
from setl.channel.reading import resolve_and_parse
from setl.channel.server_url import ServerUrl
from setl.channel.text.problems import ChannelFileError
from setl.counting import count
from setl.errors import ConfigurationError, TransientError
from setl.operate.alike_findings import alike, named, statements_of
from setl.operate.check import check_channel
from setl.systems.finding import Finding
from setl.systems.registry import system_of

_OF_TABLE = re.compile(r"pipelines\[0\]\.tables\[(\d+)\]")
_SHOWN = 5  # schemas that a message names


@dataclass(frozen=True, slots=True)
class FirstChannel:
    """The first file of a channel.

    Attributes:
        name: the channel's name.
        text: the file.
        tables: how many tables it maps.
        variables: the environment variables that it names.
        findings: what a check of it finds, as far as its servers are known.
    """

    name: str
    text: str
    tables: int
    variables: tuple[str, ...]
    findings: Sequence[Finding]


def first_channel(
    source: ServerUrl, target: ServerUrl | None, environment: Mapping[str, str]
) -> FirstChannel:
    """Look at a source, and at a target if one is named; changes nothing on either.

    Args:
        source: the source.
        target: the target, None for one that the reader of the file fills in.
        environment: has the passwords.

    Raises:
        ConfigurationError: a password is missing, the source refuses the account, or shows it no
            table.
        TransientError: the source does not answer.
    """
    if source.type != "mysql":
        raise ConfigurationError(
            f"--from names {source.address}, from which setl cannot read changes",
            hint="Name a MySQL or MariaDB server: mysql://user@host:port/schema",
        )
    name = channel_name(source)
    of_source = fields_of(source, password_variable(name, "source"))
    invented = invented_target(name)
    of_target = fields_of(target, password_variable(name, "target")) if target else invented
    known = dict(environment)
    if target is None:
        known.setdefault(_variable(invented), "")  # nobody logs in with it
    for end, fields in (("--from", of_source), ("--to", of_target)):
        _require_password(end, fields, known)
    file = FirstFile(name, of_source, of_target, (FirstTable("a", "a"),), invented=target is None)
    endpoint = resolve_and_parse(file.definition, known).pipelines[0].source
    tables = _tables(endpoint, source)
    if takes_documents(of_target):
        tables = with_indexes(tables)
    file, parsed = _parsed(replace(file, tables=tuple(tables)), known)
    findings = check_channel(parsed, targets=target is not None)
    return FirstChannel(
        name,
        written(file, _remarks(file, findings)),
        len(file.mapped),
        tuple(_variable(fields) for fields in (of_source, of_target) if "password" in fields),
        findings,
    )


def _variable(fields: Mapping[str, object]) -> str:
    return str(fields["password"])[2:-1]


def _require_password(
    option: str, fields: Mapping[str, object], environment: Mapping[str, str]
) -> None:
    if "password" in fields and _variable(fields) not in environment:
        raise ConfigurationError(
            f"the environment variable {_variable(fields)} is not set",
            hint=f"Put the password of {fields['user']} ({option}) there, or nothing if the account"
            " has none; the file will name the variable, and never the password",
        )


def _tables(endpoint: SourceConfig, wanted: ServerUrl) -> list[FirstTable]:
    """The tables that the account sees in the schemas that are wanted, with their keys."""
    opened = system_of(endpoint).tables()
    if opened is None:
        raise ConfigurationError(f"{wanted.address} has no tables that can be read")
    with _naming_what_to_look_for(), opened as server:
        visible = [name for name in server.names() if not is_system(name[0])]
        schemas = list(dict.fromkeys(schema for schema, _ in visible))
        spelt = [_as_the_server_spells(schema, schemas) for schema in wanted.schemas]
        if empty := [schema for schema in spelt if schema not in schemas]:
            raise _shows_nothing(wanted, f"schema {', '.join(empty)}", empty[0], schemas)
        if not visible:
            raise _shows_nothing(wanted, "any schema", "", schemas)
        found: list[FirstTable] = []
        for schema, table in visible:
            if not spelt or schema in spelt:
                try:
                    (reader,) = server.readers([(schema, table)])
                    shape = reader.schema if reader else None
                    key = [shape.names[i] for i in shape.key] if shape else []
                except ConfigurationError:
                    key = []  # the check says why that table cannot be read
                found.append(FirstTable(schema, table, tuple(key)))
    return found


@contextmanager
def _naming_what_to_look_for() -> Generator[None]:
    """Whoever types an address may have mistyped it, unlike who runs a channel that worked."""
    try:
        yield
    except TransientError as error:
        error.hint = error.hint or (
            "See that a MySQL or MariaDB server listens there, and that this machine may reach it"
        )
        raise


def _as_the_server_spells(schema: str, schemas: Sequence[str]) -> str:
    """A schema's name; the case is the server's if only that differs."""
    if schema in schemas:
        return schema
    alike = [each for each in schemas if each.lower() == schema.lower()]
    return alike[0] if len(alike) == 1 else schema


def _shows_nothing(
    server: ServerUrl, what: str, schema: str, schemas: Sequence[str]
) -> ConfigurationError:
    scope = "`" + schema.replace("`", "``") + "`.*" if schema else "*.*"
    account = server.fields["user"]
    others = f"; it sees tables of {', '.join(schemas[:_SHOWN])}" if schemas else ""
    more = " and others" if schemas[_SHOWN:] else ""
    return ConfigurationError(
        f"the account {account} sees no table of {what} at {server.address}{others}{more}",
        hint=f"Correct the name; or, as an administrator: GRANT SELECT ON {scope} TO the account"
        f" (SELECT CURRENT_USER() names it)",
    )


def _parsed(file: FirstFile, environment: Mapping[str, str]) -> tuple[FirstFile, ChannelFile]:
    """The file without tables that no channel file can map, such as those of forbidden names."""
    try:
        return file, resolve_and_parse(file.definition, environment)
    except ChannelFileError as error:
        why = {
            int(found.group(1)): problem.message
            for problem in error.problems
            if (found := _OF_TABLE.match(problem.path))
        }
        if not why or len(why) == len(file.tables):
            raise
        tables = [
            replace(table, left_out=why.get(index, "")) for index, table in enumerate(file.tables)
        ]
        left = replace(file, tables=tuple(tables))
        return left, resolve_and_parse(left.definition, environment)


def _remarks(file: FirstFile, findings: Sequence[Finding]) -> dict[str, list[Remark]]:
    """Each finding beside the table that it is about, or beside its end of the pipeline."""
    of_index = {table.to or table.table.lower(): table.name for table in file.mapped}
    names = {table.name for table in file.mapped}
    remarks: dict[str, list[Remark]] = {}
    for group in alike([f for f in findings if f.level in ("error", "warning")]):
        finding, title = group[0], group[0].id
        name = finding.location
        if takes_documents(file.target) and name not in names:
            name = of_index.get(name, name)
        if name not in names or len(group) > 1:
            name = "target" if ", target " in finding.where else "source"
        if len(group) > 1:
            title = f"{finding.code}, {count(len(group), 'time')} ({named(group)})"
        text = f"{finding.level} {title}: {finding.what}"
        remarks.setdefault(name, []).append(Remark(text, tuple(_hints(file, group))))
    return remarks


def _hints(file: FirstFile, group: Sequence[Finding]) -> Iterator[str]:
    """What to do, without the statements: some are as long as a table's definition."""
    finding = group[0]
    yield from (hint for hint in finding.hint if not hint.endswith(";"))
    if statements := statements_of(group):
        number = count(statements, "statement")
        yield f"{number} for {finding.server}: `setl check -o sql {file.channel}.yaml` prints SQL"
