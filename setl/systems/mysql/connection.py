"""Connects to a server, and translates its errors."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from ssl import SSLCertVerificationError
from typing import Any, Final, cast

import pymysql
from pymysql.connections import TEXT_TYPES, Connection
from pymysql.constants import SERVER_STATUS

from setl.errors import (
    ConfigurationError,
    DataError,
    LoginRefusedError,
    NodeNotReadyError,
    SetlError,
    TransientError,
    UntrustedServerError,
)
from setl.systems.mysql.login import (
    PRODUCT,
    FullExchangeWantedError,
    PlainConnection,
    guarded_ways,
    not_encrypted,
)
from setl.systems.tls_findings import stays_here

# Values leave and arrive as they are written in rows: times as UTC text, zero dates allowed,
# nothing truncated in silence, 0 not turned into the next AUTO_INCREMENT.
# What follows is a server's own default, and a server may be told to give sessions another: to end
# answers after some rows, to refuse large questions, to begin a transaction at each COMMIT or to
# end the connection there, to commit no single statement, to show rows that are not committed, or
# those of a former time, to write names without quotes, to hide a column that the binlog has, to
# say more of a table than it was made with, to put answers into a temporary table first, where
# MariaDB cuts digits off the text of numbers, or to end statements after a time: what takes longer
# would be begun again for ever.
SESSION = (
    "SET SESSION time_zone='+00:00', sql_mode='STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,"
    "ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION', innodb_lock_wait_timeout={lock_wait},"
    " lock_wait_timeout={table_wait}, autocommit={autocommit:d}, completion_type=0,"
    " sql_select_limit=18446744073709551615,"
    " sql_big_selects=1, sql_safe_updates=0, sql_auto_is_null=0, sql_quote_show_create=1,"
    " sql_buffer_result=0"
    # Only MariaDB reads the first comment; it skips the others.
    "/*M!100300 , tx_isolation='REPEATABLE-READ', system_versioning_asof=DEFAULT,"
    " max_statement_time=0 */"
    "/*!50720 , transaction_isolation='REPEATABLE-READ', max_execution_time=0 */"
    "/*!80030 , show_gipk_in_create_table_and_information_schema=ON,"
    " show_create_table_verbosity=OFF */"
)

_LONGEST_TABLE_WAIT = 31_536_000  # seconds; servers take no more

# Error numbers: https://mariadb.com/kb/en/mariadb-error-codes/ and
# https://dev.mysql.com/doc/mysql-errors/9.7/en/server-error-reference.html ; none of these is about
# what was asked for: they pass when it is tried again, or when somebody has made room.
_TRANSIENT = {
    1004: "a file cannot be made",
    1020: "a row has changed since it was read",
    1021: "the server's disk is full",
    1024: "reading a file failed",
    1026: "writing a file failed",
    1028: "sorting was interrupted",
    1030: "the storage engine failed",
    1037: "the server is out of memory",
    1038: "the server is out of memory for sorting",
    1040: "too many connections",
    1041: "the server is out of memory",
    1043: "the connection was not made",
    1047: "the node of the cluster is not ready",
    1053: "the server is shutting down",
    1114: "the table or the server's disk is full",
    1129: "the server blocks this machine after failed connections",
    1135: "the server cannot make a thread",
    1152: "the connection was aborted",
    1158: "reading failed",
    1159: "reading timed out",
    1160: "writing failed",
    1161: "writing timed out",
    1180: "the commit failed",
    1181: "the rollback failed",
    1184: "the connection was aborted",
    1203: "too many connections of this user",
    1205: "waiting for a lock took too long",
    1206: "too many locks",
    1213: "a deadlock",
    1223: "a lock of the connection conflicts with it",
    1226: "the account has used up what it may do",
    1290: "the server is read-only",
    1317: "the statement was interrupted",
    1412: "the table was changed meanwhile",
    1613: "the transaction took too long",
    1614: "a deadlock",
    1615: "the statement has to be prepared again",
    1637: "too many transactions",
    1689: "waiting for a lock was given up",
    1792: "transactions are read-only",
    1836: "the server is read-only",
    1878: "writing a temporary file failed",
    1927: "the connection was killed",
    1969: "the statement took too long",
    2002: "no connection",
    2003: "no connection",
    2006: "the connection was lost",
    2013: "the connection was lost",
    2055: "the connection was lost",
    3024: "the statement took too long",
    3032: "the server is in offline mode",
    3100: "the server is busy replicating",
    3101: "the group of servers rolled the transaction back",
    3168: "the server is not available",
    3169: "the connection was killed",
    3572: "a lock is held",
    4031: "the connection was idle for too long",
}
# Of errors that only name the system's number, those of a full disk, quota or file.
_FULL = re.compile(r"(?:errno|errcode|error):? (?:28|122|135)\b", re.IGNORECASE)
_FILE_ERRORS = {3, 20, 1005, 1006, 1016, 3185}
_FULL_ERRORS = {1021, 1114}
_NO_ROOM: Final = (
    "Mostly the server's disk is full: once there is space, a pipeline continues automatically"
)
_CERTIFICATE_EXPIRED = 10  # X509_V_ERR_CERT_HAS_EXPIRED
_UNREADABLE = (FileNotFoundError, PermissionError, IsADirectoryError)  # of `ssl_ca`
# A proxy between has these: 9001 of ProxySQL if no server takes the connection in time, 9501 of
# Amazon's if none is free, and their like.
_OF_A_PROXY = range(9000, 10_000)
_NO_SUCH_LOGIN = 2059
_NOT_SUPPORTED = 1235
_PLAIN_KEY = (
    "The target table has a key WITHOUT OVERLAPS, which takes no upserts: give it a plain key over"
    " the same columns"
)
_CONFIGURATION = {1044, 1049, 1054, 1142, 1143, 1146, 1227, 1370, _NO_SUCH_LOGIN}
_MISSING: Final = "`setl check` names what is missing on the server"
_LOGINS: Final = (
    "Let the account log in with mysql_native_password, sha256_password, caching_sha2_password, or"
    " ed25519 of MariaDB"
)
# Of a login: what has to be done so that it is taken, by the number of the refusal.
_WRONG = (
    "Correct the password at the server, or the environment variable that the channel file names; a"
    " node reads its environment when it starts"
)
_EXPIRED = "Give the account another password with ALTER USER"
_LOCKED = "Unlock the account with ALTER USER … ACCOUNT UNLOCK, or FLUSH PRIVILEGES on MariaDB"
_REFUSED = {
    1045: _WRONG,
    1130: "Let the account log in from this node's address",
    1698: "Let the account log in with a password",
    1820: _EXPIRED,
    1862: _EXPIRED,
    3118: _LOCKED,
    3955: _LOCKED,  # after failed logins, as 4150 of MariaDB
    4150: _LOCKED,
    4151: _LOCKED,
}
_SIGNALLED = 1644
_TRIGGER: Final = (
    "A trigger of the table refuses the row with SIGNAL: let it pass, or correct the row at the"
    " source; then `setl start`"
)
_ASIDE: Final = "With `faulty_rows: dead_letter` such rows are put aside"
UNFIT: Final = (
    "Let the target's column hold what the source's does (compare SHOW CREATE TABLE), and start"
    f" the pipeline again. {_ASIDE}"
)
"""What to do about a value that a column cannot hold."""

_OF_AN_INDEX: Final = (
    "The value does not fit an index over an expression (SHOW CREATE TABLE names it): drop the"
    f" index at the target, and start the pipeline again. {_ASIDE}"
)
_NO_VECTOR: Final = (
    "ALTER TABLE … ADD … VECTOR NOT NULL leaves rows that are there without a vector, which no"
    " statement can write. Give them one at the source (UPDATE), set `faulty_rows: dead_letter` for"
    " the pipeline, and start it again: the row is put aside, and its later change arrives"
)
_HINTS_OF_VALUES: Final = {
    _SIGNALLED: _TRIGGER,
    **dict.fromkeys((1264, 1265, 1292, 1366, 1367, 1406), UNFIT),
    **dict.fromkeys((3751, 3752, 3903, 3904, 3906, 3907, 3908), _OF_AN_INDEX),
    6136: _NO_VECTOR,
}
_HINTS = {**_REFUSED, _NO_SUCH_LOGIN: _LOGINS, _NOT_SUPPORTED: _PLAIN_KEY}


@dataclass(frozen=True, slots=True)
class MysqlEndpoint:
    """Where a server is and as whom to use it. Picklable: it travels to Spark tasks.

    Attributes:
        host: name or address.
        port: TCP port.
        user: account name.
        password: its password; never shown.
        connect_timeout: seconds to wait for a connection.
        read_timeout: seconds to wait for an answer before the connection counts as lost.
        ssl_ca: file with the authorities that the server's certificate must come from; with ""
            a connection has TLS if the server offers it, and nobody looks at the certificate.
        server_public_key: file with the server's RSA key, for which a password may be encrypted.
        insecure_login: whether whoever answers may have the password.
    """

    host: str
    port: int = 3306
    user: str = ""
    password: str = field(default="", repr=False)
    connect_timeout: float = 5.0
    read_timeout: float = 60.0
    ssl_ca: str = ""
    server_public_key: str = ""
    insecure_login: bool = False

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def connect(
    endpoint: MysqlEndpoint,
    *,
    autocommit: bool = True,
    lock_wait: int = 10,
    table_wait: int | None = None,
    kind: type[PlainConnection] | None = None,
    **options: Any,
) -> Connection[Any]:
    """Open a connection whose session is set up as setl needs it.

    Args:
        endpoint: the server.
        autocommit: False to open transactions by hand.
        lock_wait: seconds a statement waits for a row lock.
        table_wait: seconds it waits for a table's lock; None for a little less than for an answer.
        kind: of connection; None for one that can what all can.
        options: further keyword arguments of `pymysql.connect`.

    Raises:
        SetlError: of the kind that `translate` gives.
    """
    # A server does not notice that nobody waits for the answer any more: while tables are locked,
    # each statement that is given up would keep a connection from others.
    table_wait = table_wait or min(max(1, int(endpoint.read_timeout) - 1), _LONGEST_TABLE_WAIT)
    options = {
        "host": endpoint.host,
        "port": endpoint.port,
        "user": endpoint.user,
        "password": endpoint.password,
        "charset": "utf8mb4",
        "autocommit": autocommit,
        "connect_timeout": max(1, int(endpoint.connect_timeout)),
        # Also how long the server's greeting is waited for, which a server that hangs does not
        # send although its machine has taken the connection.
        "read_timeout": min(endpoint.connect_timeout, endpoint.read_timeout),
        "write_timeout": endpoint.read_timeout,
        "init_command": SESSION.format(
            lock_wait=int(lock_wait), table_wait=table_wait, autocommit=autocommit
        ),
        **options,
    }
    with _logging_in(endpoint):
        connection = _logged_in(endpoint, kind or PlainConnection, options)
        if connection.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS:
            # The server's `init_connect` has begun one, in which nothing would be committed.
            connection.rollback()
    # pymysql has no way of its own to give the two different limits.
    vars(connection)["_read_timeout"] = endpoint.read_timeout
    return connection


@contextmanager
def waiting(connection: Connection[Any], seconds: float) -> Generator[None]:
    """Have a connection wait so long for answers inside the block, and as before afterwards."""
    before = vars(connection)["_read_timeout"]
    vars(connection)["_read_timeout"] = seconds
    try:
        yield
    finally:
        vars(connection)["_read_timeout"] = before


def _logged_in(
    endpoint: MysqlEndpoint, kind: type[PlainConnection], options: dict[str, Any]
) -> Any:
    if endpoint.ssl_ca:
        connection: Any = kind(ssl={"ca": endpoint.ssl_ca}, **options)
        if not connection.encrypted:  # no release of the library may take this back
            connection.close()
            raise not_encrypted()
        return connection
    if endpoint.insecure_login:
        return kind(**options)
    key = _public_key(endpoint)
    options["auth_plugin_map"] = guarded_ways(key, stays_here=stays_here(endpoint.host))
    try:
        return kind(**options)
    except FullExchangeWantedError:
        PlainConnection(ssl_disabled=True, **options).close()  # and the server remembers it
        return kind(**options)


def _public_key(endpoint: MysqlEndpoint) -> bytes:
    try:
        return Path(endpoint.server_public_key).read_bytes() if endpoint.server_public_key else b""
    except OSError as error:
        raise NodeNotReadyError(
            f"MySQL: {error.strerror or error}", hint="Check the file `server_public_key`"
        ) from error


@contextmanager
def _logging_in(endpoint: MysqlEndpoint) -> Generator[None]:
    """As `translating`; and no error is about data, since there are none yet."""
    try:
        with translating(endpoint):
            yield
    except ConfigurationError as error:
        error.at(server=endpoint)
        raise
    except FullExchangeWantedError as error:
        raise ConfigurationError(
            "MySQL: the server does not remember the password that it was given",
            hint="Give `ssl_ca`",
            server=endpoint,
        ) from error
    except DataError as error:
        hint = "A server that asks for TLS needs `ssl_ca`"
        raise ConfigurationError(error.message, hint=hint, **error.where).coded(
            error.code
        ) from error
    except RuntimeError as error:  # pymysql asks for another package
        raise NodeNotReadyError(
            f"MySQL: {error}",
            hint="Install it on this node, or let the account log in in another way",
            server=endpoint,
        ) from error


def is_mariadb(connection: Connection[Any]) -> bool:
    """Whether the server is a MariaDB; anything else is a MySQL."""
    return "mariadb" in str(cast("Any", connection).get_server_info()).lower()


# pymysql does not know VECTOR of MySQL 9 and would read its bytes as ASCII. Among these types the
# collation decides, which is ``binary``.
_VECTOR: Final = 242
TEXT_TYPES.add(_VECTOR)


@contextmanager
def translating(endpoint: MysqlEndpoint) -> Generator[None]:
    """Turn pymysql's errors inside the block into setl's, with the server's address."""
    try:
        yield
    except (pymysql.MySQLError, OSError) as error:
        raise translate(error).at(server=endpoint) from error
    except UnicodeDecodeError as error:
        # Servers keep half a surrogate pair in UCS2, some in UTF32, too, and send it as it is.
        shown = error.object[max(0, error.start - 8) : error.end + 8].hex(" ")
        raise DataError(
            f"MySQL: a value has a character that UTF-8 cannot hold, near the bytes {shown}",
            hint="Fix the value at this server; it is in a column of UCS2, UTF16 or UTF32",
        ).at(server=endpoint) from error


