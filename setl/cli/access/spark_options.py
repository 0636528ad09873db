"""The options of commands that start a Spark session, or import user code as its tasks do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from setl.run.spark.session import SparkSettings

py_files_option = click.option(
    "--py-files",
    multiple=True,
    envvar="SETL_PY_FILES",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A .py, .zip or .egg file with processors; may be repeated. (In SETL_PY_FILES several"
    " are separated as in PATH.)",
)


def shipped(files: Iterable[Path]) -> tuple[str, ...]:
    """The files as Spark takes them."""
    return tuple(str(file.resolve()) for file in files)


def make_importable(files: Iterable[Path]) -> None:
    """Let this process import modules from the files, as Spark's tasks can."""
    for file in files:
        path = str(file.resolve().parent if file.suffix == ".py" else file.resolve())
        if path not in sys.path:
            sys.path.insert(0, path)


_OPTIONS = (
    click.option(
        "--master",
        envvar="SETL_SPARK_MASTER",
        default="local[*]",
        show_default=True,
        help="Spark master: local[N], spark://HOST:PORT, yarn or k8s://….",
    ),
    click.option(
        "--spark-conf",
        multiple=True,
        metavar="NAME=VALUE",
        help="A Spark setting; may be repeated.",
    ),
    click.option(
        "--log-spark",
        envvar="SETL_LOG_SPARK",
        type=click.Choice(("off", "error", "warn", "info", "debug"), case_sensitive=False),
        default="off",
        show_default=True,
        help="The lowest level of Spark's own log that is logged. [env: SETL_LOG_SPARK]",
    ),
    py_files_option,
    click.option(
        "--archives",
        multiple=True,
        envvar="SETL_ARCHIVES",
        metavar="FILE[#FOLDER]",
        help="A .tar.gz, .tgz, .zip or .jar file that is unpacked where tasks run, such as a"
        " packed Python environment; may be repeated. Tasks use FOLDER/bin/python of the first,"
        " unless PYSPARK_PYTHON is set. (In SETL_ARCHIVES several are separated by blanks.)",
    ),
)


def spark_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of a command that gets them as `spark`: a function from a name to settings."""

    @wraps(command)
    def with_settings(
        *arguments: Any,
        master: str,
        spark_conf: tuple[str, ...],
        py_files: tuple[Path, ...],
        archives: tuple[str, ...],
        log_spark: str,
        **further: Any,
    ) -> None:
        conf, files = _settings(spark_conf), shipped(py_files)
        unpacked = _existing(archives)

        def named(name: str) -> SparkSettings:
            # Imported late: Spark takes a second that other commands need not wait.
            from setl.run.spark.session import SparkSettings  # noqa: PLC0415

            return SparkSettings(master, name, conf, files, unpacked, log_level=log_spark.lower())

        command(*arguments, spark=named, **further)

    found: Callable[..., None] = with_settings
    for option in reversed(_OPTIONS):
        found = option(found)
    return found


def _settings(values: Iterable[str]) -> dict[str, str]:
    conf: dict[str, str] = {}
    for item in values:
        name, equals, value = item.partition("=")
        if not equals:
            raise click.BadParameter(f"{item!r} is not NAME=VALUE", param_hint="--spark-conf")
        conf[name] = value
    return conf


def _existing(values: Iterable[str]) -> tuple[str, ...]:
    """Local files by their full path; addresses as they are."""
    found: list[str] = []
    for value in values:
        name, hash_, folder = value.partition("#")
        if "://" not in name:
            if not Path(name).is_file():
                raise click.BadParameter(f"there is no file {name}", param_hint="--archives")
            name = str(Path(name).resolve())
        found.append(f"{name}{hash_}{folder}")
    return tuple(found)
