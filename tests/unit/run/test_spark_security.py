"""Which Spark sessions know a secret, and where it stands meanwhile."""

import os
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from setl.errors import ConfigurationError, FatalError
from setl.run.spark.security import handed_over, secured, weaknesses
from setl.run.spark.session import see_taken

ENCRYPTED = {
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.authEngineVersion": "2",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    "spark.network.crypto.saslFallback": "false",
    "spark.io.encryption.enabled": "true",
}
STANDALONE = "spark://m:7077"


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]"])
def test_local_sessions_make_their_own(master):
    assert secured(master, {}, {}) == ({"spark.authenticate": "true"}, "")


@pytest.mark.parametrize("master", ["yarn", "k8s://https://h:6443"])
def test_so_do_sessions_of_these_clusters_which_encrypt_too(master):
    assert secured(master, {}, {}) == ({"spark.authenticate": "true", **ENCRYPTED}, "")


def test_a_standalone_cluster_has_one_of_its_own():
    with pytest.raises(ConfigurationError, match="secret of the Spark cluster spark://m:7077"):
        secured(STANDALONE, {}, {})
    settings, secret = secured(STANDALONE, {"x": "y"}, {"SETL_SPARK_SECRET": "s"})
    assert secret == "s"
    assert settings == {"x": "y", "spark.authenticate": "true", **ENCRYPTED}
    given = {"spark.authenticate.secret": "t", "spark.io.encryption.enabled": "false"}
    settings, secret = secured(STANDALONE, given, {"SETL_SPARK_SECRET": "s"})
    assert secret == "t"
    assert "spark.authenticate.secret" not in settings
    assert settings["spark.io.encryption.enabled"] == "false"


def test_an_open_cluster_has_to_be_asked_for():
    conf = {"spark.authenticate": "false"}
    assert secured(STANDALONE, conf, {"SETL_SPARK_SECRET": "s"}) == (conf, "")


@pytest.mark.parametrize("master", [STANDALONE, "yarn", "k8s://https://h:6443"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.authenticate", "false"),
        ("spark.network.crypto.enabled", "false"),
        ("spark.network.crypto.authEngineVersion", "1"),
        ("spark.network.crypto.cipher", "AES/CTR/NoPadding"),
        ("spark.network.crypto.saslFallback", "true"),
        ("spark.io.encryption.enabled", "False"),
    ],
)
def test_settings_that_weaken_a_session_on_a_cluster_are_named(master, name, value):
    (said,) = weaknesses(master, {name: value, "spark.cores.max": "2"})
    assert name in said


def test_nothing_is_said_of_settings_that_keep_the_protection():
    assert not list(weaknesses(STANDALONE, {}))
    assert not list(weaknesses(STANDALONE, {**ENCRYPTED, "spark.network.crypto.enabled": "TRUE"}))
    # Where TLS protects the connections, Spark does not use its own encryption.
    tls = {"spark.ssl.rpc.enabled": "true", "spark.network.crypto.enabled": "false"}
    assert not list(weaknesses(STANDALONE, tls))
    assert not list(weaknesses("local[2]", {"spark.io.encryption.enabled": "false"}))
    assert list(weaknesses("local[2]", {"spark.authenticate": "false"}))


@pytest.mark.parametrize("before", [None, "--verbose pyspark-shell"])
def test_the_secret_is_in_a_file_for_the_time_of_the_start(monkeypatch, before):
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    if before:
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", before)
    with handed_over("my secret"):
        arguments = os.environ["PYSPARK_SUBMIT_ARGS"]
        assert "my secret" not in arguments
        assert arguments.endswith(before or "pyspark-shell")
        file = Path(arguments.split()[2])
        assert file.read_text() == "spark.authenticate.secret my secret\n"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not file.exists()
    assert os.environ.get("PYSPARK_SUBMIT_ARGS") == before
    with handed_over(""):
        assert os.environ.get("PYSPARK_SUBMIT_ARGS") == before


@pytest.mark.parametrize("stopped", [False, True])
def test_a_session_that_the_cluster_did_not_take_says_so(stopped):
    java = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: stopped))
    context = cast("Any", SimpleNamespace(_jsc=java))
    if not stopped:
        see_taken(context, STANDALONE)
        return
    with pytest.raises(FatalError, match="spark://m:7077 does not take") as raised:
        see_taken(context, STANDALONE)
    assert "SETL_SPARK_SECRET" in raised.value.hint
    assert "spark.network.crypto" in raised.value.hint
