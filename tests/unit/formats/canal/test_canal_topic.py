"""Topics of Canal: messages of several rows, and of statements."""

from tests.unit.formats.canal.records import canal
from tests.unit.systems.kafka.standalone import describe, entries_of, kinds


def test_rows_of_a_flat_message_count():
    message = canal("INSERT", [{"id": "1"}, {"id": "2"}])
    _, (entries, _) = entries_of("canal", (None, message))
    assert kinds(entries) == "RC"
    assert entries[0].rows == 2


def test_a_logged_statement_is_one():
    message = canal("DELETE", None, sql="DELETE FROM orders")
    _, (entries, _) = entries_of("canal", (None, message))
    assert kinds(entries) == "SC"
    assert (entries[0].statement, entries[0].default_schema) == ("DELETE FROM orders", "shop")


def test_each_row_of_a_message_is_seen():
    seen = describe("canal", None, canal("DELETE", [{"id": "1"}, {"id": "2"}]))
    rows = [each.change.before for each in seen if each.change is not None]
    assert [row and row.as_integer("id") for row in rows] == [1, 2]
