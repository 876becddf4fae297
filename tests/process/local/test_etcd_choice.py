"""Which etcd a local cluster gets, with programs that say they are one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.programs import a_debian, a_program, an_etcd, kept_etcd
from protokube.binaries.etcd import ETCD
from protokube.binaries.product import Release
from protokube.config.etcd_versions import etcd_for, too_old
from protokube.errors import InvalidRequest, Refused, TryLater
from protokube.local.etcd_choice import Etcd, Needs, best, choose, why_not
from protokube.spec.version import Version, parse


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def path(only_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All of PATH: there is an etcdctl, and no etcd. Nothing is chosen by the user."""
    monkeypatch.delenv(ETCD.chosen, raising=False)
    a_program(only_path, "etcdctl", "etcdctl version: 3.5.16\nAPI version: 3.5")
    return only_path


def unpacked(cache: Path, version: str) -> Path:
    return an_etcd(cache / "etcd-server" / "usr" / "bin", version)


def nowhere(version: str) -> Release:
    raise TryLater(f"cannot download etcd {version}", saw="nobody answers")


def chosen(needs: Needs, cache: Path) -> Path:
    return choose(needs, cache, nowhere).etcd


def test_the_version_that_goes_with_its_kubernetes_is_taken(cache: Path, path: Path) -> None:
    named = kept_etcd(cache, "3.6.8")
    kept_etcd(cache, "3.6.16")
    kept_etcd(cache, "3.5.35")
    an_etcd(path, "3.6.20")

    found = choose(Needs(kubernetes="1.36.4"), cache, nowhere)

    assert found == Etcd(version="3.6.8", etcd=named.programs["etcd"], etcdctl=named.programs["etcdctl"])


def test_what_is_here_and_fits_is_taken_before_anything_is_fetched(cache: Path, path: Path) -> None:
    fits = an_etcd(path, "3.5.16")
    unpacked(cache, "3.4.23")

    assert chosen(Needs(kubernetes="1.36.4"), cache) == fits


@pytest.mark.parametrize("old", ["3.4.23", "3.4.30", "3.5.3", "3.5.12"])
def test_one_that_is_too_old_for_its_kubernetes_is_not_used_in_silence(old: str, cache: Path, path: Path) -> None:
    unpacked(cache, old)
    an_etcd(path, old)
    asked = []

    def get(version: str) -> Release:
        asked.append(version)
        return kept_etcd(cache, version)

    found = choose(Needs(kubernetes="1.36.4"), cache, get)

    assert (found.version, asked) == ("3.6.8", ["3.6.8"])


def test_where_none_is_to_be_had_all_reasons_are_told(cache: Path, path: Path) -> None:
    old, loses = unpacked(cache, "3.4.23"), an_etcd(path, "3.5.1")

    with pytest.raises(TryLater, match=r"there is no etcd that can be used: 3\.6\.8 goes with") as raised:
        chosen(Needs(kubernetes="1.36.4"), cache)

    assert f"{old} is 3.4.23, and etcd 3.4.23 does not answer progress requests" in raised.value.saw
    assert f"{loses} is 3.5.1, which loses data when it is killed" in raised.value.saw
    assert "cannot download etcd 3.6.8 (nobody answers)" in raised.value.saw
    assert "protokube get etcd 3.6.8" in raised.value.hint
    assert ETCD.chosen in raised.value.hint


def test_what_waiting_does_not_help_is_refused(cache: Path, path: Path) -> None:
    def get(version: str) -> Release:
        raise InvalidRequest(f"there is no etcd {version}")

    with pytest.raises(Refused, match="there is no etcd that can be used"):
        choose(Needs(kubernetes="1.36.4"), cache, get)


def test_an_older_kubernetes_may_have_what_debian_has(cache: Path, path: Path) -> None:
    debian = unpacked(cache, "3.4.23")
    assert chosen(Needs(kubernetes="1.20.2"), cache) == debian
    assert chosen(Needs(kubernetes="1.28.15"), cache) == debian
    kept = kept_etcd(cache, "3.5.35")
    assert chosen(Needs(kubernetes="1.28.15"), cache) == kept.programs["etcd"]
    assert chosen(Needs(kubernetes="1.20.2"), cache) == debian, "one that is newer than what goes with it is not tried"


