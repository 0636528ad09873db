"""What is said of servers with which no session began."""

from arbiter.session.connect_failures import ConnectFailure, describe_failures

ONE, TWO = (
    ConnectFailure("zk1:2181", "Connection refused", False),
    ConnectFailure("zk2:2181", "timed out", False),
)


def test_the_same_troubles_are_the_same_words_whoever_was_tried_last():
    assert describe_failures([ONE, TWO], 3) == describe_failures([TWO, ONE], 3)


def test_it_says_how_many_servers_are_needed_where_too_few_are_left():
    assert describe_failures([ONE, TWO], 3) == (
        "zk1:2181: Connection refused; zk2:2181: timed out;"
        " 2 of the 3 servers must run and have joined each other"
    )
    assert describe_failures([ONE], 3) == "zk1:2181: Connection refused"
    assert describe_failures([ONE, TWO], 5).endswith("zk2:2181: timed out")
    assert describe_failures([ONE], 1) == "zk1:2181: Connection refused"
    assert describe_failures([], 3) == ""
