"""What the log says of standing verification."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from setl.bulk.range_comparison import RangeComparer
from setl.bulk.repair import Repair
from setl.log import fields
from setl.model.leadership import Leadership
from setl.model.standing import TableFinding, Verification, VerificationPosition
from setl.run.verification.figures import REPAIRS_NO_MORE

_log = logging.getLogger(__name__)


class VerificationLog:
    """The log lines of one leadership's verification."""

    def __init__(self, leadership: Leadership) -> None:
        self._leadership = leadership

    def begins(self, state: Verification) -> None:
        """A pass begins."""
        _log.info("verification pass begins", extra=self._fields(number=state.now.number))

    def ended(self, state: Verification) -> None:
        """A pass has ended."""
        done = state.now
        _log.info(
            "verification pass ended",
            extra=self._fields(
                number=done.number,
                rows=done.rows,
                seconds=round(done.ended - done.begun, 1),
                found=done.found,
                repaired=done.repaired,
                undecided=done.undecided,
                tables_left_out=done.tables_left_out,
            ),
        )

    def is_over(self, error: str) -> None:
        """Nothing more is compared under this leadership."""
        _log.info("verification ends", extra=self._fields(error=error))

    def differs(self, number: int, finding: TableFinding) -> None:
        """Differences were found in a table, in the pass of this number."""
        _log.warning(
            "verification found differences",
            extra=self._fields(
                table=finding.table,
                target=finding.target,
                number=number,
                missing=finding.missing,
                extra=finding.extra,
                different=finding.different,
                keys="; ".join(f"{row.key} {row.what}" for row in finding.rows),
            ),
        )

    def repairs(self, repair: Repair, requests: Sequence[str]) -> None:
        """What differs is sent again, by load requests with these ids."""
        _log.info(
            "verification repairs",
            extra=self._fields(target=repair.target, keys=repair.keys, loads=", ".join(requests)),
        )

    def repairs_no_more(self, state: Verification) -> None:
        """The limit of repairs is reached."""
        _log.warning(
            "verification repairs no more in this pass",
            extra=self._fields(
                number=state.now.number, repaired=state.asked, reason=REPAIRS_NO_MORE
            ),
        )

    def compared_whole(self, comparer: RangeComparer) -> None:
        """A target cannot be compared in ranges."""
        _log.info(
            "target is compared as a whole",
            extra=self._fields(table=comparer.table, target=comparer.name, reason=comparer.whole),
        )

    def fails(self, error: str) -> None:
        """It does not work now, and is tried again."""
        _log.warning("verification fails", extra=self._fields(error=error))

    def failed_unexpectedly(self) -> None:
        """A defect; to be called where the exception is handled."""
        _log.exception("verification failed unexpectedly", extra=self._fields())

    def goes_on(self) -> None:
        """It works again."""
        _log.info("verification goes on", extra=self._fields())

    def left_out(self, position: VerificationPosition, error: str) -> None:
        """A table that fails again and again is left out of the pass."""
        _log.warning(
            "table left out of verification",
            extra=self._fields(table=position.table, target=position.target, error=error),
        )

    def _fields(self, **values: object) -> dict[str, object]:
        return fields(**self._leadership.fields, **values)
