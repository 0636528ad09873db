"""Errors of a real server that are transient: the pipeline waits, says why, and goes on."""

from typing import cast

import pytest

from setl.channel.fields.endpoints import MysqlTarget
from setl.errors import ConfigurationError
from setl.run.measured.figures import RunState
from setl.systems.mysql.connection import connect
from setl.systems.mysql.endpoint import mysql_endpoint
from tests.checking import check_channel
from tests.integration.pipelines import execute, fresh_name, mysql, on_both, one_way
from tests.waiting import eventually

db = on_both("limits", "CREATE TABLE {db}.t (id INT PRIMARY KEY)")


def test_an_account_that_has_used_up_what_it_may_do(servers, db, position):
    a, b = servers
    user = fresh_name("u")[:16]
    execute(b, f"CREATE USER {user}@'%' IDENTIFIED BY 'pw'", f"GRANT ALL ON *.* TO {user}@'%'")
    limited = f"ALTER USER {user}@'%' WITH MAX_UPDATES_PER_HOUR"
    execute(b, f"{limited} 1")
    target = {**mysql(b), "user": user, "password": "pw"}
    file = one_way(a, target, [{"from": f"{db}.t"}])
    running = position.lead(file)
    execute(a, f"INSERT INTO {db}.t VALUES (1)")

    def retries():
        figures = running.figures
        assert figures.state is RunState.RETRYING, figures
        return figures

    error = eventually(retries, 60).error
    assert "[1226]" in error
    assert "max_update" in error
    execute(b, f"{limited} 0")
    eventually(lambda: execute(b, f"SELECT * FROM {db}.t") == ((1,),), 60)
    assert running.error is None
    running.stop()
    # What does not pass is no fault of a row.
    execute(b, f"ALTER USER {user}@'%' ACCOUNT LOCK")
    with pytest.raises(ConfigurationError, match="lock"):
        connect(mysql_endpoint(cast("MysqlTarget", file.pipelines[0].target)))
    (found,) = [f for f in check_channel(file) if f.code == "account-refused"]
    assert "not be locked" in found.hint[0]
    execute(b, f"DROP USER {user}@'%'")
