"""A session that outlives the data of its server."""

import shutil

from arbiter.arbiter import ArbiterError, Contact
from arbiter.values import NodeInfo
from arbiter.zookeeper import ZooKeeperArbiter
from setl_embedded import ZooKeeper
from tests.waiting import eventually


def test_a_client_finds_its_way_into_a_zookeeper_that_was_set_up_anew(tmp_path):
    with ZooKeeper(tmp_path / "zookeeper") as server:
        arbiter = ZooKeeperArbiter(server.hosts, session_timeout=2.0)
        arbiter.start()
        try:
            arbiter.announce(NodeInfo("n1"))
            for i in range(30):
                arbiter.put_channel(f"c{i}", {})
            high = arbiter.next_epoch()
            server.stop()
            shutil.rmtree(server.folder / "data")
            server.start()
            eventually(lambda: announced(arbiter), 60)
            eventually(lambda: arbiter.contact() is Contact.CONNECTED, 30)
            assert arbiter.next_epoch() < high, "the server did not count from the beginning"
        finally:
            arbiter.close()


def announced(arbiter):
    try:
        arbiter.announce(NodeInfo("n1"))
    except ArbiterError:
        return False
    return True
