"""References to the environment in channel files: ``${NAME}`` and ``${NAME:-default}``.

A reference may stand in any text of the file and makes up all or part of it. Definitions are
stored with their references; each node puts the values in, from its own environment, before
it checks the definition. ``$${`` is the text ``${``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from setl.channel.text.document import lines_of, origin_of
from setl.channel.text.problems import ChannelFileError, Path, Problem, written
from setl.channel.variables import ALLOWED, is_among, is_own, is_secret_name, patterns_of

_REFERENCE = re.compile(
    r"(?P<escaped>\$\$\{)|\$\{(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<or>:-(?P<default>[^}]*))?\})?"
)

HIDDEN = "(hidden)"
"""What is shown in place of a literal secret."""

_LOGIN = re.compile(r"(\w://)[^/@\s]*:[^/@\s]*@")

# Keys whose values are secrets, wherever they stand; those behind S3's are of Kafka's clients.
SECRET_KEYS = frozenset({
    "password", "api_key", "aws_secret_access_key", "aws_session_token",
    "sasl_plain_password", "ssl_password",
    "sasl.password", "sasl_password", "ssl.key.password", "ssl_key_password",
    "ssl.keystore.password", "ssl_keystore_password", "ssl.key.pem", "ssl_key_pem",
    "sasl.oauthbearer.client.secret", "sasl_oauthbearer_client_secret",
    "sasl.oauthbearer.config", "sasl_oauthbearer_config",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl_oauthbearer_assertion_private_key_passphrase",
    "sasl.oauthbearer.assertion.private.key.pem", "sasl_oauthbearer_assertion_private_key_pem",
})  # fmt: skip
_SECRET_WORDS = ("password", "passphrase", "api_key", "secret", "pem", "oauthbearer.config",
                 "oauthbearer_config")  # fmt: skip


def _names(text: str) -> Iterator[str]:
    return (m.group("name") for m in _REFERENCE.finditer(text) if m.group("name"))


def has_reference(text: object) -> bool:
    """Whether a value is text with a reference in it."""
    return isinstance(text, str) and any(_names(text))


def is_secret(path: Path) -> bool:
    """Whether the value at this position must not be shown (I19)."""
    return path[2:3] in {("source",), ("target",)} and path[-1] in SECRET_KEYS


def resolve_references(
    definition: Mapping[str, Any], environment: Mapping[str, str]
) -> dict[str, Any]:
    """A definition with the environment's values in place of references.

    ``${NAME:-default}`` gives the default where the variable is not set or empty, as a shell
    does. The given definition stays as it is.

    Raises:
        ChannelFileError: variables are missing or references malformed; lists all.
    """
    resolved, problems = substitute_allowed(definition, environment)
    if problems:
        raise ChannelFileError(problems, origin_of(definition))
    return resolved


def substitute(
    definition: Mapping[str, Any], environment: Mapping[str, str]
) -> tuple[dict[str, Any], list[Problem]]:
    """As `resolve_references`, but returns the problems; what is missing stays a reference.

    It refuses nothing that is there: for a file of whoever has the environment, too.
    """
    return _substitute(definition, environment, lambda _path, _name: "")


def substitute_allowed(
    definition: Mapping[str, Any], environment: Mapping[str, str]
) -> tuple[dict[str, Any], list[Problem]]:
    """As `substitute`, for a channel file, whose author may not read the whole environment.

    He may not use the node's own variables, nor any that `ALLOWED` does not name. A secret may only
    stand where setl keeps it one: elsewhere it would end up in a row, an error, or a question to
    a name server.
    """
    patterns = patterns_of(environment)
    secrets = {
        name for path, text in _texts(definition, ()) if is_secret(path) for name in _names(text)
    }

    def refusal(path: Path, name: str) -> str:
        if is_own(name):
            return f"names {name}, one of setl's own variables; no channel file may use them"
        if not is_among(name, patterns):
            return f"names {name}; {ALLOWED} lets channel files use only {', '.join(patterns)}"
        if not is_secret(path) and (name in secrets or is_secret_name(name)):
            return (
                f"names {name}, a secret by its name or another use; it may only stand where"
                " secrets do, as `password` and `api_key`. Rename the variable if it is none"
            )
        return ""

    return _substitute(definition, environment, refusal)


def _substitute(
    definition: Mapping[str, Any],
    environment: Mapping[str, str],
    refusal: Callable[[Path, str], str],
) -> tuple[dict[str, Any], list[Problem]]:
    problems: list[Problem] = []
    lines = lines_of(definition)

    def replaced(path: Path, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            if match.group("escaped"):
                return "${"
            reason = ""
            name = match.group("name")
            if not name:
                reason = "has a malformed reference; write ${NAME}, ${NAME:-default}, or $${ for ${"
            elif refused := refusal(path, name):
                reason = refused
            elif found := environment.get(name) or match.group("default"):
                return found
            elif match.group("or") or name in environment:
                return ""
            else:
                reason = f"the environment variable {name} is not set"
            problems.append(Problem(written(path), reason, lines.get(path)))
            return match.group()

        return _REFERENCE.sub(value, text)

    return cast("dict[str, Any]", _mapped(definition, (), replaced)), problems


def literal_secrets(definition: Mapping[str, Any]) -> Iterator[Problem]:
    """A warning for each secret that stands in the file itself."""
    lines = lines_of(definition)
    for path, text in _texts(definition, ()):
        bare = _REFERENCE.sub(lambda m: m.group("default") or "", text)
        if bare and is_secret(path):
            advice = "is a literal secret; write ${NAME} and set NAME in the nodes' environment"
            yield Problem(written(path), advice, lines.get(path), level="warning")


def refuse_hidden(definition: Mapping[str, Any]) -> None:
    """Refuse a definition with `HIDDEN` in place of a secret, as one has that was only shown.

    Raises:
        ChannelFileError: there is one; lists all.
    """
    lines = lines_of(definition)
    advice = f"{HIDDEN} stands for a secret that is not shown; write ${{NAME}} instead"
    problems = [
        Problem(written(path), advice, lines.get(path))
        for path, text in _texts(definition, ())
        if HIDDEN in text
    ]
    if problems:
        raise ChannelFileError(problems, origin_of(definition))


def without_secrets(definition: Mapping[str, Any]) -> dict[str, Any]:
    """The definition to be shown: literal secrets are `HIDDEN`, references are not.

    Hides more than `literal_secrets` warns of: whatever a key calls a password, also where it
    means nothing, and logins in addresses.
    """

    def shown(path: Path, text: str) -> str:
        bare = _REFERENCE.sub(lambda m: m.group("default") or "", text)
        key = str(next((part for part in reversed(path) if isinstance(part, str)), "")).lower()
        named = any(word in key for word in _SECRET_WORDS)
        if bare and (named or is_secret(path)):
            return HIDDEN
        return _LOGIN.sub(rf"\1{HIDDEN}@", text)

    return cast("dict[str, Any]", _mapped(definition, (), shown))


def _mapped(value: Any, path: Path, change: Callable[[Path, str], str]) -> Any:
    if isinstance(value, str):
        return change(path, value)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {key: _mapped(item, (*path, key), change) for key, item in items}
    if isinstance(value, list):
        values = cast("list[Any]", value)
        return [_mapped(item, (*path, i), change) for i, item in enumerate(values)]
    return value


def _texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Any]", value).items():
            yield from _texts(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(cast("list[Any]", value)):
            yield from _texts(item, (*path, i))
