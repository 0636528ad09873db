"""Which variables of the environment a channel file may name, and which of them are secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

ALLOWED: Final = "SETL_CHANNEL_VARIABLES"
"""Names the variables that channel files may use: patterns such as ``SHOP_*``; all if not set."""

_EVERY: Final = "*"
_OWN: Final = "SETL_"
# The last word of a name that says that the value is a secret.
_SECRET_NAME = re.compile(
    r"(?:PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|PW|SECRET|TOKEN|KEY|DIGEST|SASL|CREDENTIALS?)$",
    re.IGNORECASE,
)
# What Spark's and Hadoop's own libraries log in with, wherever they are given files elsewhere.
_OF_SPARK: Final = ("AWS_", "AZURE_", "GOOGLE_", "HADOOP_", "SPARK_", "PYSPARK_")


def patterns_of(environment: Mapping[str, str]) -> Sequence[str]:
    """The patterns of `ALLOWED`."""
    return environment.get(ALLOWED, "").split() or [_EVERY]


def is_among(name: str, patterns: Sequence[str]) -> bool:
    """Whether a variable's name fits one of the patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def is_own(name: str) -> bool:
    """Whether a variable is setl's own."""
    return name.upper().startswith(_OWN)


def is_secret_name(name: str) -> bool:
    """Whether a variable's name says that its value is a secret."""
    return bool(_SECRET_NAME.search(name))


def without_secrets_of_setl(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment for processes that need none of the node's secrets, nor those of channels.

    What Spark and its libraries log in with elsewhere stays.
    """
    patterns = [each for each in patterns_of(environment) if each != _EVERY]
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(_OF_SPARK)
        or not (is_secret_name(name) or (is_among(name, patterns) and not is_own(name)))
    }
