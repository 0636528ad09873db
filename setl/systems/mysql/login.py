"""Logging in without giving the password to whoever answers in a server's place.

The server chooses how a client proves who it is, and no client sees whether it is the right server
until TLS has verified it. With `mysql_native_password`, `client_ed25519` and the short exchange of
`caching_sha2_password` the server gets a proof and no password. The others send the password
itself: as it is, or encrypted for a key that the server names. Without verified TLS, setl takes
part in those only where the key was given beforehand, or the channel file accepts the risk.

Sources: https://dev.mysql.com/doc/dev/mysql-server/latest/page_caching_sha2_authentication_exchanges.html
and https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase.html .
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from ssl import CERT_NONE, PROTOCOL_TLS_CLIENT, SSLContext, SSLSocket
from typing import Any, Final, Never

from pymysql import _auth
from pymysql.connections import Connection
from pymysql.constants import CLIENT, CR
from pymysql.err import MySQLError

from setl.errors import ConfigurationError, UntrustedServerError

Ways = Mapping[str, Callable[[Any], Any]]
"""What answers for us, by the name of the way to log in: `auth_plugin_map` of pymysql."""

_HINT: Final = (
    "Give `ssl_ca`, so that the server is verified. Or give `server_public_key`; or accept that"
    " whoever answers at this address gets the password: `insecure_login: true`"
)
_SHORT_EXCHANGE_WORKED, _FULL_EXCHANGE_WANTED = 3, 4
_FROM_SHA256 = "mysql_native_password"


class FullExchangeWantedError(Exception):
    """The server wants the password over a connection whose TLS nobody has verified.

    It would take the password only as it is there. It takes it encrypted for its key over a
    connection without TLS, and remembers it for the short exchange of later connections.
    """


def guarded_ways(public_key: bytes, *, stays_here: bool) -> Ways:
    """How to answer a server that is not verified.

    Args:
        public_key: the server's own RSA key as PEM, b"" if it is not known.
        stays_here: whether the connection does not leave this machine: then a password may be
            encrypted for whatever key the server names.
    """
    # A hash of 8 bytes that `mysql_old_password` sends is as good as the password.
    plain: Ways = dict.fromkeys(("mysql_clear_password", "dialog", "mysql_old_password"), _Refused)
    if stays_here and not public_key:
        return plain
    return {
        **plain,
        "sha256_password": partial(_Sha256, public_key=public_key),
        "caching_sha2_password": partial(_CachingSha2, public_key=public_key),
    }


class _Refused:
    """A way to log in that is not taken; pymysql asks it for the answer."""

    def __init__(self, _: object) -> None:
        pass

    def authenticate(self, _: object) -> Never:
        """Refuse."""
        raise _refusal()


class _Sha256:
    """`sha256_password`: the password, encrypted for the key that we know."""

    def __init__(self, connection: Any, *, public_key: bytes) -> None:
        self._connection, self._key = connection, public_key

    def authenticate(self, packet: Any) -> Any:
        """Answer the server's request to switch to this; nothing else is expected."""
        secure: bool = self._connection._secure  # noqa: SLF001
        if not self._key or secure or not packet.is_auth_switch_request():
            raise _refusal()
        return _sent_encrypted(self._connection, _salt(packet), self._key)


class _CachingSha2:
    """`caching_sha2_password`: the short exchange; the full one with the key that we know."""

    def __init__(self, connection: Any, *, public_key: bytes) -> None:
        self._connection, self._key = connection, public_key

    def authenticate(self, packet: Any) -> Any:
        """Answer the server's request to switch to this, or its verdict on the proof."""
        connection = self._connection
        if packet.is_auth_switch_request():
            connection.salt = _salt(packet)
            proof = _auth.scramble_caching_sha2(connection.password, connection.salt)
            packet = _exchanged(connection, proof)
        if not packet.is_extra_auth_data():
            return packet
        packet.advance(1)
        verdict = packet.read_uint8()
        if verdict == _SHORT_EXCHANGE_WORKED:
            return _checked(connection)
        if verdict != _FULL_EXCHANGE_WANTED or not self._key:
            raise _refusal()
        if connection._secure:  # noqa: SLF001
            raise FullExchangeWantedError
        return _sent_encrypted(connection, connection.salt, self._key)


def not_encrypted() -> UntrustedServerError:
    """The connection is to have verified TLS, and has none."""
    return UntrustedServerError(
        "MySQL: TLS fails: the server does not offer it",
        hint="Turn TLS on at the server. If it is on, somebody between takes the offer away",
    )


def _refusal() -> ConfigurationError:
    return ConfigurationError(
        "MySQL: the server asks for the password itself, and nothing shows that it is the right"
        f" server [{CR.CR_AUTH_PLUGIN_CANNOT_LOAD}]",
        hint=_HINT,
    )


def _salt(packet: Any) -> bytes:
    """What the server wants mixed with the password, after the name of the way to log in."""
    return packet.read_all().removesuffix(b"\0")


def _sent_encrypted(connection: Any, salt: bytes, public_key: bytes) -> Any:
    try:
        sealed = _auth.sha2_rsa_encrypt(connection.password, salt, public_key)
    except ValueError as error:
        raise ConfigurationError(
            "MySQL: `server_public_key` is no RSA key in PEM",
            hint="SHOW STATUS LIKE 'Caching_sha2_password_rsa_public_key' at the server shows it",
        ) from error
    return _exchanged(connection, sealed)


def _exchanged(connection: Any, data: bytes) -> Any:
    connection.write_packet(data)
    return _checked(connection)


def _checked(connection: Any) -> Any:
    packet = connection._read_packet()  # noqa: SLF001
    packet.check_error()
    return packet


_Base: Final[Any] = Connection  # its stubs do not tell what is overridden below


PRODUCT: Final = "setl_product"
"""Attribute of an error of pymysql: what the server is, where it is no MySQL."""


class PlainConnection(_Base):
    """A connection as setl opens it: by ways to log in, and TLS, that it was told to use.

    It does not read the system's certificates where nothing is compared to them. pymysql does so
    each time, and it costs more than the connection itself (20 ms). A pipeline opens a dozen when
    it takes over.
    """

    _verifies = False  # what holds where TLS is off, and no context is made

    def _create_ssl_ctx(self, sslp: dict[str, Any] | SSLContext) -> SSLContext:
        self._verifies = bool(sslp)
        return _Base._create_ssl_ctx(self, sslp) if sslp else _unverified()  # noqa: SLF001

    def _request_authentication(self) -> None:
        if self._verifies and not self.server_capabilities & CLIENT.SSL:
            # Nothing has been sent yet: somebody between may have taken the offer out.
            raise not_encrypted()
        if self._auth_plugin_name == "sha256_password" and not self._verifies:
            # pymysql would send the password before anybody is asked. The server switches to
            # whatever the account needs.
            self._auth_plugin_name = _FROM_SHA256
        _Base._request_authentication(self)  # noqa: SLF001

    def _read_query_result(self, unbuffered: bool = False) -> int:  # noqa: FBT001, FBT002
        try:
            return _Base._read_query_result(self, unbuffered)  # noqa: SLF001
        except MySQLError as error:
            # The server's number and text do not tell whose they are.
            if "mariadb" in self.server_version.lower():
                vars(error)[PRODUCT] = "MariaDB"
            raise

    @property
    def encrypted(self) -> bool:
        """Whether TLS is on."""
        return isinstance(self._sock, SSLSocket)


@cache
def _unverified() -> SSLContext:
    """For connections whose certificate nobody looks at."""
    context = SSLContext(PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = CERT_NONE
    return context
