"""What etcd itself says of each member, as a master that can ask it published it: pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from protokube.members.alarms import meaning
from protokube.members.survey.answers import Answer, Answers
from protokube.view.published import Published
from protokube.view.values import MemberView


def answered(
    expected: Sequence[MemberView], witnesses: Sequence[Published], *, volumes_known: bool = True
) -> Iterator[MemberView]:
    """Members with what the newest witness heard of them; without a witness, nothing is known of their health.

    Without a list of the volumes nobody knows who holds a member, and its own answer is all there is.
    """
    for member in expected:
        witness = next((each for each in witnesses if member.key in each.answers), None)
        if witness is None:
            yield replace(member, asked=False, why="no master that lives has reported on it lately")
        else:
            found = _member(member, witness, witness.answers[member.key], volumes_known=volumes_known)
            yield replace(found, asked_by=witness.name, age=witness.agent.age)


def _member(member: MemberView, witness: Published, answers: Answers, *, volumes_known: bool) -> MemberView:
    answer = answers.members.get(member.name)
    if member.host is None and volumes_known:
        return replace(member, why="nobody holds its volume")
    if answer is None:
        return replace(member, why=f"it did not answer {witness.name}")
    return replace(
        member, id=answer.id, cluster_id=answer.cluster_id, leader_id=answer.leader_id, raft_term=answer.raft_term,
        revision=answer.revision, learner=answer.learner, version=answer.version, db_size=answer.db_size,
        db_in_use=answer.db_in_use, alarms=answers.alarms, listed=answers.listed or (),
        healthy=not (why := _trouble(member, answer, answers)), why=why,
    )  # fmt: skip


def _trouble(member: MemberView, answer: Answer, answers: Answers) -> str:
    if not answer.leader_id:
        return "it knows no leader"
    if answers.listed is None:
        return "no member list was read behind a quorum"
    names = {each.id: each.name for each in answers.listed}
    if names.get(answer.id, "") != member.name:
        return f"{names.get(answer.id) or f'member {answer.id:x}'} answers in its place"
    return meaning(answers.alarms, names) or "; ".join(answer.errors)
