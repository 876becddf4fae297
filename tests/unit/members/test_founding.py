from protokube.members.founding import first_generation
from protokube.members.generation import decode, encode


def test_a_first_generation_is_open_and_names_its_founders() -> None:
    made = first_generation("main", "etcd-cluster-token-etcd-dev", {"a": "vol-1", "b": "vol-2"}, "7f3a")

    assert made.open
    assert made.is_founder("a", "vol-1")
    assert not made.is_founder("a", "vol-2")
    assert made.replacements == {}
    assert decode(encode(made)) == made


def test_two_creations_of_one_cluster_never_have_one_token() -> None:
    tokens = {first_generation("main", "token", {}, unique).token for unique in ("1", "2")}

    assert len(tokens) == 2
