import threading

import pytest

from setl.errors import TransientError
from setl.load.target_view import TargetView
from setl.node.leading.stall_watch import BackgroundQuestions
from setl.run.stalls.stall import JobView
from tests.clocks import SetClock
from tests.waiting import eventually


@pytest.fixture
def clock():
    return SetClock()


@pytest.fixture
def questions(clock):
    questions = BackgroundQuestions(clock)
    yield questions
    questions.stop()


def test_nobody_waits_for_an_answer_and_it_is_there_later_with_its_age(questions, clock):
    gate = threading.Event()

    def question():
        gate.wait(60)
        return JobView(tasks=3)

    first = questions.ask("spark", "a", question)
    assert (first.value, first.waiting) == (None, 0)
    clock.time += 5
    again = questions.ask("spark", "a", question)
    assert (again.value, again.waiting) == (None, 5)
    assert again.age > 1e9
    gate.set()
    answer = eventually(lambda: answered(questions.ask("spark", "a", question)))
    assert answer.value == JobView(tasks=3)
    clock.time += 2
    assert questions.ask("spark", "a", question).age == 2


def answered(answer):
    return answer if answer.value is not None else None


def test_a_question_is_never_asked_twice_at_the_same_time(questions):
    gate, running, most = threading.Event(), [], []

    def question():
        running.append(1)
        most.append(len(running))
        gate.wait(60)
        running.pop()
        return TargetView()

    for _ in range(20):
        questions.ask("target", "a", question)
    eventually(lambda: running)
    gate.set()
    eventually(lambda: answered(questions.ask("target", "a", question)))
    assert set(most) == {1}


def test_a_question_that_hangs_holds_up_its_own_kind_alone(questions, clock):
    gate = threading.Event()
    questions.ask("spark", "a", lambda: gate.wait(20) and None)
    questions.ask("spark", "b", JobView)
    eventually(lambda: answered(questions.ask("target", "a", TargetView)))
    clock.time += 7
    assert questions.ask("spark", "b", JobView).waiting == 7
    gate.set()
    eventually(lambda: answered(questions.ask("spark", "b", JobView)))


def test_an_error_is_no_answer_and_the_next_question_is_asked(questions):
    def fails():
        raise TransientError("no")

    def breaks():
        raise ZeroDivisionError

    questions.ask("target", "a", fails)
    questions.ask("target", "b", breaks)
    eventually(lambda: answered(questions.ask("target", "c", TargetView)))
    assert questions.ask("target", "a", fails).value is None


def test_it_has_one_thread_for_each_kind_and_none_after_the_end(clock):
    before = {t.name for t in threading.enumerate()}
    questions = BackgroundQuestions(clock)
    for key in range(50):
        questions.ask("one", key, TargetView)
        questions.ask("two", key, TargetView)
    asking = [t for t in threading.enumerate() if t.name in {"ask-one", "ask-two"}]
    assert len(asking) == 2
    questions.stop()
    for thread in asking:
        thread.join(60)
    assert not [t for t in asking if t.is_alive()], before


def test_answers_that_nobody_asks_for_any_more_are_forgotten(questions):
    eventually(lambda: answered(questions.ask("target", "first", TargetView)))
    for key in range(300):
        questions.ask("target", key, TargetView)
    assert questions.ask("target", "first", TargetView).value is None