def error_number(error: BaseException | None) -> int | None:
    """The number of a pymysql error, 0 for one without; None for any other error."""
    if not isinstance(error, pymysql.MySQLError):
        return None
    return error.args[0] if error.args and isinstance(error.args[0], int) else 0


def _is_transient(number: int, text: str) -> bool:
    """Whether the server may do it later, by its error's number and text."""
    full = number in _FILE_ERRORS and bool(_FULL.search(text))
    return full or number in _TRANSIENT or number in _OF_A_PROXY


CUT_OFF = {
    1053,  # the server is shutting down
    1927,  # MariaDB: the connection was killed
    2006,  # the server has gone away
    2013,  # the connection was lost during a query
    2055,  # the same, with the error of the system
    3169,  # the connection was killed
    4031,  # it was idle for too long
}
"""Errors that say that the connection has ended."""


def was_cut_off(error: BaseException | None) -> bool:
    """Whether an error of pymysql or of a socket says that the connection has ended.

    Not if the server did not answer in time: another connection would wait as long.
    """
    if error is None or isinstance(error, TimeoutError):
        return False
    if isinstance(error.__context__, TimeoutError):
        return False
    if isinstance(error, (OSError, pymysql.err.InterfaceError)):
        return True
    return error_number(error) in CUT_OFF


