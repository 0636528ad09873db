"""What `setl peek` looks at, and its records one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from pydantic import ValidationError

from setl.channel.fields.endpoint import SourceConfig
from setl.channel.fields.kafka_formats import STANDALONE
from setl.channel.file import KafkaSource, MysqlSource, Pipeline
from setl.errors import ConfigurationError
from setl.select.start_point import StartPoint
from setl.systems.registry import system_of
from setl.systems.seen_record import SeenRecord, Wanted

_FORMS = (
    "Write kafka://HOST:PORT[,HOST:PORT]/TOPIC[/PARTITION] or mysql://USER@HOST[:PORT]; both take "
    "?ssl_ca=FILE, and Kafka USER@, ?sid=GROUP and ?format=FORMAT"
    f" ({' or '.join(STANDALONE)}) as well"
)
_NEEDED = "".join(
    f"; of `format: {format_}` with `{name}: {json.dumps(value)}`"
    for format_, form in STANDALONE.items()
    for name, value in form.read_with.items()
)
_OPTIONS = {
    "kafka": {"ssl_ca", "sid", "mechanism", "format", "time_zone"},
    "mysql": {"ssl_ca", "server_public_key", "insecure_login"},
}
_KAFKA_PATH = re.compile(r"/(?P<topic>[^/]+)(?:/(?P<partition>[0-9]+))?/?")
_MYSQL_HOST = re.compile(r"(?P<host>\[[^\]]+\]|[^:]+)(?::(?P<port>[0-9]+))?")


@dataclass(frozen=True, slots=True)
class Subject:
    """A binlog or a topic.

    Attributes:
        config: where it is.
        partitions: which partitions of a topic; empty for all.
    """

    config: SourceConfig
    partitions: tuple[int, ...] = ()


def source_subject(pipeline: Pipeline) -> Subject:
    """What a pipeline reads."""
    return Subject(pipeline.source, pipeline.source.partition_numbers)


def target_subject(pipeline: Pipeline) -> Subject:
    """The topic that a relay writes.

    Raises:
        ConfigurationError: the pipeline writes none.
    """
    topic = pipeline.target.as_source()
    if topic is None:
        raise ConfigurationError(
            f"the pipeline {pipeline.name} writes no records that setl reads",
            hint=f"Only a relay's topic can be looked at{_NEEDED}",
        )
    return Subject(topic)


def subject_at(address: str, password: str) -> Subject:
    """What an address names.

    Args:
        address: see `_FORMS`.
        password: of the account that it names.

    Raises:
        ConfigurationError: it is none, or holds a password, which is not repeated.
    """
    parts = _split(address)
    user, _, servers = parts.netloc.rpartition("@")
    if ":" in user:
        # Whoever lists the processes of this machine can read it, and the shell keeps it.
        raise ConfigurationError(
            "an address must not hold a password",
            hint="Leave it out, and set SETL_PEEK_PASSWORD in the environment",
        )
    allowed = _OPTIONS.get(parts.scheme)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if allowed is None or not set(options) <= allowed:
        raise _not_an_address(address)
    given: dict[str, Any] = dict(options)
    if user:
        given |= {"user": unquote(user), "password": password}
    try:
        if parts.scheme == "kafka":
            return _topic(address, servers, parts.path, given)
        return _binlog(address, servers, parts.path, given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        location = ".".join(map(str, first["loc"])) or "it"
        raise ConfigurationError(
            f"not an address: {address!r}: {location}: {first['msg']}", hint=_FORMS
        ) from None


def _topic(address: str, brokers: str, path: str, given: dict[str, Any]) -> Subject:
    found = _KAFKA_PATH.fullmatch(path)
    if found is None or not brokers:
        raise _not_an_address(address)
    partition = found["partition"]
    config = KafkaSource(
        type="kafka",
        brokers=brokers.split(","),
        topic=unquote(found["topic"]),
        partition=int(partition or 0),
        **given,
    )
    return Subject(config, () if partition is None else (int(partition),))


def _binlog(address: str, server: str, path: str, given: dict[str, Any]) -> Subject:
    found = _MYSQL_HOST.fullmatch(server)
    if found is None or path not in ("", "/") or "user" not in given:
        raise _not_an_address(address)
    port = int(found["port"] or 3306)
    return Subject(MysqlSource(type="mysql", host=found["host"].strip("[]"), port=port, **given))


def _split(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:
        raise _not_an_address(address) from None


def _not_an_address(address: str) -> ConfigurationError:
    # Without what stands before @: a password may be there that this could not make out.
    scheme, _, rest = address.partition("://")
    return ConfigurationError(
        f"not an address: '{scheme}://{rest.rpartition('@')[2]}'", hint=_FORMS
    )


def look(
    subject: Subject,
    start_point: StartPoint | None,
    wanted: Wanted,
    *,
    last: int = 10,
    follow: bool = False,
) -> Generator[SeenRecord | None]:
    """Records of a topic or a binlog. Closing the generator closes the connections.

    Args:
        subject: what to look at.
        start_point: where to begin. From latest, it is waited for what comes, whatever `follow`
            says. None stands for the last records that are there, of a topic; for latest, of a
            binlog, which can only be read forwards.
        wanted: which records; of a position that is a time, only what was committed since.
        last: how many of the last ones, where `start_point` is None.
        follow: whether to wait for more at the end of what is there now.

    Yields:
        A wanted record, or None about twice a second while none comes.

    Raises:
        ConfigurationError: the position or the topic does not exist, or the account is refused.
        PositionLostError: the source no longer has the position.
        TransientError: a server does not answer, or the connection was lost.
        FatalError: a binlog holds something other than rows.
    """
    system = system_of(subject.config)
    if start_point is None and not system.reads_backwards:
        start_point = StartPoint("latest")
    if start_point is not None:
        wanted = replace(wanted, since=max(wanted.since, start_point.since))
        follow = follow or start_point.start == "latest"
    for record in system.records(subject.partitions, start_point, wanted, last=last, follow=follow):
        if record is None or wanted.shows(record):
            yield record
