"""Transactions that brokers name as given up, and those that really are."""

from collections import namedtuple
from types import SimpleNamespace

import pytest

from setl.systems.kafka.aborted import heed_ends

Named = namedtuple("Named", ["producer_id", "first_offset"])
Batch = namedtuple("Batch", ["producer_id", "base_offset", "is_control_batch", "abort"])


class Records:
    """Unpacks as kafka-python does: what of a producer comes after it was named is dropped,
    up to the next record that says that it gave up."""

    def __init__(self, fetch_offset, batches, *, aborted_transactions=None):
        self.next_fetch_offset = fetch_offset
        self.shown = []
        named = list(aborted_transactions or ())
        dropped = set()
        for batch in batches:
            if batch.base_offset < fetch_offset:
                continue
            dropped |= {n.producer_id for n in named if n.first_offset <= batch.base_offset}
            named = [n for n in named if n.first_offset > batch.base_offset]
            if self._contains_abort_marker(batch):
                dropped.discard(batch.producer_id)
            elif not batch.is_control_batch and batch.producer_id not in dropped:
                self.shown.append(batch.base_offset)
            self.next_fetch_offset = batch.base_offset + 1

    def _contains_abort_marker(self, batch):
        return batch.is_control_batch and batch.abort


def log(text):
    """Batches at the offsets of a text: lower case data, upper case the end; X and Y give up."""
    producers = {"a": 1, "A": 1, "X": 1, "b": 2, "B": 2, "Y": 2}
    return [Batch(producers[c], i, c.isupper(), c in "XY") for i, c in enumerate(text)]


@pytest.fixture
def read():
    fetcher = SimpleNamespace(PartitionRecords=Records)
    heed_ends(SimpleNamespace(_fetcher=fetcher))

    def read(text, *places, named):
        shown = []
        for start, end in places:
            batches = [b for b in log(text) if b.base_offset < end]
            shown += fetcher.PartitionRecords(start, batches, aborted_transactions=named).shown
        return shown

    return read


def test_what_was_given_up_is_dropped(read):
    assert read("aaAaaXaaA", (0, 9), named=[Named(1, 3)]) == [0, 1, 6, 7]
    assert read("aaAaaXaaA", (3, 4), (4, 7), (7, 9), named=[Named(1, 3)]) == [6, 7]
    assert read("abYaA", (0, 5), named=[Named(2, 1)]) == [0, 3]


def test_a_transaction_whose_end_was_passed_is_named_in_vain(read):
    assert read("aXaAaA", (0, 3), (3, 6), named=[Named(1, 0)]) == [2, 4]
    assert read("aXaAaXbaA", (0, 4), (4, 9), named=[Named(1, 0), Named(1, 4)]) == [2, 6, 7]


def test_a_transaction_from_before_the_place_is_named_in_vain(read):
    assert read("aXaAaA", (2, 6), named=[Named(1, 0)]) == [2, 4]
    assert read("aXaAaA", (0, 2), (4, 6), named=[Named(1, 0)]) == [4]


def test_after_a_jump_back_nothing_is_remembered(read):
    assert read("aXaAaA", (0, 6), (0, 6), named=[Named(1, 0)]) == [2, 4, 2, 4]


def test_one_that_is_still_open_at_the_next_answer_stays_named(read):
    assert read("aaaaXaA", (0, 2), (2, 7), named=[Named(1, 0)]) == [5]
