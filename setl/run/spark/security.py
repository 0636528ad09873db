"""Who may talk to the processes of a Spark session: those that know its secret.

Without one, whoever reaches a port of the driver or of an executor may run code there, with the
secrets of all channels at hand. Spark makes a secret for each session where it starts the
processes itself: locally, on YARN and on Kubernetes. Master and workers of a standalone cluster
are there before, and share one secret with all that use them.

Source: https://spark.apache.org/docs/latest/security.html
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from setl.errors import ConfigurationError
from setl.run.spark.environment import variable

VARIABLE = "SETL_SPARK_SECRET"
"""Names the secret that a standalone cluster has as `spark.authenticate.secret`."""

_SECRET = "spark.authenticate.secret"  # noqa: S105 - a setting's name
_AUTHENTICATE = "spark.authenticate"
_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"  # what PySpark starts its JVM with
_CONNECTIONS = {
    "spark.network.crypto.enabled": "true",
    # Spark's defaults encrypt without authentication: who is on the wire could change bits of
    # calls, which carry code, and nobody would notice (CVE-2025-55039).
    "spark.network.crypto.authEngineVersion": "2",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    # Otherwise who makes the handshake fail gets a connection that is not encrypted at all.
    "spark.network.crypto.saslFallback": "false",
}
_FILES = {"spark.io.encryption.enabled": "true"}
_TLS = "spark.ssl.rpc.enabled"  # Spark then leaves its own encryption out
_MAKES_ITS_OWN = ("yarn", "k8s")


def secured(
    master: str, conf: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[dict[str, str], str]:
    """The settings that let nobody else in, and the secret that Spark is to be reported.

    Args:
        master: of the session.
        conf: the user's settings; ``spark.authenticate=false`` among them is obeyed.
        environment: variables of this process.

    Returns:
        `conf` without the secret, with what it is missing; and the secret, "" if Spark makes one.

    Raises:
        ConfigurationError: a standalone cluster's secret is not given.
    """
    rest = {name: value for name, value in conf.items() if name != _SECRET}
    if conf.get(_AUTHENTICATE) == "false":
        return rest, ""
    local = _is_local(master)
    settings = {_AUTHENTICATE: "true", **({} if local else {**_CONNECTIONS, **_FILES}), **rest}
    if local or master.startswith(_MAKES_ITS_OWN):
        return settings, conf.get(_SECRET, "")
    secret = conf.get(_SECRET) or environment.get(VARIABLE, "")
    if not secret:
        raise ConfigurationError(
            f"the secret of the Spark cluster {master} is not given",
            hint=f"Set {VARIABLE} to the `spark.authenticate.secret` of its master and workers;"
            " a cluster without one runs whatever anybody sends it, which"
            " `--spark-conf spark.authenticate=false` allows",
        )
    return settings, secret


def weaknesses(master: str, conf: Mapping[str, str]) -> Iterator[str]:
    """What the user's own settings take from a session's protection, in words for the log.

    They are obeyed: a cluster may be older, or alone in its network.

    Args:
        master: of the session.
        conf: the user's settings.
    """
    if conf.get(_AUTHENTICATE) == "false":
        yield f"`{_AUTHENTICATE}` is false: whoever reaches a port of Spark can run code there"
        return
    if _is_local(master):
        return
    for name, value in ({} if conf.get(_TLS) == "true" else _CONNECTIONS).items():
        given = conf.get(name, value)
        if given.lower() != value.lower():
            yield (
                f"`{name}` is {given} in place of {value}: who is on the wire may read or change"
                " what Spark's processes send each other, code among it"
            )
    for name, value in _FILES.items():
        if conf.get(name, value).lower() != value:
            yield f"`{name}` is {conf[name]}: rows lie unencrypted in Spark's files"


def _is_local(master: str) -> bool:
    return master.startswith("local") and not master.startswith("local-cluster")


@contextmanager
def handed_over(secret: str) -> Generator[None]:
    """Have a JVM that is started inside the block know the secret.

    In a file that only this user can read, for as long as the block lasts: a program's arguments
    are shown to everybody on its machine.
    """
    if not secret:
        yield
        return
    before = os.environ.get(_ARGUMENTS)
    with tempfile.NamedTemporaryFile("w", prefix="setl-spark-", suffix=".conf") as file:
        file.write(f"{_SECRET} {secret}\n")
        file.flush()
        # The file stands instead of Spark's own defaults, which are to hold as well.
        arguments = f"--load-spark-defaults --properties-file {Path(file.name)}"
        with variable(_ARGUMENTS, f"{arguments} {before or 'pyspark-shell'}"):
            yield
