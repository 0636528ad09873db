"""Stores a channel's file, but never over one that whoever stores it has not seen.

The command line and the console both call this, so that they refuse the same things.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from arbiter.arbiter import Arbiter
from arbiter.errors import Conflict, NotFound
from arbiter.requests import Refused
from arbiter.values import Channel, ChannelState
from setl.channel.text.references import without_secrets

NO_REVISION = "none"
"""The revision of a channel that the cluster does not keep."""

_DIGITS = 12
_ATTEMPTS = 5


def revision_of(channel: Channel | None) -> str:
    """What tells a stored file from others: the same for the same file, in whatever state.

    Literal secrets do not count, since it must not give them away (I19): two files that differ in
    those alone have one revision.
    """
    if channel is None:
        return NO_REVISION
    shown = json.dumps(without_secrets(channel.definition), sort_keys=True, ensure_ascii=False)
    return sha256(shown.encode()).hexdigest()[:_DIGITS]


def stored_channel(arbiter: Arbiter, name: str) -> Channel | None:
    """A channel as the cluster keeps it, None if it keeps none."""
    try:
        return arbiter.channels.one(name)
    except NotFound:
        return None


def refuse_another(name: str, seen: Channel | None, base: str, hint: str) -> None:
    """Refuse to store over a file that is not the one that somebody has changed.

    Args:
        name: of the channel.
        seen: the channel as the cluster keeps it.
        base: revision of the file that was changed.
        hint: what to do, as a sentence without its full stop.

    Raises:
        Refused: it is another one, or there is none any more.
    """
    found = revision_of(seen)
    if found == base:
        return
    if seen is None:
        what = f"there is no channel {name} (any more), and the file was made from revision {base}"
    elif base == NO_REVISION:
        what = f"there is a channel {name} already, of revision {found}"
    else:
        what = (
            f"the stored file of channel {name} is revision {found}, and the new one was made from"
            f" revision {base}"
        )
    raise Refused(f"{what}; nothing was stored, so that nobody's changes are lost. {hint}")


def store(
    arbiter: Arbiter,
    name: str,
    definition: Mapping[str, Any],
    *,
    seen: Channel | None,
    looked: bool,
    hint: str,
) -> Channel:
    """Store a file in place of the one that was seen. A state that changed meanwhile is kept.

    Args:
        arbiter: keeps channels.
        name: of the channel.
        definition: its file, as it is written.
        seen: the channel as it was when it was compared and looked at, None if there was none.
        looked: whether its servers were looked at, or need not be.
        hint: see `refuse_another`.

    Raises:
        Refused: somebody has stored another file meanwhile, or removed the channel, or started
            one that was not looked at; nothing was stored.
        Conflict: it keeps being changed.
    """
    base = revision_of(seen)
    for _ in range(_ATTEMPTS):
        now = stored_channel(arbiter, name)
        refuse_another(name, now, base, hint)
        if now is not None and seen is not None and now.definition != seen.definition:
            raise Refused(
                f"a secret that stands in the stored file of channel {name} was changed meanwhile;"
                f" nothing was stored. {hint}"
            )
        if now is not None and now.state is not ChannelState.STOP and not looked:
            raise Refused(
                f"channel {name} was started meanwhile, and its servers were not looked at;"
                " nothing was stored. Apply the file again"
            )
        try:
            return arbiter.channels.store(name, definition, now)
        except Conflict:
            continue
    raise Conflict(f"the channel {name!r} is being changed concurrently; try again")


def stored_sentence(stored: Channel, seen: Channel | None) -> str:
    """What was stored, in place of what."""
    revision, before = revision_of(stored), revision_of(seen)
    new = f" as revision {revision}"
    if seen is not None:
        new += ", which it had already" if revision == before else f", in place of {before}"
    return f"channel {stored.name} stored{new}, state {stored.state.value}"
