"""Reads a server's URL, as a person types it, into the endpoint of a channel file. Pure.

A command line is in the process list and in the shell's history, so a URL never has a password in
it: at most the reference to the variable that has it, ``mysql://retl:${SHOP_PASSWORD}@db1/shop``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from setl.channel.fields.endpoints import URL_SCHEMES
from setl.errors import ConfigurationError

_MYSQL = ("mysql", "mariadb")
_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_FORMS = " or ".join(
    [
        "Write mysql://user@host:3306/schema",
        *dict.fromkeys(f"{type_}://host:9200" for type_, _ in URL_SCHEMES.values()),
    ]
)


@dataclass(frozen=True, slots=True)
class ServerUrl:
    """A server as a URL names it.

    Attributes:
        fields: the endpoint's fields, but for its password.
        schemas: the databases that the path names; empty for all.
        password: the reference to its password, "" if the URL has none.
    """

    fields: Mapping[str, Any]
    schemas: tuple[str, ...] = ()
    password: str = ""

    @property
    def type(self) -> str:
        """The endpoint's type."""
        return str(self.fields["type"])

    @property
    def address(self) -> str:
        """Where the server is, for messages."""
        hosts = self.fields.get("hosts")
        return hosts[0] if hosts else f"{self.fields['host']}:{self.fields['port']}"


def read_server_url(text: str, option: str) -> ServerUrl:
    """Understand a URL.

    Args:
        text: the URL.
        option: the option that gave it, for messages.

    Raises:
        ConfigurationError: it is none, names a system that setl does not know, or has a password.
            What it says never quotes the part before the host.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:  # whose text may quote a password that has a / in it
        raise ConfigurationError(f"{option} is no URL", hint=_FORMS) from None
    scheme = parts.scheme.lower()
    if scheme not in _MYSQL and scheme not in URL_SCHEMES:
        what = f"begins with {scheme}://" if scheme else "has no scheme"
        raise ConfigurationError(f"{option} {what}, which names no system", hint=_FORMS)
    if not parts.hostname:
        raise ConfigurationError(f"{option} names no host", hint=_FORMS)
    if parts.fragment:
        hint = "Write %23 for a # inside a name"
        raise ConfigurationError(f"{option} has a # in it, which ends a URL", hint=hint)
    password = unquote(parts.password or "")
    if password and not _REFERENCE.fullmatch(password):
        raise ConfigurationError(
            f"{option} has a password in it, which the process list and the shell's history show",
            hint="Leave it out and put it into the environment variable that is asked for; or name"
            " a variable, in single quotes: 'mysql://user:${NAME}@host/schema'."
            " Change the password, if others use this machine",
        )
    more = dict(_options(parts, option))
    if scheme in _MYSQL:
        return ServerUrl(_mysql(parts, port, option) | more, _schemas(parts.path), password)
    return ServerUrl(_search(parts, port) | more, (), password)


def _mysql(parts: SplitResult, port: int | None, option: str) -> dict[str, Any]:
    if not parts.username:
        hint = "Write mysql://user@host:port/schema"
        raise ConfigurationError(f"{option} names no account", hint=hint)
    return {
        "type": "mysql",
        "host": parts.hostname,
        "port": port or 3306,
        "user": unquote(parts.username),
    }


def _search(parts: SplitResult, port: int | None) -> dict[str, Any]:
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    type_, scheme = URL_SCHEMES[parts.scheme.lower()]
    found: dict[str, Any] = {
        "type": type_,
        "hosts": [f"{scheme}://{host}:{port or 9200}{parts.path.rstrip('/')}"],
    }
    return {**found, "user": unquote(parts.username)} if parts.username else found


def _schemas(path: str) -> tuple[str, ...]:
    return tuple(unquote(name) for name in path.strip("/").split(",") if name)


def _options(parts: SplitResult, option: str) -> list[tuple[str, Any]]:
    """What follows a ``?``: further fields of the endpoint, as ``ssl_ca=/etc/ca.pem``."""
    found: list[tuple[str, Any]] = []
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if "password" in name or "key" in name.split("_"):
            raise ConfigurationError(
                f"{option} gives {name}", hint="Write it into the channel file, as ${NAME}"
            )
        found.append((name, {"true": True, "false": False}.get(value, value)))
    return found
