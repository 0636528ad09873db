"""The zip file in which setl goes to Spark's workers."""

import json
import subprocess
import sys
import zipfile
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

from setl import __version__
from setl.run.spark.own_code import write_own_code

CHECKOUT = Path(__file__).parents[3]

PROBE = """
import json, sys
sys.path.insert(0, sys.argv[1])
import setl
from setl.resources import read_text
import setl.run.runners.tasks, setl.load.worker, setl.transform.expression_tasks
import setl.codec.dts.rows, setl.codec.binlog.rows.decoding, setl.transform.processing
import setl.run.spark.executors
own = {n: m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "setl"}
others = sorted({n.split(".")[0] for n in sys.modules})
print(json.dumps([own, others, len(read_text("schemas", "Record.avsc"))]))
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_own_code(tmp_path_factory.mktemp("code"))


def test_all_of_setl_is_there_and_nothing_else(file):
    with zipfile.ZipFile(file) as archive:
        names = set(archive.namelist())
    sources = {path.relative_to(CHECKOUT).as_posix() for path in (CHECKOUT / "setl").rglob("*.py")}
    data = {
        f"setl/{folder}/{path.name}"
        for folder in ("schemas", "sql")
        for path in (CHECKOUT / folder).iterdir()
    }
    assert names == sources | {f"{name}c" for name in sources} | data


def test_what_tasks_import_comes_from_it_and_is_not_compiled_again(file, tmp_path):
    # -I leaves out the folder that this is started in and PYTHONPATH.
    done = subprocess.run(
        [sys.executable, "-I", "-c", PROBE, str(file)],
        capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    own, others, size = json.loads(done.stdout)
    assert len(own) > 50
    assert all(position.startswith(f"{file}/") for position in own.values())
    assert all(position.endswith(".pyc") for position in own.values())
    assert size > 1000
    # What is not sent along must not be needed.
    assert not {"arbiter", "setl_embedded", "setl_drills", "kazoo", "click"} & set(others)


def test_its_name_changes_with_its_content_only(file, tmp_path, monkeypatch):
    assert file.name.startswith(f"setl-{__version__}-")
    assert write_own_code(tmp_path).name == file.name
    monkeypatch.setattr(
        SourceFileLoader, "get_source", lambda loader, name: f"# {name} as of tomorrow"
    )
    assert write_own_code(tmp_path).name != file.name
