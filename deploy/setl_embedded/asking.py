"""Asking a server that speaks JSON over HTTP, and may be gone at any moment."""

from __future__ import annotations

import json
import urllib.request
from http.client import HTTPException
from typing import Any


class NoAnswerError(OSError):
    """A server gave no answer, an error, half an answer, or something that is not JSON."""


def ask_json(url: str, body: object = None, *, timeout: float) -> Any:
    """Ask, and return the answer.

    Args:
        url: whom and what.
        body: is sent as JSON, by POST; None for a GET.
        timeout: seconds that the server may be silent.

    Raises:
        NoAnswerError: see there.
    """
    request = urllib.request.Request(
        url,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.load(answer)
    # HTTPException is no OSError: it is what half an answer raises.
    except (OSError, HTTPException, ValueError) as error:
        raise NoAnswerError(f"{url}: {error!r}") from error
