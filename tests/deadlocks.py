"""Writers of tests that are chosen as the victim of a deadlock do what every client has to."""

import pymysql

_VICTIM = frozenset({1205, 1213})  # a lock was waited for too long; a deadlock


def repeated(connection, transaction):
    """Run a transaction and commit it, again as long as the server ends it for others' sake.

    Whoever writes to rows that setl reads or writes may be the victim: InnoDB chooses. It may
    be tried again, since nothing of it is there.
    """
    while True:
        try:
            with connection.cursor() as cursor:
                done = transaction(cursor)
            connection.commit()
        except pymysql.err.OperationalError as error:
            if error.args[0] not in _VICTIM:
                raise
            connection.rollback()
        else:
            return done
