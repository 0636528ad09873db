"""The two ends of a pipeline as a channel file describes them: sources and targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Discriminator, Field, Tag

from setl.config.checks import (
    BinlogFile,
    Broker,
    Host,
    KafkaSetting,
    Port,
    Seconds,
    Text,
    UnixTime,
    Url,
)
from setl.config.mapping_rules import Raw, part
from setl.config.problems import Path
from setl.config.strict_model import RULE, StrictModel

OWN_KAFKA_SETTINGS = frozenset({
    "auto_offset_reset", "bootstrap_servers", "enable_auto_commit", "group_id",
    "group_instance_id", "key_deserializer", "max_poll_records", "value_deserializer",
})  # fmt: skip
"""What may not be passed to KafkaConsumer: it has fields of its own, or would lose the place."""

_USER = "Account name."
_CREDENTIAL = "Its password; write ${NAME} and set NAME in the environment of the nodes."
_SSL_CA = (
    "File on the nodes with the certificate authorities to trust. Given, the connection uses TLS"
    " and the server's certificate is checked; empty, it uses no TLS."
)
_WORD = "word"


class BinlogStart(StrictModel):
    """Start at a byte of a binlog file."""

    file: BinlogFile = Field(description="Name of the binlog file, such as mysql-bin.000003.")
    offset: int = Field(
        default=4, ge=4, lt=1 << 32, description="Byte in that file; 4 is its beginning."
    )


class GtidStart(StrictModel):
    """Start after a set of GTIDs."""

    gtid: Text = Field(
        description="GTIDs already applied, as the server writes them: 0-1-17 (MariaDB) or"
        " 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-23 (MySQL)."
    )


class TimestampStart(StrictModel):
    """Start at the first record committed at or after a time, seconds since 1970 UTC."""

    timestamp: UnixTime = Field(description="Commit time, in seconds since 1970-01-01 UTC.")


class OffsetStart(StrictModel):
    """Start at a Kafka offset."""

    offset: int = Field(ge=0, description="Offset of the first record to read.")


def _start_kind(**kinds: type[BaseModel]) -> Callable[[Any], str | None]:
    """Tells the forms of `start` apart by a key: the name of each argument."""

    def kind(value: Any) -> str | None:
        if isinstance(value, str):
            return _WORD
        for key, model in kinds.items():
            if isinstance(value, model) or (isinstance(value, Mapping) and key in value):
                return key
        return None

    return kind


def _start_error(forms: str) -> dict[str, Any]:
    return {
        "custom_error_type": RULE,
        "custom_error_message": "{text}",
        "custom_error_context": {"text": f"must be latest, earliest, {forms}"},
    }


_Word = Annotated[Literal["latest", "earliest"], Tag(_WORD)]
_BinlogPlace = Annotated[
    _Word | Annotated[BinlogStart, Tag("file")] | Annotated[GtidStart, Tag("gtid")],
    Discriminator(
        _start_kind(file=BinlogStart, gtid=GtidStart),
        **_start_error("{file: …, offset: …} or {gtid: …}"),
    ),
]
_KafkaPlace = Annotated[
    _Word | Annotated[TimestampStart, Tag("timestamp")] | Annotated[OffsetStart, Tag("offset")],
    Discriminator(
        _start_kind(timestamp=TimestampStart, offset=OffsetStart),
        **_start_error("{timestamp: …} or {offset: …}"),
    ),
]


class MysqlSource(StrictModel):
    """A MySQL or MariaDB server whose binlog is read."""

    type: Literal["mysql"] = Field(description="A MySQL or MariaDB server, read by its binlog.")
    host: Host = Field(description="Host name or address.")
    port: Port = Field(default=3306, description="TCP port.")
    user: Text = Field(description=_USER)
    password: str = Field(default="", repr=False, description=_CREDENTIAL)
    ssl_ca: str = Field(default="", description=_SSL_CA)
    server_id: int | None = Field(
        default=None,
        ge=1,
        le=(1 << 32) - 1,
        description="Replica id towards the source; no two of its replicas may have the same."
        " Made from the names of channel and pipeline if not given.",
    )
    heartbeat: float = Field(
        default=1.0,
        ge=0,
        le=3600,
        description="Seconds between writes to retl.xdual, which show the lag of an idle source;"
        " 0 writes none.",
    )
    start: _BinlogPlace = Field(
        default="latest",
        description="Where to start when there is no checkpoint yet: latest, earliest, a place in"
        " the binlog, or after a set of GTIDs.",
    )


class DtsSource(StrictModel):
    """A DTS subscription: records on one partition of a Kafka topic."""

    type: Literal["dts"] = Field(description="A DTS subscription, read from Kafka.")
    brokers: list[Broker] = Field(min_length=1, description="Kafka brokers, each host:port.")
    topic: Text = Field(description="Topic of the subscription.")
    partition: int = Field(default=0, ge=0, description="Its partition; DTS uses 0 only.")
    sid: str = Field(
        default="", description="Consumer group id of the subscription; see also `user`."
    )
    user: str = Field(
        default="", description="Account of the consumer group; Kafka is told user-sid."
    )
    password: str = Field(default="", repr=False, description=_CREDENTIAL)
    start: _KafkaPlace = Field(
        default="latest",
        description="Where to start when there is no checkpoint yet: latest, earliest, a commit"
        " time, or an offset.",
    )
    kafka: dict[str, KafkaSetting] = Field(
        default_factory=dict[str, KafkaSetting],
        repr=False,
        description="Further settings of kafka-python's KafkaConsumer, under its own names.",
    )

    @classmethod
    def rules(cls, raw: Raw) -> Iterable[tuple[Path, str]]:
        """A password is of somebody, and the place in the topic is setl's to keep."""
        if raw.get("password") and not raw.get("user"):
            yield ("user",), "is required where there is a password"
        for name in part(raw.get("kafka")):
            if name.replace(".", "_") in OWN_KAFKA_SETTINGS:
                yield ("kafka", name), "cannot be set; setl keeps the place in the topic itself"


