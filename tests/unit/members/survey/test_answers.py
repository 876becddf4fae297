"""What members answered survives the way through a document."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.members.alarms import Alarm
from protokube.members.start_values import Listed
from protokube.members.survey.answers import Answer, Answers, from_tree, to_tree

IDS = st.integers(0, 2**64 - 1)
NAMES = st.text(max_size=8)
URLS = st.tuples(NAMES)
ANSWERS = st.builds(
    Answer, id=IDS, cluster_id=IDS, leader_id=IDS, raft_term=IDS, revision=IDS, learner=st.booleans(), version=NAMES,
    db_size=IDS, db_in_use=IDS, errors=URLS,
)  # fmt: skip
LISTED = st.builds(Listed, id=IDS, name=NAMES, peer_urls=URLS, client_urls=URLS, learner=st.booleans())
LISTS = st.lists(LISTED, max_size=3, unique_by=lambda each: each.id).map(
    lambda found: tuple(sorted(found, key=lambda each: each.id))
)


@given(st.dictionaries(NAMES, ANSWERS, max_size=3), st.none() | LISTS, st.tuples(st.builds(Alarm, IDS, NAMES)))
def test_answers_come_back_as_they_were(
    members: dict[str, Answer], listed: tuple[Listed, ...] | None, alarms: tuple[Alarm, ...]
) -> None:
    answers = Answers(members=members, listed=listed, alarms=alarms)

    assert from_tree(to_tree(answers)) == answers


@pytest.mark.parametrize("tree", [{}, [], None, {"members": [], "listed": None, "alarms": []}, {"members": {"a": {}}}])
def test_another_document_is_no_survey(tree: Any) -> None:
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        from_tree(tree)
