"""What refusals of a cluster mean: setl's errors, made of the status and body of an answer.

Source: https://www.elastic.co/guide/en/elasticsearch/reference/8.15/common-options.html#common-options-error-options
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from setl.errors import ConfigurationError, FatalError, LoginRefusedError, SetlError, TransientError
from setl.systems.search_index.port import Answer, ClusterEndpoint

RETRY_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
"""HTTP statuses, of a request or of one bulk item, that may be others when it is sent again."""

NO_ACCESS_STATUSES = frozenset({401, 403})
"""HTTP statuses that mean: this account, or anybody at the moment, must not do that."""

BAD_REQUEST = 400
NOT_FOUND = 404
TOO_LARGE = 413

_FORGOTTEN = "search_context_missing_exception"


class AnswerError(Exception):
    """A cluster has refused a request. It stays inside this package: see `translating`.

    Attributes:
        status: of the answer.
        body: what it says; text if it is not JSON.
    """

    def __init__(self, status: int, body: object) -> None:
        super().__init__(f"[{status}]")
        self.status = status
        self.body = body

    @property
    def type(self) -> str:
        """What kind of refusal it is, as the cluster names it; "" if it does not."""
        return str(error_of(self.body).get("type", ""))


def refusal(answer: Answer) -> AnswerError:
    """The error that an answer is."""
    try:
        body: object = json.loads(answer.data)
    except ValueError:  # servers, and proxies before them, also answer with text
        body = answer.data[:1000].decode("utf-8", "replace")
    return AnswerError(answer.status, body)


@contextmanager
def translating(endpoint: ClusterEndpoint) -> Generator[None]:
    """Turn refusals inside the block into setl's errors, with the servers' addresses."""
    try:
        yield
    except AnswerError as error:
        raise translate(error, endpoint.product.name).at(server=endpoint) from error


def translate(error: AnswerError, product: str) -> SetlError:
    """The kind of setl error that a refusal is."""
    return _typed(error, product).coded(error.status)


def _typed(error: AnswerError, product: str) -> SetlError:
    status, reason = error.status, error_of(error.body)
    what = f"{reason.get('type')}: {reason.get('reason')}" if reason else _said(error.body)
    text = f"{product}: {what} [{status}]"
    if status in RETRY_STATUSES or _is_forgotten(reason):
        return TransientError(text)
    if status in NO_ACCESS_STATUSES:
        # 401: it does not know the account; 403: the account must not do that.
        kind = LoginRefusedError if status == 401 else ConfigurationError
        return kind(text, hint="Check the account and its privileges")
    if status == NOT_FOUND:
        return ConfigurationError(text, hint="Create the index, or let setl create it")
    return FatalError(text)


def _said(body: object) -> str:
    if not isinstance(body, dict):
        return str(body)[:300] or "no reason given"
    said = cast("dict[str, object]", body)
    # AWS, which answers before the cluster does, writes `message` or `Message`.
    return str(next((said[k] for k in ("error", "message", "Message") if k in said), said))[:300]


def _is_forgotten(reason: dict[str, Any]) -> bool:
    """Whether a node has lost what was opened on it for reading, as after a restart."""
    causes: object = reason.get("root_cause")
    return isinstance(causes, list) and any(
        isinstance(cause, dict) and cast("dict[str, Any]", cause).get("type") == _FORGOTTEN
        for cause in cast("list[object]", causes)
    )


def error_of(body: object, name: str = "error") -> dict[str, Any]:
    """The object under `name` in an answer or in another error; empty if there is none.

    Servers, and proxies before them, also answer with text there.
    """
    if not isinstance(body, dict):
        return {}
    found = cast("dict[str, object]", body).get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
