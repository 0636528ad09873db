"""Finds the programs that the servers need, or says how to get them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

from setl_embedded.errors import EmbeddedError

JAVA_AT_LEAST = 17  # PySpark 4 refuses older ones, and ZooKeeper runs from its jars
_SYSTEM_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/usr/libexec")


def mariadb_program(name: str) -> str:
    """Full path of a MariaDB server program; Debian keeps the server outside a user's PATH.

    Raises:
        EmbeddedError: it is not installed.
    """
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_SYSTEM_FOLDERS))
    found = shutil.which(name, path=path)
    if found is None:
        raise EmbeddedError(
            f"{name} was not found on PATH or in {', '.join(_SYSTEM_FOLDERS)}; "
            "install MariaDB 10.11 or newer (Debian: apt-get install mariadb-server)"
        )
    return found


@cache
def java() -> str:
    """Full path of a Java that is new enough: that of JAVA_HOME, else the one on PATH.

    Raises:
        EmbeddedError: there is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java")
    advice = (
        f"install Java {JAVA_AT_LEAST} or newer (Debian: apt-get install openjdk-17-jre-headless) "
        "or point JAVA_HOME at one"
    )
    if found is None:
        raise EmbeddedError(f"java was not found on PATH and JAVA_HOME is not set; {advice}")
    try:
        shown = subprocess.run([found, "-version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise EmbeddedError(f"{found} -version failed ({error}); {advice}") from error
    version = java_major_version(shown.stderr)
    if version < JAVA_AT_LEAST:
        raise EmbeddedError(f"{found} is Java {version}; {advice}")
    return found


def java_major_version(shown: str) -> int:
    """The major version in the output of ``java -version``; 8 for ``"1.8.0_392"``, 0 if unknown."""
    match = re.search(r'version "(?:1\.)?(\d+)', shown)
    return int(match[1]) if match else 0


@cache
def noida_db() -> str:
    """Full path of the server binary inside the installed ``noida-db`` package.

    Raises:
        EmbeddedError: it is not installed.
    """
    if find_spec("noida_db") is None:
        raise EmbeddedError("noida-db is not installed (pip install 'setl[embedded]')")
    binary = Path(str(resources.files("noida_db") / "noida-db"))
    if not os.access(binary, os.X_OK):
        binary.chmod(0o755)  # wheels do not always keep the bit; the package's own script does this
    return str(binary)


@cache
def zookeeper_classpath() -> str:
    """The jars of PySpark that a ZooKeeper server needs.

    Only these: with the whole folder on the class path the JVM opens 300 jars before it starts.

    Raises:
        EmbeddedError: PySpark is not installed, or has no ZooKeeper in it.
    """
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise EmbeddedError("pyspark is not installed (pip install setl)")
    folder = Path(found.origin).parent / "jars"
    jars: list[str] = []
    for name in (
        "zookeeper-[0-9]*", "zookeeper-jute-*", "slf4j-api-*", "log4j-api-*", "log4j-core-*",
        "log4j-slf4j2-impl-*", "metrics-core-*", "snappy-java-*", "netty-*",
    ):  # fmt: skip
        matches = sorted(folder.glob(f"{name}.jar"))
        if not matches:
            raise EmbeddedError(f"{folder} has no {name}.jar, which ZooKeeper needs")
        jars += map(str, matches)
    return os.pathsep.join(jars)