class MysqlTarget(StrictModel):
    """A MySQL or MariaDB server that is written to."""

    type: Literal["mysql"] = Field(description="A MySQL or MariaDB server.")
    host: Host = Field(description="Host name or address.")
    port: Port = Field(default=3306, description="TCP port.")
    user: Text = Field(description=_USER)
    password: str = Field(default="", repr=False, description=_CREDENTIAL)
    ssl_ca: str = Field(default="", description=_SSL_CA)
    fence_timeout: Seconds = Field(
        default=5.0,
        description="Seconds a former leader's open transaction may hold a take-over up before"
        " its connection is killed.",
    )


class ElasticsearchTarget(StrictModel):
    """An Elasticsearch cluster that is written to."""

    type: Literal["elasticsearch"] = Field(description="An Elasticsearch cluster.")
    hosts: list[Url] = Field(min_length=1, description="URLs of its nodes, http or https.")
    user: str = Field(default="", description=_USER)
    password: str = Field(default="", repr=False, description=_CREDENTIAL)
    api_key: str = Field(
        default="", repr=False, description="API key, in place of an account; better ${NAME}."
    )
    ca_certs: str = Field(
        default="",
        description="File on the nodes with the certificate authorities to trust; empty trusts"
        " those of the system.",
    )
    request_timeout: Seconds = Field(
        default=30.0, description="Seconds to wait for an answer before a request counts as lost."
    )

    @classmethod
    def rules(cls, raw: Raw) -> Iterable[tuple[Path, str]]:
        """One way to log in, complete."""
        if raw.get("api_key") and raw.get("user"):
            yield ("api_key",), "cannot be given together with `user`; choose one of them"
        if raw.get("password") and not raw.get("user"):
            yield ("user",), "is required where there is a password"


Source = Annotated[MysqlSource | DtsSource, Field(discriminator="type")]
Target = Annotated[MysqlTarget | ElasticsearchTarget, Field(discriminator="type")]
