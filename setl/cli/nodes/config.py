"""The configuration file of a node: checked as a whole, before any option is looked at.

The command line comes before the environment, the environment before the file, and the file before
the defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError

from setl.channel.error_texts import problems_of
from setl.channel.fields.checks import Name, Text
from setl.channel.text.document import read_channel_definition
from setl.channel.text.problems import ChannelFileError, Problem
from setl.channel.text.references import substitute
from setl.channel.text.strict_model import StrictModel, problem
from setl.channel.variables import ALLOWED
from setl.cli.nodes.alarm_config import AlarmConfig
from setl.node.http.exposure import host_and_port, host_names, networks
from setl.select.checkpoints.folder import FOLDER_VARIABLE


def _address(value: str) -> str:
    if value:
        try:
            host_and_port(value)
        except ValueError:
            raise problem("must be HOST:PORT, such as 0.0.0.0:8080") from None
    return value


def _networks(value: str) -> str:
    try:
        networks(value)
    except ValueError as error:
        raise problem(str(error)) from None
    return value


def _hosts(value: str) -> str:
    try:
        host_names(value)
    except ValueError as error:
        raise problem(str(error)) from None
    return value


class NodeConfig(StrictModel):
    """What a configuration file may hold; all but `alarms` are options, too."""

    id: Name | None = None
    zookeeper: Text | None = None
    root: Text | None = None
    session_timeout: float | None = Field(default=None, ge=1)
    http: Annotated[str, AfterValidator(_address)] | None = None
    probes: Annotated[str, AfterValidator(_address)] | None = None
    behind: Annotated[str, AfterValidator(_networks)] | None = None
    hosts: Annotated[str, AfterValidator(_hosts)] | None = None
    console: bool | None = None
    checkpoint_folder: Text | None = None
    metrics_tables: int | None = Field(default=None, ge=0)
    log_format: Literal["text", "json"] | None = None
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] | None = None
    master: Text | None = None
    log_spark: Literal["off", "error", "warn", "info", "debug"] | None = None
    alarms: AlarmConfig | None = None
    spark_conf: dict[Text, str] | None = None
    traces: bool | None = None
    py_files: list[Text] | None = None
    archives: list[Text] | None = None
    channel_variables: Text | None = None


VARIABLES: Mapping[str, str] = {
    "id": "SETL_NODE_ID",
    "zookeeper": "SETL_ZOOKEEPER",
    "root": "SETL_ROOT",
    "session_timeout": "SETL_SESSION_TIMEOUT",
    "http": "SETL_HTTP",
    "probes": "SETL_PROBES",
    "behind": "SETL_HTTP_BEHIND",
    "hosts": "SETL_HTTP_HOSTS",
    "console": "SETL_CONSOLE",
    "checkpoint_folder": FOLDER_VARIABLE,
    "metrics_tables": "SETL_METRICS_TABLES",
    "log_format": "SETL_LOG_FORMAT",
    "log_level": "SETL_LOG_LEVEL",
    "master": "SETL_SPARK_MASTER",
    "log_spark": "SETL_LOG_SPARK",
    "traces": "SETL_TRACES",
    "channel_variables": ALLOWED,
}
"""Variables of the environment that hold one value of the configuration."""

_WORDS: Mapping[str, Callable[[str], str]] = {
    "log_level": str.upper,
    "log_format": str.lower,
    "log_spark": str.lower,
}


def read_config(file: Path | None, environment: Mapping[str, str]) -> dict[str, Any]:
    """What a file says, as values of click's options.

    Args:
        file: the file; None for none.
        environment: its variables are checked, too, and told of together with the file.

    Raises:
        ConfigurationError: the file cannot be read.
        ChannelFileError: anything is wrong in the file or in the environment; lists everything.
    """
    content: Mapping[str, Any] = {}
    problems: list[Problem] = []
    if file is not None:
        definition = read_channel_definition(file, what="must be a mapping of keys to values")
        content = definition
        problems += [*definition.problems, *_problems(dict(definition), definition.lines)]
        # Secrets stand in the environment, as those of channels do.
        resolved, missing = substitute({"alarms": definition.get("alarms")}, environment)
        content = {**definition, **resolved}
        problems += missing
        if not problems:  # what only shows once a reference has its value
            problems += _problems(resolved, definition.lines, definition)
    given = {
        key: _WORDS[key](environment[name]) if key in _WORDS else environment[name]
        for key, name in VARIABLES.items()
        if environment.get(name)
    }
    problems += [Problem(VARIABLES[wrong.path], wrong.message) for wrong in _problems(given, {})]
    if problems:
        raise ChannelFileError(problems, str(file or "the environment"))
    values = {key: value for key, value in content.items() if value is not None}
    if "alarms" in values:
        values["alarms"] = AlarmConfig.model_validate(values["alarms"]).settings()
    if "id" in values:
        values["nid"] = values.pop("id")
    if "spark_conf" in values:
        values["spark_conf"] = [f"{name}={text}" for name, text in values["spark_conf"].items()]
    return values


def _problems(
    content: Mapping[str, Any], lines: Mapping[Any, int], written: Mapping[str, Any] | None = None
) -> list[Problem]:
    """All that is wrong; messages repeat what was written, not what a reference stands for."""
    try:
        NodeConfig.model_validate(content)
    except ValidationError as error:
        return sorted(problems_of(error, written or content, lines), key=lambda p: p.line or 0)
    return []
