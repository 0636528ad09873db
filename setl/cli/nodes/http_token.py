"""Refuses tokens that strangers guess."""

from __future__ import annotations

import re

from setl.errors import ConfigurationError

SHORTEST = 16
_OF_EXAMPLES = re.compile(r"change[-_ ]?me", re.IGNORECASE)


def refuse_weak(token: str) -> None:
    """Have a process start with a good token, or with none.

    Raises:
        ConfigurationError: the token is short, or that of an example; the text does not show it.
    """
    if not token:
        return
    if _OF_EXAMPLES.match(token):
        wrong = "is still that of the example"
    elif len(token) < SHORTEST:
        wrong = f"has fewer than {SHORTEST} characters"
    else:
        return
    raise ConfigurationError(
        f"the token in SETL_HTTP_TOKEN {wrong}",
        hint="Take a random one, the same for all nodes: `openssl rand -hex 32` makes one",
    )
