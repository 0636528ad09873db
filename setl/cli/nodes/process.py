"""The commands that run a process, `setl node` and `setl relay`, and what both do."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from setl import garbage_collection
from setl.alarms.settings import AlarmSettings
from setl.channel.variables import ALLOWED
from setl.cli.access.cluster import cluster_options
from setl.cli.access.spark_options import spark_options
from setl.cli.access.zookeeper import weaknesses, zookeeper_access
from setl.errors import ConfigurationError
from setl.log import LEVELS, configure
from setl.node.http.exposure import Exposure, host_and_port, host_names, networks
from setl.node.settings import NodeSettings, default_nid
from setl.select.checkpoints.folder import FOLDER_VARIABLE
from setl.select.checkpoints.folder import checkpoint_folder as default_folder

if TYPE_CHECKING:
    from setl.node.engines.engine import Engine
    from setl.run.spark.session import SparkSettings

_log = logging.getLogger(__name__)

_T = TypeVar("_T")
_ALARMS = "setl.alarms"  # where the context keeps what no option says
_ALARMS_FILE = "setl.alarms.file"  # and the file that says it


def _read_config(context: click.Context, _param: click.Parameter, file: Path | None) -> Path | None:
    """Take the file's values as defaults; runs before all other options are looked at."""
    if context.resilient_parsing:
        return file
    from setl.cli.nodes.config import read_config  # noqa: PLC0415

    values = read_config(file, os.environ)
    if "alarms" in values:
        context.meta[_ALARMS], context.meta[_ALARMS_FILE] = values.pop("alarms"), file
    context.default_map = values
    return file


_OPTIONS = (
    click.option(
        "--config",
        envvar="SETL_CONFIG",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        is_eager=True,
        expose_value=False,
        callback=_read_config,
        metavar="FILE",
        help="A configuration file; options and the environment come before it. [env: SETL_CONFIG]",
    ),
    click.option(
        "--print-config", is_flag=True, help="Print what this would run with, and why; run nothing."
    ),
    click.option("--id", "nid", envvar="SETL_NODE_ID", default=default_nid, help="This node's id."),
    click.option(
        "--session-timeout",
        envvar="SETL_SESSION_TIMEOUT",
        type=click.FloatRange(min=1),
        default=10.0,
        show_default=True,
        help="Seconds of silence after which this node counts as dead.",
    ),
    click.option(
        "--http",
        envvar="SETL_HTTP",
        default="127.0.0.1:0",
        show_default=True,
        metavar="HOST:PORT",
        help="Address for status and metrics; port 0 takes any free port.",
    ),
    click.option(
        "--probes",
        envvar="SETL_PROBES",
        default="",
        metavar="HOST:PORT",
        help="A further address for health probes alone, which others cannot keep busy.",
    ),
    click.option(
        "--behind",
        envvar="SETL_HTTP_BEHIND",
        default="",
        metavar="ADDRESS[,ADDRESS]",
        help="Proxies, by address or network, that say in X-Forwarded-For who asks.",
    ),
    click.option(
        "--hosts",
        envvar="SETL_HTTP_HOSTS",
        default="",
        metavar="HOST[,HOST]",
        help="Names under which clients reach it, besides its addresses and the machine's name.",
    ),
    click.option(
        "--console/--no-console",
        default=True,
        envvar="SETL_CONSOLE",
        show_default=True,
        help="Serve pages for people at the same address, too.",
    ),
    click.option(
        "--checkpoint-folder",
        envvar="SETL_CHECKPOINT_FOLDER",
        type=click.Path(file_okay=False),
        default=lambda: str(default_folder(os.environ)),
        metavar="FOLDER",
        help="Files of checkpoints must be below it."
        " [default: the state directory of systemd, else /var/lib/setl]",
    ),
    click.option(
        "--metrics-tables",
        envvar="SETL_METRICS_TABLES",
        type=click.IntRange(min=0),
        default=100,
        show_default=True,
        metavar="N",
        help="Tables of a pipeline that have metrics of their own; all others are one.",
    ),
    click.option(
        "--channel-variables",
        envvar=ALLOWED,
        default="*",
        show_default=True,
        metavar="PATTERNS",
        help="Variables of the environment that channel files may use as ${NAME}, such as"
        " 'SHOP_* DTS_PASSWORD'; never those that begin with SETL_.",
    ),
    click.option(
        "--log-format",
        envvar="SETL_LOG_FORMAT",
        type=click.Choice(("text", "json")),
        default="text",
        show_default=True,
        help="Log lines of text, or one JSON object a line. [env: SETL_LOG_FORMAT]",
    ),
    click.option("--log-json", is_flag=True, hidden=True, help="As --log-format json."),
    click.option(
        "--log-level",
        envvar="SETL_LOG_LEVEL",
        type=click.Choice(LEVELS, case_sensitive=False),
        default="INFO",
        show_default=True,
        help="The lowest level that is logged. [env: SETL_LOG_LEVEL]",
    ),
    cluster_options,
)


