"""The wheel carries all that setl needs at run time, and works with no checkout beside it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    return Path(next(WheelBuilder(str(CHECKOUT)).build(directory=str(folder))))


@pytest.fixture(scope="module")
def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def files_below(folder, *, leave_out=()):
    return {
        path.relative_to(folder.parent).as_posix()
        for path in folder.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and not path.name.startswith(".")
        and path.name not in leave_out
    }


def test_schemas_and_statements_lie_inside_the_package(names):
    for folder in ("schemas", "sql"):
        wanted = {f"setl/{name}" for name in files_below(CHECKOUT / folder)}
        assert wanted
        assert wanted <= names
    assert "setl/schemas/Record.avsc" in names
    examples = {path.name for path in (CHECKOUT / "deploy" / "examples").glob("*.yaml")}
    assert {f"setl/examples/{name}" for name in examples} <= names
    assert "node.yaml" in examples
    for name in ("setl@.service", "setl.sysusers.conf", "secrets.env"):
        assert f"setl/systemd/{name}" in names
    assert "setl/schemas/channel.schema.json" in names
    assert any(name.startswith("setl/sql/") and name.endswith(".sql") for name in names)


@pytest.mark.parametrize(
    "package", ["setl", "arbiter", "deploy/setl_embedded", "deploy/setl_drills"]
)
def test_every_file_of_a_package_is_there(names, package):
    wanted = files_below(CHECKOUT / package)
    assert any(name.endswith("__init__.py") for name in wanted)
    assert wanted <= names


def test_nothing_else_is_there(names):
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"setl", "arbiter", "setl_embedded", "setl_drills"}
    assert not any("__pycache__" in name for name in names)


def test_the_command_and_the_licence_are_declared(wheel, names):
    (entry_points,) = (name for name in names if name.endswith("entry_points.txt"))
    with zipfile.ZipFile(wheel) as archive:
        declared = archive.read(entry_points)
    assert b"setl = setl.cli.entry:main" in declared
    assert b"drill = setl_drills.command:drill" in declared
    assert any(name.endswith("LICENSE") for name in names)


def test_resources_are_found_in_an_unpacked_wheel(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import setl, setl.resources as resources\n"
        "print(setl.__file__)\n"
        "print(resources.resource('schemas', 'Record.avsc'))\n"
        "print(resources.read_text('schemas', 'Record.avsc'), end='')\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program, str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    package, place, text = done.stdout.split("\n", 2)
    assert package == str(tmp_path / "setl" / "__init__.py")
    assert place == str(tmp_path / "setl" / "schemas" / "Record.avsc")
    assert text == (CHECKOUT / "schemas" / "Record.avsc").read_text()
