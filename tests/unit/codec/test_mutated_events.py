"""Some thousands of trials of `tests.unit.codec.mutated_events`; many more are run by hand."""

from tests.unit.codec.mutated_events import Trials, bounded

TRIALS = 12_000
EACH_KIND = ("read to the end", "FatalError", "rows decoded", "rows: DataError", "table: DataError")
BY_COLUMN = ("read by column", "columns: UnfitRowsError")


def test_changed_events_give_values_or_typed_errors():
    trials = Trials()
    for number in range(TRIALS):
        try:
            bounded(trials, 39, number)
        except BaseException as error:
            error.add_note(
                f"python -m tests.unit.codec.mutated_events --seed 39 --first {number} --trials 1"
            )
            raise
    assert all(trials.counts[kind] for kind in EACH_KIND + BY_COLUMN)
