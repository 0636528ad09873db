from setl.select.identity import heartbeat_id, replica_id, temporary_server_id


def test_a_replica_id_never_changes():
    # A changed number would let an old reader and a new one of the same node read at once.
    assert replica_id("shop", "orders", "n1") == 3812247092


def test_every_node_and_pipeline_reads_under_its_own_id():
    names = [(c, p, n) for c in ("shop", "crm") for p in ("a", "b", "c") for n in ("n1", "n2")]
    ids = {replica_id(*name) for name in names}
    assert len(ids) == len(names)
    assert all(1 << 31 <= number < (1 << 32) - 1 for number in ids)


def test_no_two_connections_have_the_same_passing_id():
    ids = {temporary_server_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(1 << 31 <= number < (1 << 32) - 1 for number in ids)


def test_a_heartbeat_row_belongs_to_a_server_on_whatever_node():
    assert heartbeat_id("db1", 3306) == heartbeat_id("db1", 3306)
    ids = {heartbeat_id(h, p) for h in ("db1", "db2") for p in (3306, 3307, 33060)}
    assert len(ids) == 6
    assert all(0 < number < 1 << 31 for number in ids)
