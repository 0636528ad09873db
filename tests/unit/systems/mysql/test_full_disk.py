"""A disk that is full is no fault of the row that comes at that moment."""

import pymysql
import pytest

from setl.errors import DataError, TransientError
from setl.systems.mysql.connection import translate


@pytest.mark.parametrize(
    ("number", "text", "kind"),
    [
        (1114, "The table 'notes' is full", TransientError),
        (1021, "Disk full (/tmp/#sql); waiting for someone to free some space...", TransientError),
        (1030, 'Got error 28 "No space left on device" from storage engine InnoDB', TransientError),
        (1030, "Got error 122 from storage engine", TransientError),
        (1005, "Can't create table `t` (errno: 135)", TransientError),
        (1016, "Can't open file: './d/t.frm' (errno: 2)", DataError),
        (3, "Error writing file '/tmp/MLx' (Errcode: 28)", TransientError),
        (1026, "Error writing file 'binlog' (errno: 28 - No space left on device)", TransientError),
        (1062, "Duplicate entry 'error 28' for key 'PRIMARY'", DataError),
    ],
)  # fmt: skip
def test_a_full_disk_may_pass_and_says_what_to_do(number, text, kind):
    error = translate(pymysql.err.InternalError(number, text))
    assert type(error) is kind
    # Error 122 of InnoDB's names nothing that a person knows; it may be a quota.
    assert ("disk is full" in error.hint) is (kind is TransientError)
