"""What a server says of its connections, whatever they run: statements are cut within a letter."""

import threading
from contextlib import ExitStack, contextmanager

import pytest

from setl.systems.mysql.binlog.server import BinlogServer
from setl.systems.mysql.process_list import processes
from setl.systems.mysql.stored.writers import commits
from tests.loading import endpoint_of
from tests.waiting import eventually


@contextmanager
def running(server, statement):
    """A client that runs a statement until the block ends; gives its connection's id."""
    with server.connect() as client, server.connect() as other:
        ident = client.thread_id()

        def run():
            try:
                with client.cursor() as cursor:
                    cursor.execute(statement)
            except Exception:  # noqa: BLE001 - it is killed
                pass

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield ident
        finally:
            with other.cursor() as cursor:
                cursor.execute(f"KILL QUERY {ident}")
            thread.join(60)


@pytest.mark.parametrize("letter", ["ä", "二", "👍"])
def test_statements_that_are_cut_within_a_letter(site_a, letter):
    # One of them begins each letter at another byte.
    statements = [f"SELECT SLEEP(300), '{'x' * n}{letter * 40}'" for n in range(4)]
    with ExitStack() as clients, site_a.connect() as connection:
        idents = [clients.enter_context(running(site_a, one)) for one in statements]

        def seen():
            found = {p.ident: p for p in processes(connection)}
            return all(found[i].statement.startswith("SELECT SLEEP(300)") for i in idents) and found

        found = eventually(seen, 60)
        assert {found[ident].command for ident in idents} == {"Query"}
        assert {found[ident].user for ident in idents} == {site_a.user}
        assert not any(commits(connection, ident) for ident in idents)
        assert BinlogServer(endpoint_of(site_a)).latest().offset > 0
        with connection.cursor() as cursor:  # what is asked afterwards is text as ever
            cursor.execute("SELECT 'ä'")
            assert cursor.fetchone()[0] == "ä"
