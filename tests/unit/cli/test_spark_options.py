"""The options of commands that start a Spark session."""

import click
from click.testing import CliRunner

from setl.cli.access.spark_options import spark_options


@click.command()
@spark_options
@click.option("--other", default="x")
def show(spark, other):
    settings = spark("name")
    click.echo([
        settings.master, settings.name, dict(settings.conf), settings.py_files,
        settings.archives, other,
    ])  # fmt: skip


def shown(*arguments, **environment):
    done = CliRunner().invoke(show, arguments, env=environment)
    return done.exit_code, done.output


def test_nothing_given():
    assert shown("--other", "y") == (0, "['local[*]', 'name', {}, (), (), 'y']\n")


def test_settings_files_and_archives(tmp_path):
    env, rules = tmp_path / "env.tar.gz", tmp_path / "rules.py"
    for file in (env, rules):
        file.touch()
    status, output = shown(
        "--master", "yarn", "--spark-conf", "a=b=c", "--spark-conf", "d=", "--py-files", str(rules),
        "--archives", f"{env}#environment", "--archives", "hdfs://n/more.zip",
    )  # fmt: skip
    assert status == 0
    assert "{'a': 'b=c', 'd': ''}" in output
    assert f"('{rules}',)" in output
    assert f"('{env}#environment', 'hdfs://n/more.zip')" in output


def test_archives_from_the_environment(tmp_path):
    for name in ("a.zip", "b.zip"):
        (tmp_path / name).touch()
    _, output = shown(SETL_ARCHIVES=f"{tmp_path}/a.zip#a {tmp_path}/b.zip", SETL_SPARK_MASTER="m")
    assert f"('{tmp_path}/a.zip#a', '{tmp_path}/b.zip')" in output
    assert "['m'," in output


def test_what_is_not_there_or_no_setting_is_refused(tmp_path):
    status, output = shown("--archives", f"{tmp_path}/none.zip#x")
    assert status == 2
    assert "there is no file" in output
    status, output = shown("--spark-conf", "a")
    assert status == 2
    assert "'a' is not NAME=VALUE" in output
