"""What the processes of a Spark session are told of the node's environment."""

import subprocess

import pytest

from setl.channel.variables import ALLOWED, without_secrets_of_setl
from setl.run.spark.environment import StartOptions

SECRETS = (
    "SETL_HTTP_TOKEN", "SETL_ZOOKEEPER_DIGEST", "SETL_ZOOKEEPER_SASL", "SETL_SPARK_SECRET",
    "SETL_ZOOKEEPER_KEY_PASSWORD", "SETL_ALARM_SECRET", "SETL_MAIL_PASSWORD", "SHOP_A_PASSWORD",
    "SEARCH_API_KEY", "db_pw",
)  # fmt: skip
KEPT = ("PATH", "HOME", "JAVA_HOME", "SETL_LOG_LEVEL", "TZ", "AWS_SECRET_ACCESS_KEY", "SHOP_HOST")


def test_a_process_gets_no_secret():
    # As PySpark does it.
    options = StartOptions(stdout=subprocess.PIPE)
    options["stdin"] = subprocess.PIPE
    options["env"] = dict.fromkeys((*SECRETS, *KEPT), "hunter2")
    options["text"] = True
    with subprocess.Popen(["/usr/bin/env"], **options) as process:
        reported, _ = process.communicate(timeout=20)
    names = {line.partition("=")[0] for line in reported.splitlines()}
    assert names == {*KEPT, "PYTHONSAFEPATH"}


@pytest.mark.parametrize("patterns", ["SHOP_* SEARCH_*", "SHOP_*"])
def test_what_channel_files_may_use_is_theirs(patterns):
    given = {ALLOWED: patterns, "SHOP_HOST": "db1", "SETL_ROOT": "/setl", "LANG": "C"}
    assert without_secrets_of_setl(given) == {ALLOWED: patterns, "SETL_ROOT": "/setl", "LANG": "C"}
