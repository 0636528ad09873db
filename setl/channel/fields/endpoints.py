"""The endpoints of a pipeline in a channel file: MySQL sources, and all targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Union, get_args

from pydantic import Discriminator, Field, Tag
from typing_extensions import override

from setl.channel.fields.checks import BinlogFile, Broker, Host, Port, Seconds, Text, Url
from setl.channel.fields.delta_endpoint import DeltaTarget
from setl.channel.fields.endpoint import Database, Site, SourceConfig, TargetConfig
from setl.channel.fields.field_descriptions import (
    CREDENTIAL,
    MYSQL_INSECURE_LOGIN,
    MYSQL_PUBLIC_KEY,
    MYSQL_SSL_CA,
    USER,
)
from setl.channel.fields.kafka_endpoints import KafkaSource, KafkaTarget
from setl.channel.fields.opensearch_endpoint import OpenSearchTarget
from setl.channel.fields.start_position import LoadStart, Word, start_error, start_kind
from setl.channel.text.problems import Path
from setl.channel.text.raw import Raw
from setl.channel.text.strict_model import StrictModel


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


_BinlogStart = Annotated[
    Word
    | Annotated[BinlogStart, Tag("file")]
    | Annotated[GtidStart, Tag("gtid")]
    | Annotated[LoadStart, Tag("load")],
    Discriminator(
        start_kind(file=BinlogStart, gtid=GtidStart, load=LoadStart),
        **start_error("latest, earliest, {load: true}, {file: …, offset: …} or {gtid: …}"),
    ),
]


class MysqlSource(SourceConfig):
    """A MySQL or MariaDB server, read by its binlog."""

    system: ClassVar[str] = "setl.systems.mysql.source_system:MysqlSourceSystem"
    reads_origin: ClassVar[bool] = True

    type: Literal["mysql"] = Field(description="MySQL or MariaDB.")
    host: Host = Field(description="Host name or address.")
    port: Port = Field(default=3306, description="TCP port.")
    user: Text = Field(description=USER)
    password: str = Field(default="", repr=False, description=CREDENTIAL)
    ssl_ca: str = Field(default="", description=MYSQL_SSL_CA)
    server_public_key: str = Field(default="", description=MYSQL_PUBLIC_KEY)
    insecure_login: bool = Field(default=False, description=MYSQL_INSECURE_LOGIN)
    server_id: int | None = Field(
        default=None,
        ge=1,
        le=(1 << 32) - 1,
        description="Replica id, unique among the source's replicas. Default: derived from the"
        " names of channel and pipeline.",
    )
    shared: bool = Field(
        default=False,
        description="Pipelines of a node with the same server and account share a binlog"
        " connection once they have reached the binlog's end. Not with `server_id`.",
    )
    heartbeat: float = Field(
        default=1.0,
        ge=0,
        le=3600,
        description="Seconds between heartbeats in retl.xdual, which show the lag of an idle"
        " source; 0 writes none.",
    )
    start: _BinlogStart = Field(
        default="latest",
        description="Where to start while there is no checkpoint: with a load of the existing"
        " rows, at the end or beginning of the binlog, at a position in it, or after GTIDs.",
    )

    @property
    @override
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    @override
    def codec(self) -> str:
        return "binlog"

    @property
    def origin(self) -> Database:
        """See `SourceConfig.origin`: this server itself."""
        return Database(
            host=self.host,
            port=self.port,
            user=self.user,
            password=self.password,
            ssl_ca=self.ssl_ca,
            server_public_key=self.server_public_key,
            insecure_login=self.insecure_login,
        )

    @property
    @override
    def loads_tables(self) -> bool:
        return isinstance(self.start, LoadStart)

    @property
    @override
    def starts_now(self) -> bool:
        return self.start == "latest"

    def from_anywhere(self) -> MysqlSource:
        """See `SourceConfig.from_anywhere`: servers purge the files that `start` may name."""
        return self.model_copy(update={"start": "latest"})


class MysqlTarget(TargetConfig):
    """A MySQL or MariaDB server as target."""

    system: ClassVar[str] = "setl.systems.mysql.target_system:MysqlTargetSystem"
    stores_checkpoints: ClassVar[bool] = True
    stores_fence: ClassVar[bool] = True

    type: Literal["mysql"] = Field(description="MySQL or MariaDB.")
    host: Host = Field(description="Host name or address.")
    port: Port = Field(default=3306, description="TCP port.")
    user: Text = Field(description=USER)
    password: str = Field(default="", repr=False, description=CREDENTIAL)
    ssl_ca: str = Field(default="", description=MYSQL_SSL_CA)
    server_public_key: str = Field(default="", description=MYSQL_PUBLIC_KEY)
    insecure_login: bool = Field(default=False, description=MYSQL_INSECURE_LOGIN)
    fence_timeout: Seconds = Field(
        default=5.0,
        description="Seconds that a take-over waits for a former leader's open transaction before"
        " it kills the connection.",
    )
    replicas: list[Broker] = Field(
        default=[],
        description="Replicas of this server, host:port, whose lag pauses table loads"
        " (load_limits: replica_lag). The same account is used.",
    )

    @property
    @override
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    @override
    def site(self) -> Site:
        return self.host, self.port


class ElasticsearchTarget(TargetConfig):
    """An Elasticsearch cluster as target."""

    system: ClassVar[str] = "setl.systems.elasticsearch.target_system:ElasticsearchTargetSystem"
    holds_documents: ClassVar[bool] = True
    url_schemes: ClassVar[Mapping[str, str]] = {
        "elasticsearch": "http",
        "http": "http",
        "https": "https",
    }

    type: Literal["elasticsearch"] = Field(description="Elasticsearch.")
    hosts: list[Url] = Field(min_length=1, description="URLs of its nodes, http or https.")
    user: str = Field(default="", description=USER)
    password: str = Field(default="", repr=False, description=CREDENTIAL)
    api_key: str = Field(
        default="", repr=False, description="API key, as ${NAME}, in place of an account."
    )
    ca_certs: str = Field(
        default="",
        description="File on the nodes with trusted certificate authorities. Default: the"
        " system's.",
    )
    request_timeout: Seconds = Field(
        default=30.0, description="Seconds to wait for an answer before a request counts as lost."
    )

    @property
    @override
    def address(self) -> str:
        return ",".join(self.hosts)

    @classmethod
    def rules(cls, raw: Raw) -> Iterable[tuple[Path, str]]:
        """One way to log in, complete."""
        if raw.get("api_key") and raw.get("user"):
            yield ("api_key",), "cannot be given together with `user`; choose one of them"
        if raw.get("password") and not raw.get("user"):
            yield ("user",), "is required where there is a password"


ENTRY_POINTS = "setl.targets"
"""Group of the entry points by which other packages bring targets of their own."""

SOURCES: tuple[type[SourceConfig], ...] = (MysqlSource, KafkaSource)
BUILT_IN_TARGETS: tuple[type[TargetConfig], ...] = (
    MysqlTarget,
    ElasticsearchTarget,
    OpenSearchTarget,
    DeltaTarget,
    KafkaTarget,
)
# Each is a class with a `type` that no other has.
TARGETS = (*BUILT_IN_TARGETS, *(point.load() for point in entry_points(group=ENTRY_POINTS)))

TYPES = frozenset(
    get_args(form.model_fields["type"].annotation)[0] for form in (*SOURCES, *TARGETS)
)
"""What stands as `type` of a source or a target."""

URL_SCHEMES = {
    scheme: (get_args(form.model_fields["type"].annotation)[0], spoken)
    for form in BUILT_IN_TARGETS
    for scheme, spoken in form.url_schemes.items()
}
"""The type that the scheme of a URL stands for, and how its servers are spoken to."""

_BY_TYPE = {get_args(form.model_fields["type"].annotation)[0]: form for form in TARGETS}


def takes_documents(target: Raw) -> bool:
    """Whether rows become documents in a target, as it stands in a channel file."""
    form = _BY_TYPE.get(str(target.get("type")))
    return form is not None and form.holds_documents


def takes_rows(target: Raw) -> bool:
    """Whether rows stay rows of tables in a target, as it stands in a channel file."""
    form = _BY_TYPE.get(str(target.get("type")))
    return form is not None and not form.holds_documents and not form.is_log


def stores_checkpoints(target: Raw) -> bool:
    """Whether a target can keep a checkpoint; True where its type is not known."""
    form = _BY_TYPE.get(str(target.get("type")))
    return form is None or form.stores_checkpoints


if TYPE_CHECKING:
    Source = SourceConfig
    Target = TargetConfig
else:
    Source = Annotated[Union[SOURCES], Field(discriminator="type")]  # noqa: UP007
    Target = Annotated[Union[TARGETS], Field(discriminator="type")]  # noqa: UP007