def test_without_kubernetes_any_will_do_and_debian_has_one(cache: Path, path: Path) -> None:
    a_debian(path, "3.4.23")

    found = choose(Needs(), cache, nowhere)

    assert (found.version, found.etcd) == ("3.4.23", cache / "etcd-server" / "usr" / "bin" / "etcd")


def test_a_package_that_loses_data_is_not_used(cache: Path, path: Path) -> None:
    a_debian(path, "3.5.2")
    with pytest.raises(TryLater, match="there is no etcd that can be used") as raised:
        chosen(Needs(), cache)
    assert "is 3.5.2, which loses data" in raised.value.saw


def test_the_users_folder_comes_first_also_where_it_is_too_old(
    cache: Path, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_etcd(cache, "3.6.8")
    own = an_etcd(tmp_path / "own", "3.4.23")
    monkeypatch.setenv(ETCD.chosen, str(own.parent))

    assert chosen(Needs(kubernetes="1.36.4"), cache) == own


def test_a_folder_without_etcd_is_refused_and_nothing_else_is_taken(
    cache: Path, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_etcd(cache, "3.6.8")
    monkeypatch.setenv(ETCD.chosen, str(tmp_path / "nowhere"))
    with pytest.raises(Refused, match="there is no etcd in") as refused:
        chosen(Needs(), cache)
    assert ETCD.chosen in refused.value.hint


@pytest.mark.parametrize(
    ("version", "needs", "why"),
    [
        ("3.5.1", Needs(), "which loses data when it is killed"),
        ("3.5.35", Needs(spec_version="3.6.8"), "and the spec says 3.6.8"),
        ("3.5.24", Needs(made_with="3.5.35"), "and the cluster was made with 3.5.35, which is newer"),
        ("3.4.34", Needs(made_with="3.5.24"), "and the cluster was made with 3.5.24, which is newer"),
        ("3.6.8", Needs(made_with="3.4.23"), "one minor version at a time"),
    ],
)
def test_a_folder_is_refused_where_data_or_the_spec_speaks_against_it(
    version: str,
    needs: Needs,
    why: str,
    cache: Path,
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(ETCD.chosen, str(an_etcd(tmp_path / "own", version).parent))
    with pytest.raises(Refused, match=f"is {version}, ") as refused:
        chosen(needs, cache)
    assert why in refused.value.message


def test_an_older_version_that_the_user_names_is_left_to_the_plan_and_one_that_loses_data_is_not() -> None:
    named = Needs(made_with="3.5.35", spec_version="3.5.30", planned=True)

    assert why_not("3.5.30", named) == ""
    assert "which is newer" in why_not("3.5.30", replace(named, planned=False))
    assert "which is newer" in why_not("3.5.30", replace(named, spec_version="")), "nobody named it"
    assert "loses data" in why_not("3.5.1", replace(named, spec_version="3.5.1"))


def test_a_user_may_take_a_cluster_up_one_minor_version(
    cache: Path, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = an_etcd(tmp_path / "own", "3.5.35")
    monkeypatch.setenv(ETCD.chosen, str(own.parent))
    assert chosen(Needs(made_with="3.4.23"), cache) == own


def test_a_cluster_that_is_there_stays_with_its_minor_version(cache: Path, path: Path) -> None:
    """Whatever its Kubernetes asks for: it was made so, and its data is in that form."""
    kept_etcd(cache, "3.6.8")
    debian = unpacked(cache, "3.4.23")
    assert chosen(Needs(made_with="3.4.23", kubernetes="1.36.4"), cache) == debian
    later = an_etcd(path, "3.4.30")
    debian.unlink()
    assert chosen(Needs(made_with="3.4.23", kubernetes="1.36.4"), cache) == later
    with pytest.raises(TryLater, match=r"3\.4\.31 goes with this cluster"):
        chosen(Needs(made_with="3.4.31"), cache)


def test_a_spec_may_take_a_cluster_up_one_minor_version_and_no_further(cache: Path, path: Path) -> None:
    kept = kept_etcd(cache, "3.5.24")
    kept_etcd(cache, "3.6.8")
    asked = []

    def get(version: str) -> Release:
        asked.append(version)
        return kept_etcd(cache, version)

    assert choose(Needs(made_with="3.4.23", spec_version="3.5.24"), cache, get).etcd == kept.programs["etcd"]
    for spec_version, made_with in (("3.6.8", "3.4.23"), ("3.4.23", "3.5.24"), ("3.5.24", "3.5.30"), ("3.5.1", "")):
        with pytest.raises(Refused, match=f"etcd {spec_version} cannot be used here"):
            choose(Needs(made_with=made_with, spec_version=spec_version), cache, get)
    assert asked == []


def test_one_that_does_not_run_is_passed_over(cache: Path, path: Path) -> None:
    unpacked(cache, "3.5.16").write_text("#!/nowhere/interpreter\n")
    good = an_etcd(path, "3.4.23")
    assert chosen(Needs(), cache) == good


def test_etcdctl_is_the_one_beside_it_or_any(cache: Path, path: Path) -> None:
    unpacked(cache, "3.4.23")
    assert choose(Needs(), cache, nowhere).etcdctl == path / "etcdctl"
    beside = a_program(cache / "etcd-server" / "usr" / "bin", "etcdctl", "etcdctl version: 3.4.23")
    assert choose(Needs(), cache, nowhere).etcdctl == beside


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ("etcd Version: 3.4.23", "3.4.23"),
        ("etcd Version: 3.6.0-rc.1", "3.6.0-rc.1"),
        ("etcdctl version: v3.5.9", "3.5.9"),
    ],
)
def test_a_version_is_read_as_it_is_said(says: str, version: str, tmp_path: Path) -> None:
    assert ETCD.version(a_program(tmp_path, "etcd", says)) == version


@pytest.mark.parametrize("says", ["hello", "listening on 127.0.0.1:2379"])
def test_a_program_without_a_version_is_refused(says: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="does not say its version") as refused:
        ETCD.version(a_program(tmp_path, "etcd", says))
    assert refused.value.saw == says
    with pytest.raises(Refused, match="does not run"):
        ETCD.version(tmp_path / "missing")


VERSIONS = st.builds(lambda minor, patch: f"3.{minor}.{patch}", st.integers(3, 8), st.integers(0, 40))
KUBERNETES = st.builds(lambda minor, patch: f"1.{minor}.{patch}", st.integers(20, 38), st.integers(0, 20))
WISHES = st.builds(
    Needs,
    spec_version=VERSIONS | st.just(""),
    made_with=VERSIONS | st.just(""),
    kubernetes=KUBERNETES | st.just(""),
)


def numbers(text: str) -> Version:
    found = parse(text)
    assert found
    return found


@given(st.data(), WISHES)
def test_whatever_is_here_and_wished_for_what_is_taken_puts_no_data_at_risk(data: st.DataObject, needs: Needs) -> None:
    known = [each for each in (needs.spec_version, needs.made_with, needs.named) if each]
    versions = data.draw(st.lists(VERSIONS | st.sampled_from(known), max_size=8))
    here = [Etcd(version=each, etcd=Path(f"/{index}/etcd")) for index, each in enumerate(versions)]

    found, passed = best(here, needs)

    assert len(passed) == sum(bool(why_not(each, needs)) for each in versions)
    if found is None:
        assert len(passed) == len(here)
        return
    taken = numbers(found.version)
    assert not (3, 5, 0) <= taken[:3] <= (3, 5, 2)
    if needs.spec_version:
        assert taken == numbers(needs.spec_version)
    if needs.made_with:
        before = numbers(needs.made_with)
        assert taken >= before
        assert taken.minor - before.minor <= (1 if needs.spec_version else 0)
    elif needs.kubernetes and not needs.spec_version:
        kubernetes = numbers(needs.kubernetes)
        assert not too_old(taken, kubernetes)
        assert taken.series <= numbers(etcd_for(kubernetes)).series
    if needs.named in versions and not why_not(needs.named, needs):
        assert found.version == needs.named
    again, _ = best(reversed(here), needs)
    assert again
    assert again.version == found.version
