from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from protokube.controllers.telling import BURST, REFILL, REMEMBERED, TOGETHER, Memory, News, Regarding, Told

POD = Regarding(kind="Pod", name="web", namespace="default")


def some_news(message: str = "no", about: Regarding = POD) -> News:
    return News(about=about, type="Warning", reason="Refused", message=message)


def test_the_same_news_within_an_hour_is_one_event() -> None:
    memory = Memory()
    memory.note(some_news(), Told("web.1", 3, 0.0))
    assert memory.already(some_news(), TOGETHER - 1) == Told("web.1", 3, 0.0)
    assert memory.already(some_news(), TOGETHER) is None
    assert memory.already(some_news("other"), 0.0) is None


def test_an_event_that_is_gone_can_be_forgotten() -> None:
    memory = Memory()
    memory.note(some_news(), Told("web.1", 1, 0.0))
    memory.forget(some_news())
    assert memory.already(some_news(), 0.0) is None


@given(st.lists(st.floats(0, 300), min_size=1, max_size=100))
def test_an_object_has_no_more_events_than_its_share(pauses: list[float]) -> None:
    memory, now, told = Memory(), 0.0, 0
    for pause in pauses:
        now += pause
        told += memory.may_tell(POD, now)
        assert told <= BURST + now / REFILL
    assert told >= min(len(pauses), BURST)


def test_one_loud_object_does_not_silence_another() -> None:
    memory = Memory()
    while memory.may_tell(POD, 0.0):
        pass
    assert memory.may_tell(Regarding(kind="Pod", name="other"), 0.0)


def test_no_more_is_remembered_than_fits() -> None:
    memory = Memory()
    for number in range(REMEMBERED + 1):
        about = Regarding(kind="Pod", name=str(number))
        memory.may_tell(about, 0.0)
        memory.note(some_news(about=about), Told("x", 1, 0.0))
    assert memory.already(some_news(about=Regarding(kind="Pod", name="0")), 0.0) is None
    assert memory.already(some_news(about=Regarding(kind="Pod", name=str(REMEMBERED))), 0.0)
