"""Which Spark sessions know a secret, and where it stands meanwhile."""

import os
import stat
from pathlib import Path

import pytest

from setl.errors import ConfigurationError
from setl.run.spark.security import handed_over, secured

ENCRYPTED = {"spark.network.crypto.enabled": "true", "spark.io.encryption.enabled": "true"}
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
