"""What is known of servers while they answer, and while they do not."""

import threading
from dataclasses import replace

import pytest

from arbiter.values import Channel, ChannelState, PipelineId
from setl.alarms import survey as survey_module
from setl.alarms.survey import Survey, Surveyed
from setl.operate.cutover.steps import CutOver, Step
from setl.systems.expiry import Expiration, ServerDisk
from tests.arbiter_in_memory import ManualClock, MemoryArbiter, MemoryCluster
from tests.waiting import eventually

DISK = ServerDisk("es-1 of es1:9200", 100, 4)
TOLD = Surveyed(expirations=(Expiration("certificate", "es1:9200", 1.0),), disks=(DISK,))
SHOP = Channel("shop", ChannelState.START, revision=1)
SILENT = Surveyed(unreachable="no connection")


class Telling:
    """Answers in place of servers."""

    def __init__(self):
        self.answer, self.asked = TOLD, 0
        self.answers = threading.Event()
        self.answers.set()

    def __call__(self, *_):
        answer = self.answer
        self.asked += 1
        assert self.answers.wait(20)
        return answer


@pytest.fixture
def telling(monkeypatch):
    telling = Telling()
    monkeypatch.setattr(survey_module, "survey", telling)
    return telling


@pytest.fixture
def asks(telling):
    cluster = MemoryCluster(ManualClock())
    survey = Survey(MemoryArbiter(cluster), {}, cluster.clock, every=0.0)

    def ask(channel=SHOP):
        """Ask once more, and wait until an answer to that is kept."""
        before = telling.asked

        def answered():
            survey.look([(channel, "ab", True)])
            return telling.asked >= before + 2

        eventually(answered, 20, interval=0.01)
        return survey.known("shop", "ab")

    yield ask
    survey.stop()


def test_what_a_server_reported_stays_true_while_it_does_not_answer(telling, asks):
    assert asks() == TOLD
    telling.answer = SILENT
    found = asks()
    assert (found.disks, found.expirations) == (TOLD.disks, TOLD.expirations)
    assert found.unreachable == "no connection"
    telling.answer = Surveyed()  # it answers, and tells this account nothing
    assert asks() == Surveyed()


def test_what_one_of_two_servers_reported_stays_true_while_the_other_alone_answers(telling, asks):
    asks()
    renewed = Expiration("certificate", "es1:9200", 2.0)
    other = Expiration("certificate", "db1:3306", 3.0)
    telling.answer = Surveyed(expirations=(other,), unreachable="no connection")
    assert set(asks().expirations or ()) == {*(TOLD.expirations or ()), other}
    telling.answer = Surveyed(expirations=(renewed,), unreachable="no connection")
    assert set(asks().expirations or ()) == {renewed, other}


def test_another_definition_of_the_channel_is_about_other_servers(telling, asks):
    asks()
    telling.answer = SILENT
    assert asks(replace(SHOP, revision=2)) == SILENT


def test_a_channel_that_was_removed_and_stored_again_is_another(telling, asks):
    """Its revision is the same."""
    asks()
    telling.answer = SILENT
    assert asks(replace(SHOP, definition={"channel": "shop"})) == SILENT


def test_an_answer_of_servers_that_a_channel_names_no_more_is_not_stored(telling):
    cluster = MemoryCluster(ManualClock())
    survey = Survey(MemoryArbiter(cluster), {}, cluster.clock, every=300.0)
    changed = replace(SHOP, revision=2)
    telling.answer = SILENT
    telling.answers.clear()
    survey.look([(SHOP, "ab", True)])
    eventually(lambda: telling.asked == 1)
    telling.answer = TOLD
    survey.look([(changed, "ab", True)])
    telling.answers.set()

    def known():
        survey.look([(changed, "ab", True)])
        return survey.known("shop", "ab") == TOLD

    eventually(known)
    survey.stop()


@pytest.mark.parametrize(
    ("record", "stops"),
    [
        (None, False),
        (CutOver(Step.VERIFY, by="ada"), False),  # nothing is stopped yet
        (CutOver(Step.DRAIN, by="ada", restore={"read_only": "0"}), True),
        (CutOver(Step.DONE, by="ada", restore={"read_only": "0"}), False),
        (CutOver(Step.DONE, by="ada", restore={"read_only": "0"}, aborting=True), True),
    ],
)
def test_a_cut_over_that_stores_its_source_read_only(record, stops):
    """Whoever began it may be gone; its servers need not be asked for that."""
    arbiter = MemoryArbiter(MemoryCluster(ManualClock()))
    arbiter.channels.put("shop", {"pipelines": [{"name": "ab"}]})
    if record is not None:
        arbiter.cutovers.store(PipelineId("shop", "ab"), record.to_json(), None)
    found = survey_module.survey(SHOP, "ab", arbiter, {})
    assert found.cutover is not None
    assert ("ada began" in found.cutover) == stops
