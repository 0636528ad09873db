"""Credentials and TLS for ZooKeeper, from the environment: secrets have no place on a command line.

All commands read the same variables, none of which has to be set:

    SETL_ZOOKEEPER_DIGEST          user:password of ZooKeeper's digest scheme
    SETL_ZOOKEEPER_SASL            user:password of a SASL login (DIGEST-MD5)
    SETL_ZOOKEEPER_TLS             yes: speak TLS; needed only if none of the next four is set
    SETL_ZOOKEEPER_CA              PEM file with the authorities that sign servers' certificates
    SETL_ZOOKEEPER_CERTIFICATE     PEM file with this side's certificate
    SETL_ZOOKEEPER_KEY             PEM file with its private key
    SETL_ZOOKEEPER_KEY_PASSWORD    the password of that file
    SETL_ZOOKEEPER_CHECK_HOSTNAME  no: a server's certificate may be for another host
"""

from __future__ import annotations

from collections.abc import Mapping

from arbiter.access import Access, Tls
from arbiter.errors import Invalid
from setl.counting import count
from setl.errors import ConfigurationError
from setl.systems.tls_findings import stays_here

_PREFIX = "SETL_ZOOKEEPER_"
_YES, _NO = ("yes", "true", "on", "1"), ("no", "false", "off", "0")


def zookeeper_access(environment: Mapping[str, str]) -> Access:
    """What the environment says, once its files have been looked at.

    Raises:
        ConfigurationError: variables contradict each other or make no sense, with all that is
            wrong; or a file cannot be used.
    """
    access = read_access(environment)
    if access.tls is not None:
        from arbiter.session.tls import client_context  # noqa: PLC0415 - TLS is rarely asked for

        try:
            client_context(access.tls)
        except Invalid as error:
            variables = f"{_PREFIX}CA, _CERTIFICATE, _KEY and _KEY_PASSWORD name the files"
            raise ConfigurationError(f"TLS with ZooKeeper: {error} ({variables})") from error
    return access


def read_access(environment: Mapping[str, str]) -> Access:
    """What the environment says; looks at nothing else.

    Raises:
        ConfigurationError: all that is wrong, a line for each; no value of a variable is shown.
    """
    reader = _Reader(environment)
    tls = reader.tls()
    digest, sasl = reader.login("DIGEST"), reader.login("SASL")
    if any(letter in sasl.partition(":")[0] for letter in "/@"):
        # The server takes such names for Kerberos principals and makes other names of them.
        reader.wrong("SASL", "has a / or @ in the user's name")
    if reader.mistakes:
        head = f"the environment has {count(len(reader.mistakes), 'mistake')}:"
        raise ConfigurationError("\n".join([head, *reader.mistakes]))
    user, _, password = sasl.partition(":")
    login = {"mechanism": "DIGEST-MD5", "username": user, "password": password}
    return Access(digest=digest, sasl=login if sasl else {}, tls=tls)


def weaknesses(access: Access, zookeeper: str) -> list[str]:
    """What somebody else in the network can do to ZooKeeper, and so to all channels.

    Nothing is said of servers on this machine.

    Args:
        access: how this process logs in.
        zookeeper: the servers, ``host:port,host:port``.
    """
    # Late, since it imports the client, which help and most refusals do without.
    from arbiter.servers import servers_of  # noqa: PLC0415

    try:
        hosts = [host for host, _ in servers_of(zookeeper)]
    except Invalid:
        return []  # told of where it is connected to
    if all(stays_here(host) for host in hosts):
        return []
    found: list[str] = []
    if not (access.digest or access.sasl):
        found.append(
            "no login with ZooKeeper: whoever reaches it can lead, stop and redefine channels, and"
            f" so read and change their data; set {_PREFIX}DIGEST or {_PREFIX}SASL"
        )
    if access.tls is None:
        if access.digest:
            found.append(
                f"no TLS with ZooKeeper: the password of {_PREFIX}DIGEST goes in plain with each"
                f" connection; set {_PREFIX}CA"
            )
        elif access.sasl:
            found.append(
                "no TLS with ZooKeeper: who is on the wire can read all, and take over a"
                f" connection after its login; set {_PREFIX}CA"
            )
    elif not access.tls.check_hostname:
        found.append(
            f"{_PREFIX}CHECK_HOSTNAME is no: whoever has any certificate of the authority can"
            " answer in ZooKeeper's place"
        )
    return found


class _Reader:
    """Takes variables one by one and keeps what is wrong with them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.mistakes: list[str] = []

    def value(self, name: str) -> str:
        """The value of a variable; one that is empty is treated as none."""
        return self._environment.get(_PREFIX + name, "")

    def wrong(self, name: str, what: str) -> None:
        """Note a mistake."""
        self.mistakes.append(f"  {_PREFIX}{name} {what}")

    def login(self, name: str) -> str:
        """A user and a password, "" if there are none."""
        value = self.value(name)
        user, _, password = value.partition(":")
        if value and not (user and password):
            self.wrong(name, "is not of the form user:password")
        return value

    def switch(self, name: str) -> bool | None:
        """Yes or no, None if nothing is said."""
        value = self.value(name).lower()
        if value and value not in _YES + _NO:
            self.wrong(name, "is neither yes nor no")
        return value in _YES if value else None

    def tls(self) -> Tls | None:
        """Encryption, None for none."""
        wanted, check = self.switch("TLS"), self.switch("CHECK_HOSTNAME")
        given = [
            name
            for name in ("CA", "CERTIFICATE", "KEY", "KEY_PASSWORD", "CHECK_HOSTNAME")
            if self.value(name)
        ]
        if wanted is False and given:
            names = ", ".join(_PREFIX + name for name in given)
            self.wrong("TLS", f"says no, but there is {names}")
        for name in ("KEY", "KEY_PASSWORD"):
            if name in given and "CERTIFICATE" not in given:
                self.wrong(name, f"is of no use without {_PREFIX}CERTIFICATE")
        if not (wanted or given):
            return None
        return Tls(
            ca=self.value("CA"),
            certificate=self.value("CERTIFICATE"),
            key=self.value("KEY"),
            key_password=self.value("KEY_PASSWORD"),
            check_hostname=check is not False,
        )
