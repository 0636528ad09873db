"""What is said of servers with which no session began."""

from arbiter.session.trouble import Trouble, told

ONE, TWO = Trouble("zk1:2181", "Connection refused", False), Trouble("zk2:2181", "timed out", False)


def test_the_same_troubles_are_the_same_words_whoever_was_tried_last():
    assert told([ONE, TWO], 3) == told([TWO, ONE], 3)


def test_it_says_how_many_servers_are_needed_where_too_few_are_left():
    assert told([ONE, TWO], 3) == (
        "zk1:2181: Connection refused; zk2:2181: timed out;"
        " 2 of the 3 servers must run and have joined each other"
    )
    assert told([ONE], 3) == "zk1:2181: Connection refused"
    assert told([ONE, TWO], 5).endswith("zk2:2181: timed out")
    assert told([ONE], 1) == "zk1:2181: Connection refused"
    assert told([], 3) == ""
