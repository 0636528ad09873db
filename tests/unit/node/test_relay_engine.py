"""What a relay has imported when it is ready to lead."""

import subprocess
import sys

PROGRAM = """
import sys
from setl.node.engines.engine import RelayEngine
RelayEngine().start(print, bool)
print(*sorted({"fastavro", "setl.codec.dts.wire", "setl.run.relay.assembly"} & set(sys.modules)))
"""


def test_a_take_over_does_not_wait_for_what_all_relays_write():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.split() == ["fastavro", "setl.codec.dts.wire", "setl.run.relay.assembly"]