def translate(error: BaseException) -> SetlError:
    """The kind of setl error that a pymysql or socket error is."""
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    return _typed(error, number).coded(number)


def _typed(error: BaseException, number: int) -> SetlError:
    text = str(error.args[1]) if len(error.args) > 1 else str(error)
    cause = getattr(error, "original_exception", error)
    product = str(getattr(error, PRODUCT, "MySQL"))
    if isinstance(cause, _UNREADABLE):
        return NodeNotReadyError(f"MySQL: TLS fails: {text}", hint="Check the file `ssl_ca`")
    if isinstance(cause, SSLCertVerificationError):
        expired = getattr(cause, "verify_code", 0) == _CERTIFICATE_EXPIRED
        return UntrustedServerError(
            f"MySQL: TLS fails: {text}",
            hint="Renew the certificate, of the server or of its authority"
            if expired
            else "Check the file `ssl_ca`, and that the server's certificate names its address",
        )
    if _is_transient(number, text) or isinstance(error, (OSError, pymysql.err.InterfaceError)):
        hint = _NO_ROOM if number in _FULL_ERRORS or _FULL.search(text) else ""
        reported = f"{product}: {text or _TRANSIENT.get(number, 'no answer')} [{number}]"
        return TransientError(reported, hint=hint)
    overlapless = number == _NOT_SUPPORTED and "OVERLAPS" in text
    if overlapless or number in _REFUSED or number in _CONFIGURATION:
        kind = LoginRefusedError if number in _REFUSED else ConfigurationError
        return kind(f"{product}: {text} [{number}]", hint=_HINTS.get(number, _MISSING))
    if isinstance(error, pymysql.MySQLError):
        of_value = isinstance(error, (pymysql.err.DataError, pymysql.err.IntegrityError))
        refuses = f"{product} refuses a value" if of_value else product
        hint = _HINTS_OF_VALUES.get(number, "")
        return DataError(f"{refuses}: {text} [{number}]", hint=hint)
    return TransientError(f"MySQL: {text}")
