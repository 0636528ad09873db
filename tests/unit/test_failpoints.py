import re
import subprocess
import sys
from pathlib import Path

import pytest

import setl
from setl import failpoints
from setl.errors import TransientError


@pytest.fixture
def armed(tmp_path, monkeypatch):
    monkeypatch.setattr(failpoints, "_folder", str(tmp_path))
    return tmp_path


def test_a_point_that_is_not_armed_does_nothing(armed):
    failpoints.reached("select.batch")
    assert list(armed.iterdir()) == []


def test_a_point_strikes_once(armed):
    (armed / "select.batch").write_text("error\n")
    with pytest.raises(TransientError, match=r"select\.batch"):
        failpoints.reached("select.batch")
    failpoints.reached("select.batch")
    assert [p.name for p in armed.iterdir()] == ["select.batch.taken"]


def test_who_waits_for_a_strike_may_remove_it_and_arm_the_point_again(armed, monkeypatch):
    def rename(path, taken):
        path.unlink()  # as if it were renamed, and that removed at once

    monkeypatch.setattr(Path, "rename", rename)
    (armed / "select.batch").write_text("error")
    with pytest.raises(TransientError):
        failpoints.reached("select.batch")
    (armed / "select.batch").touch()  # it is being written
    failpoints.reached("select.batch")
    assert (armed / "select.batch").exists()


def test_without_a_folder_nothing_is_looked_for(monkeypatch):
    monkeypatch.setattr(failpoints, "_folder", "")
    monkeypatch.setattr(failpoints, "_strike", None)  # calling it would fail
    failpoints.reached("select.batch")


def test_what_nobody_understands_is_an_error(armed):
    (armed / "select.batch").write_text("explode")
    with pytest.raises(ValueError, match="explode"):
        failpoints.reached("select.batch")


def test_hanging(armed, monkeypatch):
    slept = []
    monkeypatch.setattr(failpoints.time, "sleep", slept.append)
    (armed / "select.batch").write_text("hang 20")
    failpoints.reached("select.batch")
    assert slept == [20.0]


@pytest.mark.parametrize("action", ["kill", "kill node"])
def test_killing_ends_the_process_there(tmp_path, action):
    (tmp_path / "select.batch").write_text(action)
    code = (
        "from setl import failpoints; failpoints.declare_node();"
        "failpoints.reached('select.batch'); print('past')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": "", failpoints.FOLDER: str(tmp_path)},
        cwd=Path(setl.__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (-9, ""), done.stderr


def test_the_points_of_the_code_are_those_of_the_list():
    sources = Path(setl.__file__).parent.rglob("*.py")
    used = {
        point
        for source in sources
        for point in re.findall(r'failpoints\.reached\("([^"]+)"\)', source.read_text())
    }
    assert used == set(failpoints.POINTS)
