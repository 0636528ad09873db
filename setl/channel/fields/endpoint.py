"""What every source and target of a channel file has, whatever system it is of.

A class describes each; `system` of the class names what works with it. It is a name and no
import, so that channel files can be read, checked and routed without any system's client.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from setl.channel.fields.checks import Host, Port, Text
from setl.channel.fields.field_descriptions import (
    CREDENTIAL,
    MYSQL_INSECURE_LOGIN,
    MYSQL_PUBLIC_KEY,
    MYSQL_SSL_CA,
    USER,
)
from setl.channel.text.strict_model import StrictModel

Site = tuple[str, int]
"""Host and port of a database, as written: a source and a target of one site are one database."""


class Database(StrictModel):
    """A connection to a MySQL or MariaDB server."""

    host: Host = Field(description="Host name or address.")
    port: Port = Field(default=3306, description="TCP port.")
    user: Text = Field(description=USER)
    password: str = Field(default="", repr=False, description=CREDENTIAL)
    ssl_ca: str = Field(default="", description=MYSQL_SSL_CA)
    server_public_key: str = Field(default="", description=MYSQL_PUBLIC_KEY)
    insecure_login: bool = Field(default=False, description=MYSQL_INSECURE_LOGIN)


class SourceConfig(StrictModel):
    """Where the changes of a pipeline come from.

    Attributes:
        system: ``module:function`` that makes the `setl.systems.port.SourceSystem` of it.
        reads_origin: whether changes are read from `origin` itself.
        has_signs: whether its records say which numbers have no sign.
    """

    system: ClassVar[str]
    reads_origin: ClassVar[bool] = False
    has_signs: ClassVar[bool] = True

    @property
    def address(self) -> str:
        """Where it is, for people; without account and password."""
        raise NotImplementedError

    @property
    def codec(self) -> str:
        """The codec that its rows need; see `setl.transform.work.codec_named`."""
        raise NotImplementedError

    @property
    def origin(self) -> Database | None:
        """The database whose changes it delivers, None if the channel file does not say."""
        return None

    @property
    def partition_count(self) -> int:
        """Partitions that one pipeline stands for; 0 where it stands for itself."""
        return 0

    @property
    def partition_numbers(self) -> tuple[int, ...]:
        """Which partitions of a topic it is of; empty for all, or where there are none."""
        return ()

    @property
    def loads_tables(self) -> bool:
        """Whether a first start loads the rows that are there."""
        return False

    @property
    def starts_now(self) -> bool:
        """Whether a first start begins at the end of the stream, and loads nothing."""
        return False

    def from_anywhere(self) -> SourceConfig:
        """The same, with a `start` that never goes, if that of this one may go some day."""
        return self


class TargetConfig(StrictModel):
    """Where the changes of a pipeline go.

    Attributes:
        system: ``module:function`` that makes the `setl.systems.port.TargetSystem` of it.
        holds_documents: whether rows become documents of an index, which has no schema above it.
        stores_checkpoints: whether it can keep a checkpoint beside its rows.
        stores_fence: whether it has its fence beside its rows, so that both are set back together.
        is_log: whether it takes the changes themselves, from a relay, and no rows.
        url_schemes: schemes by which a URL names one with `hosts`, and how these are spoken to.
    """

    system: ClassVar[str]
    holds_documents: ClassVar[bool] = False
    stores_checkpoints: ClassVar[bool] = False
    stores_fence: ClassVar[bool] = False
    is_log: ClassVar[bool] = False
    url_schemes: ClassVar[Mapping[str, str]] = {}

    @property
    def address(self) -> str:
        """Where it is, for people; without account and password."""
        raise NotImplementedError

    def as_source(self) -> SourceConfig | None:
        """A log as a source of what is written there, None for anything else."""
        return None

    @property
    def site(self) -> Site | None:
        """The database that it is, if it is one that a source can read."""
        return None
