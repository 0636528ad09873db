"""Every `setl` command that is shown or named exists, with the options and arguments given."""

import ast
import re
import shlex

import click
import pytest

from setl.cli.main import cli

from .pages import ROOT, blocks, pages, prose

_ASSIGNMENT = re.compile(r"[A-Z_][A-Z_0-9]*=")
_INLINE = re.compile(r"`setl ([^`]+)`")


def commands_of(text):
    """The words of each `setl` command in a block."""
    lines = [line for line in re.sub(r"\\\n", " ", text).splitlines() if "setl " in line]
    for line in lines:
        words = shlex.split(line.removeprefix("$ "), comments=True)
        part = []
        for word in [*words, "&&"]:
            if word not in {"&&", "|", ";", "||", ">"}:
                part.append(word)
                continue
            while part and _ASSIGNMENT.match(part[0]):
                part.pop(0)
            if part and part[0] == "setl":
                yield part[1:]
            part = []


SHOWN = [
    pytest.param(words, id=f"{block}: {shlex.join(words)}")
    for block in blocks("console", "bash", "sh")
    for words in commands_of(block.text)
]


BY_DEFAULT = {"load": "begin"}  # what a group does with words that are none of its commands


def check(words, *, whole=True):
    """Fail if click would refuse these words, whatever files and servers there are.

    If they are not a whole command, more of them may follow.
    """
    command, context, rest = cli, click.Context(cli, info_name="setl"), list(words)
    while isinstance(command, click.Group):
        if not (rest or whole):
            return
        assert rest, f"{context.command_path} alone does nothing"
        name = rest.pop(0)
        if command.name in BY_DEFAULT and command.get_command(context, name) is None:
            name, rest = BY_DEFAULT[command.name], [name, *rest]
        found = command.get_command(context, name)
        assert found is not None, f"{context.command_path} has no command {name}"
        command, context = found, click.Context(found, info_name=name, parent=context)
    # Says which option it does not know, or which value is missing.
    values, further, _ = command.make_parser(context).parse_args(rest)
    assert not further, f"{context.command_path} does not take {further}"
    for parameter in command.params:
        given = values.get(parameter.name)
        if given is None or given in ((), []):
            assert not (parameter.required and whole), (
                f"{context.command_path} needs {parameter.name}"
            )
        elif isinstance(parameter.type, click.Choice):
            for one in given if isinstance(given, (list, tuple)) else [given]:
                parameter.type.convert(one, parameter, context)


def test_there_are_some():
    assert len(SHOWN) > 50


@pytest.mark.parametrize("words", SHOWN)
def test_it_exists(words):
    check(words)


@pytest.mark.parametrize(
    "line",
    [
        "setl begin shop",
        "setl",
        "setl start shop --fast",
        "setl position move shop",
        "setl position reset shop",
        "setl start shop another",
        "setl list -o xml",
    ],
)
def test_what_does_not_exist_is_found(line):
    (words,) = commands_of(f"$ {line}  # a comment")
    with pytest.raises((AssertionError, click.UsageError)):
        check(words)


def options_below(command):
    found = set()
    for parameter in command.params:
        found |= {*parameter.opts, *parameter.secondary_opts}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found |= options_below(command.get_command(context, name))
    return found


def mentions():
    for page in pages():
        for found in _INLINE.finditer(prose(page).replace(r"\|", "|")):
            yield pytest.param(found[1], id=f"{page.name}: {found[1]}")


@pytest.mark.parametrize("mention", list(mentions()))
def test_a_mention_in_the_text_names_what_exists(mention):
    """In the text a command may be cut short; its names and options are real all the same."""
    context = click.Context(cli)
    name, *rest = mention.replace("[", " ").replace("]", " ").split()
    command = cli.get_command(context, name)
    if name.startswith("-") or not re.fullmatch(r"[a-z]+", name):
        assert name in {"--help", "--version"}
        return
    assert command is not None, name
    if isinstance(command, click.Group) and rest and re.match("[a-z]", rest[0]):
        known = set(command.list_commands(click.Context(command)))
        assert set(rest[0].split("|")) <= known
    known = options_below(command)
    assert {word.partition("=")[0] for word in rest if word.startswith("-")} <= known


def texts_in(program):
    """The line and text of each string of a program; values that are put in are X."""
    parts, found = set(), []
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.JoinedStr):
            parts.update(map(id, node.values))
            values = [v.value if isinstance(v, ast.Constant) else "X" for v in node.values]
            found.append((node.lineno, "".join(map(str, values))))
        elif isinstance(node, ast.Constant) and id(node) not in parts:
            found.append((node.lineno, str(node.value)))
    return found


def check_named(words):
    """Fail if no command begins with these words."""
    words = words[: words.index(">")] if ">" in words else words
    try:
        check(words, whole=False)
    except click.BadOptionUsage:
        check([*words, "X"], whole=False)  # cut short behind an option


def test_commands_that_messages_name_exist():
    named, wrong = 0, []
    for path in sorted(path for name in ("setl", "deploy") for path in (ROOT / name).rglob("*.py")):
        program = path.read_text(encoding="utf-8")
        for line, text in texts_in(program) if "setl " in program else ():
            for found in _INLINE.finditer(text):
                if found[1] == "X":
                    continue  # all of it is put in
                named += 1
                try:
                    check_named(shlex.split(found[1]))
                except (AssertionError, click.UsageError) as error:
                    wrong.append(f"{path.relative_to(ROOT)}:{line}: `setl {found[1]}`: {error}")
    assert named > 150
    assert not wrong


@pytest.mark.parametrize(
    "words", ["begin shop", "start shop --fast", "stop a b", "position move x"]
)
def test_a_message_that_names_what_does_not_exist_is_found(words):
    with pytest.raises((AssertionError, click.UsageError)):
        check_named(words.split())
