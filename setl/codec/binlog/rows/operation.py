"""What the front of a row event tells of it: its operation, and whether foreign keys were checked.

A session with ``foreign_key_checks = 0`` runs no actions of foreign keys either, and says so in
each of its row events. A replica applies them in the same way.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from setl.codec.binlog.event import COMPRESSED_ROWS, DELETES, HEADER_BYTES, INSERTS, UPDATES
from setl.model.change import Op

_FLAGS: Final = Struct("<H")
_FLAGS_AT: Final = HEADER_BYTES + 6  # behind the id of the table
_NO_FOREIGN_KEY_CHECKS: Final = 0x2


def operation_of(event: bytes) -> tuple[Op, bool] | None:
    """See `setl.codec.row_codec.RowCodec.operation`."""
    if len(event) < _FLAGS_AT + _FLAGS.size:
        return None
    kind = COMPRESSED_ROWS.get(event[4], event[4])
    (flags,) = _FLAGS.unpack_from(event, _FLAGS_AT)
    checked = not flags & _NO_FOREIGN_KEY_CHECKS
    for op, kinds in ((Op.INSERT, INSERTS), (Op.UPDATE, UPDATES), (Op.DELETE, DELETES)):
        if kind in kinds:
            return op, checked
    return None
