"""A session that outlives the data of its server."""

import shutil

from arbiter.errors import ArbiterError, Contact
from arbiter.values import NodeInfo
from arbiter.zookeeper import ZooKeeperArbiter
from setl_embedded import ZooKeeper
from tests.waiting import eventually


def test_a_client_finds_its_way_into_a_zookeeper_that_was_set_up_again(tmp_path):
    with ZooKeeper(tmp_path / "zookeeper") as server:
        arbiter = ZooKeeperArbiter(server.hosts, session_timeout=2.0)
        arbiter.start()
        try:
            eventually(lambda: announced(arbiter), 60)
            for i in range(30):
                eventually(lambda i=i: answered(lambda: arbiter.channels.put(f"c{i}", {})), 60)
            high = eventually(lambda: answered(arbiter.epochs.next), 60)
            server.stop()
            shutil.rmtree(server.folder / "data")
            server.start()
            eventually(lambda: announced(arbiter), 60)
            eventually(lambda: arbiter.session.contact() is Contact.CONNECTED, 30)
            low = eventually(lambda: answered(arbiter.epochs.next), 60)
            assert low < high, "the server did not count from the beginning"
        finally:
            arbiter.close()


def announced(arbiter):
    return answered(lambda: (arbiter.nodes.announce(NodeInfo("n1")), True))


def answered(ask):
    """The answer; None if a server does not give it in a third of so short a session."""
    try:
        return ask()
    except ArbiterError:
        return None
