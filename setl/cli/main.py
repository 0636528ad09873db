"""The `setl` command: puts the subcommands together and turns errors into exit codes.

Exit codes: 0 done; 1 done, and the answer is no (differences, findings); 2 wrong usage or
configuration; 3 the cluster or a server could not be reached; 4 any other failure.
"""

from __future__ import annotations

import sys

import click

from arbiter.port import ArbiterError, Unreachable
from setl import __version__
from setl.cli.channels import apply, check, pause, start, stop
from setl.cli.run_node import node
from setl.cli.verifying import verify
from setl.cli.views import list_, status
from setl.errors import ConfigurationError, SetlError, TransientError

EXIT_NO = 1
EXIT_CONFIGURATION = 2
EXIT_UNREACHABLE = 3
EXIT_FAILURE = 4


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="setl")
def cli() -> None:
    """Keep databases in step: MySQL to MySQL or Elasticsearch, one way or both ways."""


for command in (node, check, apply, start, pause, stop, list_, status, verify):
    cli.add_command(command)


def main() -> None:
    """Entry point of the console script."""
    try:
        cli(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_CONFIGURATION)
    except click.Abort:
        sys.exit(130)
    except (Unreachable, TransientError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(EXIT_UNREACHABLE)
    except ConfigurationError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(EXIT_CONFIGURATION)
    except (SetlError, ArbiterError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(EXIT_FAILURE)
