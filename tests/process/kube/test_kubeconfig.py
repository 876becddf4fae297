"""Open an API server from a kubeconfig."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from builders.addons import an_object
from fakes.kube_server import KubeServer, kube_server
from protokube.errors import InvalidRequest
from protokube.kube.kubeconfig import find, opened
from protokube.manifests.kubeconfig import by_token

ONE = "/api/v1/namespaces/kube-system/configmaps/one"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[KubeServer]:
    with kube_server(tmp_path) as found:
        found.kube.put(ONE, an_object("one"))
        yield found


def changed(file: Path, where: str, **more: Any) -> Path:
    tree = yaml.safe_load(file.read_text())
    for name, value in more.items():
        tree[f"{where}s"][0][where][name.replace("_", "-")] = value
    file.write_text(yaml.safe_dump(tree))
    return file


@pytest.mark.parametrize("embedded", [False, True])
def test_certificates_may_lie_in_files_or_in_the_kubeconfig(server: KubeServer, tmp_path: Path, embedded: bool) -> None:
    with opened(server.kubeconfig(tmp_path / "config", embedded=embedded)) as api:
        assert api.get(ONE)["kind"] == "ConfigMap"


def test_files_are_looked_for_beside_the_kubeconfig(server: KubeServer) -> None:
    file = server.kubeconfig(server.pki / "config")
    changed(file, "user", client_certificate="client.crt", client_key="client.key")
    changed(file, "cluster", certificate_authority="ca.crt")

    with opened(file) as api:
        assert api.get(ONE)


def laid_down(server: KubeServer) -> list[Path]:
    """Copies of our key in temporary folders."""
    key = (server.pki / "client.key").read_bytes()
    found = Path(tempfile.gettempdir()).glob("protokube-*/client-key")
    return [each for each in found if each.read_bytes() == key]


def test_a_key_that_was_laid_down_is_read_by_nobody_else_and_does_not_stay(server: KubeServer, tmp_path: Path) -> None:
    with opened(server.kubeconfig(tmp_path / "config", embedded=True)):
        (key,) = laid_down(server)
        modes = [each.stat().st_mode & 0o777 for each in (key.parent, key)]

    assert modes == [0o700, 0o600]
    assert laid_down(server) == []


def test_a_new_node_shows_its_token(server: KubeServer, tmp_path: Path) -> None:
    file = tmp_path / "bootstrap"
    ca = str(server.pki / "ca.crt")
    file.write_text(by_token("test", server.url, "new-node", ca=ca, token="abcdef.0123456789abcdef"))

    with opened(file) as api:
        api.get(ONE)

    assert server.seen[0][2]["Authorization"] == "Bearer abcdef.0123456789abcdef"


def test_a_token_may_lie_in_a_file(server: KubeServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    file = changed(server.kubeconfig(tmp_path / "config"), "user", tokenFile="token")

    with opened(file) as api:
        api.get(ONE)

    assert server.seen[0][2]["Authorization"] == "Bearer secret"


@pytest.mark.parametrize(
    ("where", "more", "words"),
    [
        ("cluster", {"server": "http://127.0.0.1:8080"}, "its server is http://"),
        ("cluster", {"insecure_skip_tls_verify": True}, "trusts any server"),
        ("cluster", {"certificate_authority": None}, "no certificate authority"),
        ("cluster", {"certificate_authority": "gone.crt"}, "is missing"),
        ("cluster", {"certificate_authority_data": "***"}, "not base64"),
        ("user", {"exec": {"command": "x"}}, "logs in by exec"),
        ("user", {"tokenFile": "gone"}, "cannot be read"),
        ("context", {"user": "nobody"}, "no user 'nobody'"),
        ("context", {"cluster": "nowhere"}, "no cluster 'nowhere'"),
    ],
)
def test_one_that_cannot_be_used_is_told(
    server: KubeServer, tmp_path: Path, where: str, more: dict[str, Any], words: str
) -> None:
    file = changed(server.kubeconfig(tmp_path / "config"), where, **more)

    with pytest.raises(InvalidRequest) as caught, opened(file):
        pass

    assert words in str(caught.value)
    assert server.seen == []


@pytest.mark.parametrize("text", ["", "- a", "kind: Pod", "a: [", "kind: Config\ncontexts: [3]"])
def test_what_is_no_kubeconfig_is_told(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)

    with pytest.raises(InvalidRequest, match="config"), opened(file):
        pass


def test_the_one_asked_for_wins_over_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, named = tmp_path / "asked", tmp_path / "named"
    for each in (asked, named):
        each.touch()
    monkeypatch.setenv("KUBECONFIG", f"{named}:{tmp_path}/second")

    assert find(asked) == asked
    assert find(None) == named


def test_of_several_in_the_environment_the_first_that_is_there_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "second").touch()
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/first:{tmp_path}/second")

    assert find(None) == tmp_path / "second"


def test_without_one_the_ways_to_name_it_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    with pytest.raises(InvalidRequest, match="--kubeconfig or KUBECONFIG"):
        find(None)
