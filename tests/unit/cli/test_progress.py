"""How far something is, for a program that reads along."""

from setl.cli.terminal import progress
from setl.operate.progress_lines import VARIABLE, progress_in


def test_progress_is_reported_in_lines_where_that_is_asked_for(monkeypatch, capsys):
    monkeypatch.setenv(VARIABLE, "1")
    monkeypatch.setattr(progress, "_EVERY_SECONDS", 0.0)
    with progress.progress_line() as shown:
        task = shown.add_task("", total=None)
        for words in ("starting Spark", "s.t, 500 rows [of many]", "s.t, 500 rows [of many]"):
            shown.update(task, description=words)
    said = [progress_in(line) for line in capsys.readouterr().err.splitlines() if line.strip()]
    assert said == ["starting Spark", "s.t, 500 rows [of many]"]


def test_progress_is_reported_once_a_second_at_most(monkeypatch, capsys):
    monkeypatch.setenv(VARIABLE, "1")
    monkeypatch.setattr(progress, "_EVERY_SECONDS", 3600.0)
    with progress.progress_line() as shown:
        task = shown.add_task("", total=None)
        for words in ("a", "b", "c"):
            shown.update(task, description=words)
    assert capsys.readouterr().err.split() == ["…", "a"]


def test_nothing_is_reported_to_who_reads_no_terminal(monkeypatch, capsys):
    monkeypatch.delenv(VARIABLE, raising=False)
    with progress.progress_line() as shown:
        shown.update(shown.add_task("", total=None), description="a")
    assert not capsys.readouterr().err.strip()
