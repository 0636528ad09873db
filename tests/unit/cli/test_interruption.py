"""Ctrl-C ends a command soon, with one line, whatever it is in the middle of."""

import signal
import subprocess
import sys

import pytest

from setl.cli.terminal.interruption import EXIT_INTERRUPTED

# A thread that nobody can stop, an answer that never comes, and clean-up that fails aloud.
_STUCK = """
import os, socket, sys, threading
from setl.cli import main as command

def never_ending():
    threading.Event().wait()

def stuck(**options):
    threading.Thread(target=never_ending).start()
    one, other = socket.socketpair()
    print("begun", flush=True)
    try:
        {wait}
    finally:
        print("a traceback of a library", file=sys.stderr)
        os.write(2, b"and of another\\n")

from setl.cli.inspection.views import list_
list_.callback = stuck
sys.argv = ["setl", "list"]
command.main()
"""


def interrupted(program, *signals):
    """Run a program until it has begun, and interrupt it; its status and what it said then."""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        for number in signals or (signal.SIGINT,):
            process.send_signal(number)
        _, said = process.communicate(timeout=280)
    finally:
        process.kill()
    return process.returncode, said


@pytest.mark.parametrize("wait", ["one.recv(1)", "never_ending()"])
def test_one_line_and_the_end(wait):
    program = _STUCK.format(wait=wait)
    status, said = interrupted(program)
    assert said == "interrupted\n"
    assert status == EXIT_INTERRUPTED


# Clean-up that swallows the interrupt and goes on for ever: the end comes all the same.
_DEAF = """
import sys, time
from setl.cli.terminal.interruption import end_at_interrupt
end_at_interrupt(grace=0.1)
begun = False
while True:
    try:
        if not begun:
            begun = True
            print("begun", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        pass
"""


def test_what_does_not_listen_is_ended():
    status, said = interrupted(_DEAF)
    assert (status, said) == (EXIT_INTERRUPTED, "interrupted\n")


_AT_ONCE = """
import os, signal, sys

class Meddling:
    def find_spec(self, name, *_):
        if name == "setl.cli.main":
            os.kill(os.getpid(), signal.SIGINT)
            sum(range(1_000_000))  # the handler runs between two steps of the interpreter

sys.meta_path.insert(0, Meddling())
sys.argv = ["setl", "list"]
from setl.cli.entry import main
main()
"""


def test_ctrl_c_while_the_command_is_read_leaves_one_line():
    done = subprocess.run(
        [sys.executable, "-c", _AT_ONCE], capture_output=True, text=True, timeout=280, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (EXIT_INTERRUPTED, "", "interrupted\n")


_WAITING = """
import signal
from setl.cli.terminal.interruption import end_at_interrupt, going_on

end_at_interrupt()
with going_on("something that is over"):
    pass
with going_on("the load goes on"):
    print("begun", flush=True)
    signal.pause()
"""


def test_what_goes_on_without_the_command_is_reported():
    _, said = interrupted(_WAITING)
    assert said == "interrupted; the load goes on\n"


# What is put in order takes a moment; the shell's SIGHUP comes after that of its terminal.
_LEFT = """
import signal, sys, time
from setl.cli.terminal.interruption import interrupt_when_left
signal.signal(signal.SIGHUP, signal.{hangup})  # the tests may run under nohup themselves
interrupt_when_left()
try:
    print("begun", flush=True)
    time.sleep({seconds})
except KeyboardInterrupt:
    time.sleep(0.2)
    print("put back", file=sys.stderr)
"""


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_command_that_is_left_alone_puts_things_in_order_once(number):
    program = _LEFT.format(hangup="SIG_DFL", seconds=60)
    assert interrupted(program, number, number, signal.SIGHUP) == (0, "put back\n")


def test_nohup_stores_its_meaning():
    program = _LEFT.format(hangup="SIG_IGN", seconds=0.1)
    assert interrupted(program, signal.SIGHUP) == (0, "")
