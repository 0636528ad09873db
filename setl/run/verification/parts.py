"""What standing verification is made of."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from setl.bulk.position_waiter import PositionWaiter
from setl.bulk.range_comparison import RangeComparer
from setl.bulk.source_reader import SourceTables
from setl.channel.fields.load_limits import LoadLimits
from setl.channel.fields.standing_verification import StandingVerification
from setl.model.position import Position
from setl.model.stream_end import StreamEnd
from setl.run.table_loads.requests import LoadRequests
from setl.run.verification.store import VerificationStore


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyingParts:
    """What verifies.

    Attributes:
        settings: what the channel file says of it.
        limits: what it is throttled by, as loads do.
        comparers: gives what compares each target with what goes into it, as the tables are now;
            see `setl.run.verification.comparers.standing_comparers`.
        end: asks for the end of the source's stream; raises SetlError.
        passed: see `SourceSystem.passed`.
        tables: opens the tables of the source; gives None if nobody can read them.
        opposite: waits until the other direction has brought what the target has, see `Opposite`;
            None where there is none.
        background: names the other pipelines that write where the rows of a source table go, by
            ``schema.table``; raises SetlError.
        cancel: ends what compares just now, as soon as can be; from any thread.
        requests: take the repairs.
        look_at_loads: tells the run that there are new requests.
        store: keeps how far it is.
    """

    settings: StandingVerification
    limits: LoadLimits
    comparers: Callable[[PositionWaiter], Sequence[RangeComparer]]
    tables: Callable[[], AbstractContextManager[SourceTables] | None]
    end: Callable[[], StreamEnd]
    passed: Callable[[Position, Position], bool]
    requests: LoadRequests
    look_at_loads: Callable[[], None]
    store: VerificationStore
    opposite: Callable[[threading.Event], None] | None = None
    background: Callable[[str], Sequence[str]] = lambda _: ()
    cancel: Callable[[], None] = lambda: None
