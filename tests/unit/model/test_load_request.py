"""What a request for a table load says of itself."""

from setl.model.load_request import LoadRequest


def test_of_many_tables_the_first_are_named():
    entries = tuple(f"s.t{number} ->" for number in range(200))
    assert LoadRequest(entries=entries).what == "s.t0, s.t1, s.t2, s.t3, s.t4 and 195 more"
    assert LoadRequest(entries=(*entries[:4], "s.a -> s.b")).what.endswith("s.t3, s.a -> s.b")
    assert LoadRequest(tables=("s.t",), where="id > 3").what == "s.t where id > 3"
    assert LoadRequest(tables=("s.t",), keys_before=2).what == "2 keys of s.t"
    assert LoadRequest().what == "all tables"
