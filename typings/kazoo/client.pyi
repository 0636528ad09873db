from collections.abc import Callable, Iterable, Mapping, Sequence
from logging import Logger
from threading import Event
from typing import Any, Literal, overload

from kazoo.handlers.threading import AsyncResult, SequentialThreadingHandler
from kazoo.protocol.states import WatchedEvent, ZnodeStat
from kazoo.security import ACL

_Watch = Callable[[WatchedEvent], object]

class KazooClient:
    state: str
    last_zxid: int  # the latest that a server told; sent when connecting
    _session_timeout: int  # milliseconds that were asked for; read by tests only
    def __init__(
        self,
        hosts: str = ...,
        timeout: float = ...,
        client_id: tuple[int, bytes] | None = ...,
        handler: SequentialThreadingHandler | None = ...,
        default_acl: Sequence[ACL] | None = ...,
        auth_data: Iterable[tuple[str, str]] | None = ...,
        sasl_options: Mapping[str, str] | None = ...,
        read_only: bool | None = ...,
        randomize_hosts: bool = ...,
        connection_retry: Mapping[str, float] | None = ...,
        command_retry: Mapping[str, float] | None = ...,
        logger: Logger | None = ...,
        keyfile: str | None = ...,
        keyfile_password: str | None = ...,
        certfile: str | None = ...,
        ca: str | None = ...,
        use_ssl: bool = ...,
        verify_certs: bool = ...,
        check_hostname: bool = ...,
    ) -> None: ...
    hosts: list[tuple[str, int]]
    @property
    def client_id(self) -> tuple[int, bytes] | None: ...
    @property
    def client_state(self) -> str: ...
    @property
    def connected(self) -> bool: ...
    def add_listener(self, listener: Callable[[str], object]) -> None: ...
    def start(self, timeout: float = ...) -> None: ...
    def start_async(self) -> Event: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...
    def set_hosts(self, hosts: str) -> None: ...
    def server_version(self, retries: int = ...) -> tuple[int, ...]: ...

    # Requests that return at once.
    def create_async(
        self,
        path: str,
        value: bytes = ...,
        acl: Sequence[ACL] | None = ...,
        ephemeral: bool = ...,
        sequence: bool = ...,
        makepath: bool = ...,
        include_data: bool = ...,
    ) -> AsyncResult[tuple[str, ZnodeStat]]: ...
    def exists_async(
        self, path: str, watch: _Watch | None = ...
    ) -> AsyncResult[ZnodeStat | None]: ...
    def get_async(
        self, path: str, watch: _Watch | None = ...
    ) -> AsyncResult[tuple[bytes | None, ZnodeStat]]: ...
    def get_children_async(
        self, path: str, watch: _Watch | None = ...
    ) -> AsyncResult[list[str]]: ...
    def set_async(self, path: str, value: bytes, version: int = ...) -> AsyncResult[ZnodeStat]: ...
    def delete_async(
        self, path: str, version: int = ..., recursive: bool = ...
    ) -> AsyncResult[bool]: ...
    def get_acls_async(self, path: str) -> AsyncResult[tuple[list[ACL], ZnodeStat]]: ...
    def sync_async(self, path: str) -> AsyncResult[str]: ...

    # Requests that wait, for tests and tools.
    @overload
    def create(
        self,
        path: str,
        value: bytes = ...,
        acl: Sequence[ACL] | None = ...,
        ephemeral: bool = ...,
        sequence: bool = ...,
        makepath: bool = ...,
        include_data: Literal[False] = ...,
    ) -> str: ...
    @overload
    def create(
        self,
        path: str,
        value: bytes = ...,
        acl: Sequence[ACL] | None = ...,
        ephemeral: bool = ...,
        sequence: bool = ...,
        makepath: bool = ...,
        *,
        include_data: Literal[True],
    ) -> tuple[str, ZnodeStat]: ...
    def ensure_path(self, path: str, acl: Sequence[ACL] | None = ...) -> Any: ...
    def exists(self, path: str, watch: _Watch | None = ...) -> ZnodeStat | None: ...
    def get(self, path: str, watch: _Watch | None = ...) -> tuple[bytes, ZnodeStat]: ...
    def get_children(self, path: str, watch: _Watch | None = ...) -> list[str]: ...
    def get_acls(self, path: str) -> tuple[list[ACL], ZnodeStat]: ...
    def set_acls(self, path: str, acls: Sequence[ACL], version: int = ...) -> ZnodeStat: ...
    def set(self, path: str, value: bytes, version: int = ...) -> ZnodeStat: ...
    def delete(self, path: str, version: int = ..., recursive: bool = ...) -> bool | None: ...
