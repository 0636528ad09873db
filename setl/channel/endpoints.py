"""The two ends of a pipeline as a channel file describes them: sources and targets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from setl.channel.checks import BinlogFile, Host, Port, Seconds, Text, Url
from setl.channel.kafka_ends import DtsSource, DtsTarget
from setl.channel.mapping_rules import Raw
from setl.channel.problems import Path
from setl.channel.start_place import Word, start_error, start_kind
from setl.channel.strict_model import StrictModel
from setl.channel.wording_of_fields import CREDENTIAL, MYSQL_SSL_CA, USER


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


_BinlogPlace = Annotated[
    Word | Annotated[BinlogStart, Tag("file")] | Annotated[GtidStart, Tag("gtid")],
    Discriminator(
        start_kind(file=BinlogStart, gtid=GtidStart),
        **start_error("{file: …, offset: …} or {gtid: …}"),
    ),
]


class MysqlSource(StrictModel):
    """A MySQL or MariaDB server whose binlog is read."""

    type: Literal["mysql"] = Field(description="A MySQL or MariaDB server, read by its binlog.")
    host: Host = Field(description="Host name or address.")
    port: Port = Field(default=3306, description="TCP port.")
    user: Text = Field(description=USER)
    password: str = Field(default="", repr=False, description=CREDENTIAL)
    ssl_ca: str = Field(default="", description=MYSQL_SSL_CA)
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


class MysqlTarget(StrictModel):
    """A MySQL or MariaDB server that is written to."""

    type: Literal["mysql"] = Field(description="A MySQL or MariaDB server.")
    host: Host = Field(description="Host name or address.")
    port: Port = Field(default=3306, description="TCP port.")
    user: Text = Field(description=USER)
    password: str = Field(default="", repr=False, description=CREDENTIAL)
    ssl_ca: str = Field(default="", description=MYSQL_SSL_CA)
    fence_timeout: Seconds = Field(
        default=5.0,
        description="Seconds a former leader's open transaction may hold a take-over up before"
        " its connection is killed.",
    )


class ElasticsearchTarget(StrictModel):
    """An Elasticsearch cluster that is written to."""

    type: Literal["elasticsearch"] = Field(description="An Elasticsearch cluster.")
    hosts: list[Url] = Field(min_length=1, description="URLs of its nodes, http or https.")
    user: str = Field(default="", description=USER)
    password: str = Field(default="", repr=False, description=CREDENTIAL)
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
Target = Annotated[MysqlTarget | ElasticsearchTarget | DtsTarget, Field(discriminator="type")]
