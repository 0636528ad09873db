"""The errors of MySQL and MariaDB that mean: a row's values cannot be stored.

All others are about the table, the statement, the account or the server, and every row would
meet them; a row must not be blamed for them. Numbers:
https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html and
https://mariadb.com/kb/en/mariadb-error-codes/
"""

from __future__ import annotations

from typing import Final

ROW_FAULTS: Final = frozenset(
    {
        1022,  # duplicate key
        1048,  # NULL in a column that takes none
        1062,  # duplicate entry
        1118,  # row size too large
        1138,  # invalid use of NULL
        1169,  # unique constraint
        1216, 1217, 1451, 1452,  # foreign keys, if somebody has turned them on
        1264, 1265,  # out of range, truncated
        1292,  # incorrect date or time
        1300,  # invalid character string
        1365,  # division by zero, in a generated column
        1366, 1367,  # incorrect value for the type
        1406,  # data too long
        1411,  # incorrect value for a function
        1416,  # no geometry
        1525, 1526,  # incorrect value, no partition for the value
        1557, 1586, 1859,  # duplicate entry, worded in other ways
        1644,  # a trigger refuses it with SIGNAL
        1690,  # out of range in an expression
        1748,  # not of the given partition
        3037, 3055, 3140, 3141, 3143, 3144, 3156, 3157, 3158,  # geometry and JSON
        3516, 3548, 3556, 3616, 3617, 3618, 3643, 3731, 3732,  # coordinates and SRID
        3751, 3752, 3903, 3904, 3906, 3907, 3908,  # functional and multi-valued indexes
        3819,  # check constraint (MySQL)
        4025,  # check constraint (MariaDB)
        4035, 4036, 4037, 4038, 4039, 4040,  # JSON, in a generated column or an index (MariaDB)
        4078,  # illegal value for the column's type (MariaDB)
        6136,  # no vector
    }
)  # fmt: skip
"""Error numbers."""
