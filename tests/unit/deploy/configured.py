"""What a process would be run with, of the configuration files in `deploy/`."""

from unittest.mock import patch

import yaml

from setl.cli.main import cli, run


def options(name="node"):
    """The variables of the environment that a command reads."""
    command = cli.get_command(None, name)  # pyright: ignore[reportArgumentType]
    assert command is not None
    return {str(each.envvar) for each in command.params if each.envvar}


def settings(arguments, environment, capsys):
    """What `setl ARGUMENTS --print-config` prints, as values."""
    with patch.dict("os.environ", environment):
        status = run([*arguments, "--print-config"])
    said = capsys.readouterr()
    assert status == 0, said.err
    return yaml.safe_load(said.out)
