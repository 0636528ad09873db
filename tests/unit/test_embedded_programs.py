import os

import pytest

from setl_embedded import programs
from setl_embedded.errors import EmbeddedError


@pytest.fixture(autouse=True)
def _forget_what_was_found():
    programs.java.cache_clear()
    yield
    programs.java.cache_clear()


def fake_java(folder, version):
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("shown", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21.0.1" 2023-10-17', 21),
        ("no such thing", 0),
    ],
)
def test_java_major_version(shown, version):
    assert programs.java_major_version(shown) == version


def test_java_home_wins_over_path(monkeypatch, tmp_path):
    wanted = fake_java(tmp_path / "home", "21.0.1")
    fake_java(tmp_path / "path", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"), prepend=os.pathsep)
    assert programs.java() == str(wanted)


def test_old_java_is_refused_with_what_to_do(monkeypatch, tmp_path):
    fake_java(tmp_path, "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EmbeddedError, match=r"is Java 11; install Java 17 or newer"):
        programs.java()


def test_missing_java_is_said(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmbeddedError, match=r"java was not found.*openjdk-17-jre-headless"):
        programs.java()


def test_java_home_without_java_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EmbeddedError, match="point JAVA_HOME at one"):
        programs.java()


def test_server_programs_are_found_outside_path(monkeypatch, tmp_path):
    program = tmp_path / "mariadbd"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(programs, "_SYSTEM_FOLDERS", (str(tmp_path),))
    assert programs.mariadb_program("mariadbd") == str(program)
    with pytest.raises(EmbeddedError, match="mariadb-nothing was not found"):
        programs.mariadb_program("mariadb-nothing")


def test_zookeeper_runs_from_the_jars_of_pyspark():
    jars = [os.path.basename(jar) for jar in programs.zookeeper_classpath().split(os.pathsep)]  # noqa: PTH119
    assert any(jar.startswith("zookeeper-3") for jar in jars)
    assert len(jars) < 60
