from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from protokube.controllers.event_correlator import (
    BURST,
    REFILL,
    REMEMBERED,
    TOGETHER,
    EventCorrelator,
    News,
    Regarding,
    WrittenEvent,
)

POD = Regarding(kind="Pod", name="web", namespace="default")


def some_news(message: str = "no", about: Regarding = POD) -> News:
    return News(about=about, type="Warning", reason="Refused", message=message)


def test_the_same_news_within_an_hour_is_one_event() -> None:
    correlator = EventCorrelator()
    correlator.note(some_news(), WrittenEvent("web.1", 3, 0.0))
    assert correlator.recent(some_news(), TOGETHER - 1) == WrittenEvent("web.1", 3, 0.0)
    assert correlator.recent(some_news(), TOGETHER) is None
    assert correlator.recent(some_news("other"), 0.0) is None


def test_an_event_that_is_gone_can_be_forgotten() -> None:
    correlator = EventCorrelator()
    correlator.note(some_news(), WrittenEvent("web.1", 1, 0.0))
    correlator.forget(some_news())
    assert correlator.recent(some_news(), 0.0) is None


@given(st.lists(st.floats(0, 300), min_size=1, max_size=100))
def test_an_object_has_no_more_events_than_its_share(pauses: list[float]) -> None:
    correlator, now, allowed = EventCorrelator(), 0.0, 0
    for pause in pauses:
        now += pause
        allowed += correlator.allow(POD, now)
        assert allowed <= BURST + now / REFILL
    assert allowed >= min(len(pauses), BURST)


def test_one_loud_object_does_not_silence_another() -> None:
    correlator = EventCorrelator()
    while correlator.allow(POD, 0.0):
        pass
    assert correlator.allow(Regarding(kind="Pod", name="other"), 0.0)


def test_no_more_is_remembered_than_fits() -> None:
    correlator = EventCorrelator()
    for number in range(REMEMBERED + 1):
        about = Regarding(kind="Pod", name=str(number))
        correlator.allow(about, 0.0)
        correlator.note(some_news(about=about), WrittenEvent("x", 1, 0.0))
    assert correlator.recent(some_news(about=Regarding(kind="Pod", name="0")), 0.0) is None
    assert correlator.recent(some_news(about=Regarding(kind="Pod", name=str(REMEMBERED))), 0.0)
