"""One of everything that a release stores for the next one: znodes, checkpoints, dead letters.

``python -m tests.stored_samples > tests/unit/data/releases/NAME.json`` stores what the release on
the path writes.
"""

import json
import sys

from arbiter import payloads
from arbiter.values import (
    ChannelState,
    HistoryItem,
    LeaderLockStatus,
    NodeInfo,
    OperatorAction,
    PipelineId,
    Signal,
    SignalKind,
)
from setl.load.deadletters.dead_letter import content_from_text, content_to_text
from setl.model.change import ABSENT, Op
from setl.model.checkpoint import Checkpoint
from setl.model.faulty import RawRecord, SourceChange, TargetRow
from setl.model.load_request import LoadRequest
from setl.model.position import BinlogOrigin, BinlogPosition, KafkaOrigin, KafkaPosition
from setl.model.schema import Column, Kind, RowSchema
from setl.model.standing import (
    DifferingRow,
    RangeRepair,
    TableFinding,
    Verification,
    VerificationPass,
    VerificationPosition,
)
from setl.model.table_load import TableLoad
from setl.operate.cutover.steps import CutOver, Step

SHOP = PipelineId("shop", "a-to-b")
DEFINITION = {"channel": "shop", "pipelines": [{"name": "a-to-b", "tables": [{"from": "shop.t"}]}]}
BINLOG = BinlogPosition("mysql-bin.000017", 4711, "0-1-99", BinlogOrigin("uuid-1", 101, 1760000000))
KAFKA = KafkaPosition("shop", 0, 815, 1760000001, 123456, KafkaOrigin("cluster-1", "topic-1"))
LOAD = TableLoad(
    "000001", ("shop.t", "shop.u"), ("shop.*",), table="shop.t", after=(7, b"\xff", None), rows=42,
    begun=1760000002.5, taken=("shop.*",),
)  # fmt: skip
FINDING = TableFinding(
    "shop.t", "shop.t", missing=1, different=2, at=1760000003.0,
    rows=(DifferingRow("7", "different", ("v",)),),
)  # fmt: skip
COLUMNS = (Column("id", Kind.INTEGER), Column("v", Kind.TEXT))


def samples():
    """Name → text, of everything."""
    znodes = {
        "node": payloads.node_payload(
            NodeInfo(
                "n1", "host-1", 7, "http://host-1:8080", 1760000000.0, not_ready={SHOP: "lacks X"}
            )
        ),
        "channel": payloads.channel_payload("shop", ChannelState.PAUSE, DEFINITION),
        "mainstem": payloads.leader_lock_payload("n1", LeaderLockStatus.OVERTAKE, 255, 1000, 7),
        "epoch": payloads.epoch_payload(1000),
        "signal": payloads.signal_payload(
            Signal(SignalKind.SWITCHOVER, to="n2", at=1760000009.0, leader="n1", epoch=12, by="me")
        ),
        "position": payloads.position_payload("shop/a-to-b", Checkpoint(KAFKA).to_json()),
        "load": payloads.load_payload(
            LoadRequest(
                tables=("shop.t",), key=("id",), keys=((1,), (2,)), reason="repair"
            ).to_json()
        ),
        "cutover": payloads.cutover_payload(
            "shop/a-to-b",
            CutOver(Step.CHECK, 1760000000.0, "me", "uuid-1", {"read_only": "OFF"}, True).to_json(),
        ),
        "verification": payloads.verification_payload("shop/a-to-b", _verification().to_json()),
        "history": payloads.history_payload(
            HistoryItem(12, "n1", "nobody leads", 1760000000.0, 1.5, 3, "no such table")
        ),
        "action": payloads.action_payload(
            OperatorAction("me", "start", "shop", 1760000000.0, "done", 1760000001.0)
        ),
    }
    checkpoints = {
        "checkpoint of a binlog": Checkpoint(
            BINLOG,
            BinlogPosition("mysql-bin.000017", 5000),
            1760000000.0,
            2,
            99,
            1,
            True,
            LOAD,
            (("orders", "kQ1ZzXvUQ0e7l9r1n2m3Aw orders-2"),),
        ),
        "checkpoint of Kafka": Checkpoint(KAFKA, timestamp=1760000001.0),
    }
    letters = {
        "record": RawRecord("dts", b"\x00\xff", (b"a",), ("shop", "t")),
        "change": SourceChange(
            RowSchema("shop", "t", COLUMNS, (0,), ((1,),)),
            Op.UPDATE,
            (1, "é"),
            (1, ABSENT),
            True,
            5,
        ),
        "row": TargetRow(("shop", "t"), COLUMNS, (0,), (1, float("inf")), False, "orders", None),
    }
    return {
        **{f"znode: {name}": data.decode() for name, data in znodes.items()},
        **{name: json.dumps(each.to_json()) for name, each in checkpoints.items()},
        **{f"dead letter: {name}": content_to_text(each) for name, each in letters.items()},
    }


def _verification():
    return Verification(
        epoch=12, since=1760000000.0, now=VerificationPass(3, 1760000000.0, rows=10, found=1),
        rows_expected=100, position=VerificationPosition("shop.t", "shop.t", (7,), FINDING),
        repair=RangeRepair(("000002",), 1, 1, FINDING),
        last=VerificationPass(2, ended=1759999999.0), findings=(FINDING,),
    )  # fmt: skip


def _leader_lock(data):
    read = payloads.read_leader_lock(data, created=0, owner=255)
    return payloads.leader_lock_payload(
        read.nid, read.status, read.session, read.epoch, read.number
    )  # fmt: skip


def _channel(data):
    read = payloads.read_channel("shop", data, 0)
    return payloads.channel_payload(read.name, read.state, read.definition)


def _position(data):
    read = Checkpoint.from_json(payloads.read_position("shop/a-to-b", data))
    return payloads.position_payload("shop/a-to-b", read.to_json())


def _load(data):
    read = LoadRequest.from_json("000001", payloads.read_load(data) or {}, 0)
    return payloads.load_payload(read.to_json())


def _cutover(data):
    read = CutOver.from_json(payloads.read_cutover("shop/a-to-b", data))
    return payloads.cutover_payload("shop/a-to-b", read.to_json())


def _standing(data):
    read = Verification.from_json(payloads.read_verification(data))
    return payloads.verification_payload("shop/a-to-b", read.to_json())


def _read(found):
    assert found is not None
    return found


_ZNODES = {
    "node": lambda data: payloads.node_payload(payloads.read_node("n1", data)),
    "channel": _channel,
    "mainstem": _leader_lock,
    "epoch": lambda data: payloads.epoch_payload(payloads.read_epoch(data)),
    "signal": lambda data: payloads.signal_payload(_read(payloads.read_signal("1", data, 0))),
    "position": _position,
    "load": _load,
    "cutover": _cutover,
    "verification": _standing,
    "history": lambda data: payloads.history_payload(_read(payloads.read_history(data))),
    "action": lambda data: payloads.action_payload(_read(payloads.read_action("1", data, 0))),
}


def reread(name, text):
    """Read a text of `samples` and write what it was read as."""
    kind, _, what = name.partition(": ")
    if kind == "znode":
        return _ZNODES[what](text.encode()).decode()
    if kind == "dead letter":
        return content_to_text(content_from_text(text))
    return json.dumps(Checkpoint.from_json(json.loads(text)).to_json())


if __name__ == "__main__":
    json.dump(samples(), sys.stdout, indent=2, sort_keys=True, ensure_ascii=False)
    sys.stdout.write("\n")
