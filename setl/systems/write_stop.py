"""The port to whatever stops the writes of applications to a database, for a cut-over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Writes:
    """Whether a database takes writes of applications.

    Attributes:
        server: which server it is.
        stopped: whether it refuses writes of accounts without a special privilege.
        settings: the settings that say so, with their values; for `WriteStop.restore`.
        passes: whether this account may write all the same.
        bypass_grant: the statement that would let it, for whoever lacks it; or why there is none.
        lacking: the statement that lets this account stop writes, or what does it instead; "" if
            it may.
        others: accounts that are connected now and may write all the same, as far as is seen.
    """

    server: str
    stopped: bool
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    passes: bool = False
    bypass_grant: str = ""
    lacking: str = ""
    others: tuple[str, ...] = ()


class WriteStop(Protocol):
    """Stops writes to a database, and lets them go on.

    Order: whoever stops notes what `look` gave before, in a place that outlives him; a crash
    after `stop` then leaves behind what `restore` needs. Idempotence: both may be repeated. A
    server that is started again has the settings of its configuration file, whatever was set
    here; so who relies on a stop looks again.
    """

    def look(self) -> Writes:
        """How it is now. Raises SetlError."""
        ...

    def stop(self) -> None:
        """Refuse writes from now on; when it returns, no older write is still under way.

        Raises:
            ConfigurationError: the account may not do that.
            TransientError: it does not answer, or a statement under way does not end in time.
        """
        ...

    def restore(self, settings: Mapping[str, str]) -> None:
        """Set what `Writes.settings` told before `stop`. Raises as `stop`."""
        ...
