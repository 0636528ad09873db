"""Wheel and source distribution carry all that setl needs, and work without a checkout."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from importlib.metadata import Distribution, version
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement

import setl

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
    assert "setl/docs/troubleshooting.md" in names
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
    package, position, text = done.stdout.split("\n", 2)
    assert package == str(tmp_path / "setl" / "__init__.py")
    assert position == str(tmp_path / "setl" / "schemas" / "Record.avsc")
    assert text == (CHECKOUT / "schemas" / "Record.avsc").read_text()


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sdist")
    return Path(next(SdistBuilder(str(CHECKOUT)).build(directory=str(folder))))


@pytest.fixture(scope="module")
def unpacked(sdist, tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, members=[m for m in archive if m.isfile() or m.isdir()])
    (root,) = folder.iterdir()
    return root


def test_the_source_distribution_builds_the_same_wheel(unpacked, names, tmp_path):
    built = Path(next(WheelBuilder(str(unpacked)).build(directory=str(tmp_path))))
    with zipfile.ZipFile(built) as archive:
        assert set(archive.namelist()) == names


def test_the_source_distribution_carries_what_a_user_reads(unpacked):
    for name in ("README.md", "CHANGELOG.md", "LICENSE", "docs/mkdocs.yml", "deploy/quickstart"):
        assert (unpacked / name).is_file(), name
    assert not (unpacked / ".venv").exists()


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """An environment that has the wheel, and the dependencies but not the checkout of this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", str(python), "install")
    options = ("--no-index", "--no-deps", "--disable-pip-version-check", "--quiet")
    subprocess.run([*pip, *options, str(wheel)], check=True, timeout=120)
    (packages,) = folder.glob("lib/python*/site-packages")
    # A path that site.addsitedir would read .pth files from would bring the editable checkout.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def run_installed(environment, *command, cwd):
    return subprocess.run(
        [str(environment / "bin" / command[0]), *command[1:]],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "HOME": str(cwd)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_an_installed_wheel_works_without_a_checkout(environment, tmp_path):
    done = run_installed(
        environment, "python", "-c", "import setl; print(setl.__file__)", cwd=tmp_path
    )
    assert done.stdout.strip().startswith(str(environment)), done.stdout + done.stderr
    done = run_installed(environment, "setl", "--version", cwd=tmp_path)
    assert done.stdout.strip().endswith(setl.__version__), done.stdout + done.stderr
    done = run_installed(environment, "setl", "drill", "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "channel.yaml").write_text("pipelines: 7\n")
    done = run_installed(environment, "setl", "check", "channel.yaml", cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "channel.yaml" in done.stdout + done.stderr


@pytest.mark.parametrize("extra", ["", "embedded", "otel", "dev"])
def test_each_extra_can_be_satisfied(environment, extra):
    """Of the dependencies that an extra names, this environment has versions that fit."""
    (metadata,) = environment.glob("lib/python*/site-packages/setl-*.dist-info")
    wanted = [Requirement(line) for line in Distribution.at(metadata).requires or ()]
    chosen = [one for one in wanted if one.marker is None or one.marker.evaluate({"extra": extra})]
    assert chosen
    for one in chosen:
        if one.name != "setl":
            assert one.specifier.contains(version(one.name), prereleases=True), str(one)