def _address(text: str, option: str) -> tuple[str, int]:
    try:
        return host_and_port(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not HOST:PORT", param_hint=option) from None


def _checked(parse: Callable[[str], _T], text: str, option: str) -> _T:
    try:
        return parse(text)
    except ValueError as error:
        raise click.BadParameter(f"{error}, not {text!r}", param_hint=option) from None


def process_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of every command that runs a process.

    The command gets them as `NodeSettings`, its first argument; logging is set up by then.
    """

    @wraps(command)
    def with_settings(  # noqa: PLR0917 - click passes options by name
        print_config: bool,
        nid: str,
        session_timeout: float,
        http: str,
        probes: str,
        behind: str,
        hosts: str,
        log_format: str,
        console: bool,
        checkpoint_folder: str,
        metrics_tables: int,
        channel_variables: str,
        log_json: bool,
        log_level: str,
        zookeeper: str,
        root: str,
        **further: Any,
    ) -> None:
        host, port = _address(http, "--http")
        exposure = Exposure(
            probes=_address(probes, "--probes") if probes else None,
            behind=_checked(networks, behind, "--behind"),
            hosts=_checked(host_names, hosts, "--hosts"),
        )
        if print_config:
            _print_config(click.get_current_context())
            return
        # Stores of checkpoints look there, in commands as in nodes.
        os.environ[FOLDER_VARIABLE] = checkpoint_folder
        refuse_weak(os.environ.get("SETL_HTTP_TOKEN", ""))
        settings = NodeSettings(
            nid=nid,
            zookeeper=zookeeper,
            root=root,
            access=zookeeper_access(os.environ),
            session_timeout=session_timeout,
            http_host=host,
            http_port=port,
            exposure=exposure,
            console=console,
            metrics_tables=metrics_tables,
            alarms=click.get_current_context().meta.get(_ALARMS, AlarmSettings()),
            environment={**os.environ, ALLOWED: channel_variables},
        )
        configure(level=log_level.upper(), as_json=log_json or log_format == "json")
        for weakness in weaknesses(settings.access, zookeeper):
            _log.warning("%s", weakness)
        if not settings.http_token:
            _log.info(
                "the HTTP interface and the console are read-only: SETL_HTTP_TOKEN is not set"
            )
        command(settings, **further)

    found: Callable[..., None] = with_settings
    for option in reversed(_OPTIONS):
        found = option(found)
    return found


_END_OF_SCALAR = "...\n"
_REASONS = {
    ParameterSource.COMMANDLINE: "command line",
    ParameterSource.ENVIRONMENT: "environment",
    ParameterSource.DEFAULT_MAP: "configuration file",
}
_SECRET_VARIABLES = frozenset({
    "SETL_HTTP_TOKEN", "SETL_ZOOKEEPER_DIGEST", "SETL_ZOOKEEPER_SASL",
    "SETL_ZOOKEEPER_KEY_PASSWORD",
})  # fmt: skip


def _print_config(context: click.Context) -> None:
    """Print the settings of a process as a configuration file, each with where it comes from.

    `alarms` is left out: a secret may stand in it as it is, even in an address.
    """
    import yaml  # noqa: PLC0415

    shown = dict(context.params)
    if shown.pop("log_json"):
        shown["log_format"] = "json"
    for name, value in shown.items():
        if name == "print_config":
            continue
        plain: Any = value
        if name == "spark_conf":
            plain = dict(item.split("=", 1) for item in value)
        elif isinstance(value, tuple | list):
            plain = [str(item) for item in cast("Sequence[object]", value)]
        source = context.get_parameter_source(name)
        reason = _REASONS.get(source, "default") if source else "default"
        key = "id" if name == "nid" else name
        text = yaml.safe_dump(plain, default_flow_style=True, width=1_000)
        line = f"{key}: {text.removesuffix(_END_OF_SCALAR).strip()}"
        click.echo(f"{line:<40} # {reason}")
    click.echo(_alarms_line(context.meta.get(_ALARMS, AlarmSettings())))
    if context.meta.get(_ALARMS_FILE):
        click.echo(f"# `alarms` may hold secrets; take it over from {context.meta[_ALARMS_FILE]}")
    secret = [name for name in sorted(os.environ) if name in _SECRET_VARIABLES]
    click.echo(f"# secrets in the environment: {', '.join(secret) or 'none'}")


def _alarms_line(alarms: AlarmSettings) -> str:
    """Whom the node tells of alarms, without secrets; an address may have one in its path."""
    reported = [urlsplit(webhook.url).netloc.rpartition("@")[2] for webhook in alarms.webhooks]
    if alarms.mail is not None:
        reported += [f"{address} at {alarms.mail.host}" for address in alarms.mail.to]
    return f"# alarms go to: {', '.join(reported) or 'nobody'}"


def run_process(settings: NodeSettings, engine: Engine) -> None:
    """Run a process until SIGTERM, SIGINT or SIGHUP; it drains what it leads and ends then."""
    # Imported late: servers' clients take a second that other commands need not wait.
    from setl.node.host.tuning import share_arenas  # noqa: PLC0415

    share_arenas()
    with garbage_collection.paused():
        from setl.node.process import NodeProcess  # noqa: PLC0415

    try:
        process = NodeProcess(settings, engine, set_turn=sys.setswitchinterval)
    except OSError as error:
        raise ConfigurationError(
            f"the HTTP interface cannot be at {error}",
            hint="Choose another address with --http or SETL_HTTP (that of probes alone with"
            " --probes or SETL_PROBES); port 0 takes any free one",
        ) from error
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # One that is started with nohup stays when its terminal is closed.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda _number, _frame: process.stop())
    process.run()


SHORTEST = 16
_OF_EXAMPLES = re.compile(r"change[-_ ]?me", re.IGNORECASE)


def refuse_weak(token: str) -> None:
    """Have a process start with a good token, or with none.

    Raises:
        ConfigurationError: the token is short, or that of an example; the text does not show it.
    """
    if not token:
        return
    if _OF_EXAMPLES.match(token):
        wrong = "is still that of the example"
    elif len(token) < SHORTEST:
        wrong = f"has fewer than {SHORTEST} characters"
    else:
        return
    raise ConfigurationError(
        f"the token in SETL_HTTP_TOKEN {wrong}",
        hint="Take a random one, the same for all nodes: `openssl rand -hex 32` makes one",
    )


@click.command()
@click.option(
    "--traces/--no-traces",
    default=False,
    envvar="SETL_TRACES",
    show_default=True,
    help="Send a trace of each batch by OpenTelemetry, to OTEL_EXPORTER_OTLP_ENDPOINT.",
)
@spark_options
@process_options
def node(settings: NodeSettings, spark: Callable[[str], SparkSettings], *, traces: bool) -> None:
    """Run a node.

    The node stands by for every started channel and leads the pipelines it wins. Pipelines to
    Kafka are led by `setl relay`.
    """
    # Imported late: Spark takes a second that other commands need not wait.
    with garbage_collection.paused():
        from setl.node.engines.spark import SparkEngine  # noqa: PLC0415

    tracer = None
    if traces:
        from setl.run.tracing.choice import tracer_of  # noqa: PLC0415

        tracer = tracer_of(settings.nid)
    session = spark("setl")
    settings = replace(
        settings, spark_master=session.master, spark_folders=session.conf.get("spark.local.dir", "")
    )
    run_process(settings, SparkEngine(session, tracer))


@click.command()
@process_options
def relay(settings: NodeSettings) -> None:
    """Run a relay.

    A relay is a node without Spark. It stands by for the pipelines that write to Kafka (`type:
    dts`) and leads those it wins.
    """
    # Imported late: what it needs takes time that other commands need not wait.
    with garbage_collection.paused():
        from setl.node.engines.engine import RelayEngine  # noqa: PLC0415

    run_process(settings, RelayEngine())
