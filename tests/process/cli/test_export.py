"""`protokube export kubeconfig`: one file by which a person gets in, and not for long."""

from __future__ import annotations

import datetime as dt
import os
import stat
import subprocess
from base64 import b64decode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from builders.command import COMMAND, MINIMAL, Answer, Call, environment
from builders.config import completed
from builders.kubeconfigs import a_kubeconfig
from builders.revisions import a_revision
from protokube.cli.shared.contexts import take_out_contexts
from protokube.errors import ExitCode
from protokube.launch import prepare
from protokube.launch.derive import from_config
from protokube.launch.revisions import create_revision, put_in_force
from protokube.local.base import client_files
from protokube.local.base.paths import Paths
from protokube.pki.authority import load_authority
from protokube.pki.keystore import Keystore
from protokube.store import layout
from protokube.store.configuration import put_config
from protokube.store.file import FileStore

Export = Callable[..., Answer]


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """A local cluster, as far as `up` brings it before there is a cloud."""
    monkeypatch.setenv("PROTOKUBE_STATE", str(tmp_path / "state"))
    found, config = Paths.of("laptop"), completed(cloud="local", masters=3, name="laptop")
    found.create()
    store = FileStore(found.store)
    put_config(store, config, [("spec.yaml", "")])
    prepare.ensure_authorities(store, from_config(config))
    return found


@pytest.fixture
def export(call: Call, paths: Paths) -> Export:
    def run(*arguments: str) -> Answer:
        return call("export", "kubeconfig", *arguments)

    assert paths.is_ours()
    return run


def read(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The one cluster and the one user in a kubeconfig."""
    tree = yaml.safe_load(text)
    assert tree["current-context"] == tree["contexts"][0]["name"]
    return tree["clusters"][0]["cluster"], tree["users"][0]["user"]


def openssl(folder: Path, text: str, *more: str) -> str:
    """What openssl reads in the certificate of a kubeconfig, after it has verified it."""
    cluster, user = read(text)
    for name, data in (("ca", cluster["certificate-authority-data"]), ("leaf", user["client-certificate-data"])):
        (folder / f"{name}.pem").write_bytes(b64decode(data))
    check = ["openssl", "verify", "-x509_strict", "-purpose", "sslclient", "-CAfile", "ca.pem", "leaf.pem"]
    subprocess.run(check, cwd=folder, check=True, capture_output=True)
    shown = ["openssl", "x509", "-in", "leaf.pem", "-noout", *more]
    return subprocess.run(shown, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def life(folder: Path, text: str) -> dt.timedelta:
    """From now until its end."""
    end = openssl(folder, text, "-enddate", "-dateopt", "iso_8601").removeprefix("notAfter=")
    return dt.datetime.fromisoformat(end) - dt.datetime.now(dt.UTC)


def test_without_a_word_it_is_for_an_admin_and_for_a_day(export: Export, tmp_path: Path) -> None:
    answer = export()

    assert answer.code == ExitCode.OK
    assert openssl(tmp_path, answer.out, "-subject") == "subject=CN = admin, O = system:masters"
    assert dt.timedelta(hours=23, minutes=50) < life(tmp_path, answer.out) <= dt.timedelta(hours=24)
    assert answer.err.startswith("admin (system:masters) has access to laptop until ")
    assert "PRIVATE" not in answer.err


def test_its_key_fits_its_certificate_and_only_the_clusters_authority_signed_it(
    export: Export, paths: Paths, tmp_path: Path
) -> None:
    text = export().out
    shown = openssl(tmp_path, text, "-pubkey")
    key = b64decode(read(text)[1]["client-key-data"])
    made = subprocess.run(["openssl", "pkey", "-pubout"], input=key, check=True, capture_output=True).stdout

    assert made.decode().strip() == shown
    keys = Keystore(store=FileStore(paths.store), layout=layout, cluster="laptop")
    assert b64decode(read(text)[0]["certificate-authority-data"]) == load_authority(keys, "kubernetes-ca").certificate


def test_anybody_else_is_in_no_group_unless_it_is_said(export: Export, tmp_path: Path) -> None:
    assert openssl(tmp_path, export("--user", "jane").out, "-subject") == "subject=CN = jane"
    text = export("--user", "jane", "--groups", "developers, on-call,developers").out
    assert openssl(tmp_path, text, "-subject") == "subject=CN = jane, O = developers, O = on-call"
    assert openssl(tmp_path, export("--groups", "").out, "-subject") == "subject=CN = admin"


@pytest.mark.parametrize(("ttl", "seconds"), [("90m", 5400), ("2h", 7200), ("30d", 30 * 86400), ("60s", 60)])
def test_it_lives_as_long_as_was_asked(export: Export, tmp_path: Path, ttl: str, seconds: int) -> None:
    left = life(tmp_path, export("--ttl", ttl).out).total_seconds()
    assert seconds - 50 < left <= seconds


def test_the_api_is_where_up_left_it_or_else_at_its_public_name(export: Export, paths: Paths) -> None:
    assert read(export().out)[0]["server"] == "https://api.laptop"
    client_files.folder(paths).mkdir()
    (client_files.folder(paths) / "api-server").write_text("https://127.0.0.1:34567\n")
    assert read(export().out)[0]["server"] == "https://127.0.0.1:34567"
    assert read(export("--server", "https://10.0.0.1:6443").out)[0]["server"] == "https://10.0.0.1:6443"


def test_a_file_is_its_owners_alone_and_is_replaced_in_one_step(export: Export, here: Path) -> None:
    first = export("-o", "admin.kubeconfig")
    inode = (here / "admin.kubeconfig").stat().st_ino
    (here / "admin.kubeconfig").chmod(0o644)
    second = export("-o", "admin.kubeconfig")

    assert (first.code, second.code, first.out) == (ExitCode.OK, ExitCode.OK, "")
    assert first.err.startswith("admin.kubeconfig: admin (system:masters) has access to")
    assert (here / "admin.kubeconfig").stat().st_mode & 0o777 == 0o600
    assert (here / "admin.kubeconfig").stat().st_ino != inode
    assert [each.name for each in here.iterdir() if "kubeconfig" in each.name] == ["admin.kubeconfig"]


@pytest.mark.parametrize("text", ["precious\n", "kind: Config\nclusters: [{name: laptop}, {name: prod}]\n", "[1"])
def test_a_file_that_holds_something_else_is_left_alone(export: Export, here: Path, text: str) -> None:
    (here / "config").write_text(text)
    answer = export("-o", "config")

    assert answer.code == ExitCode.REFUSED
    assert "error: config exists, and is not a kubeconfig for laptop alone" in answer.err
    assert (here / "config").read_text() == text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--ttl", "soon"], "'soon' is not a duration"),
        (["--ttl", "24x"], "'24x' is not a duration"),
        (["--ttl", "-5h"], "'-5h' is not a duration"),
        (["--ttl", "24"], "--ttl 24s is too short to be of use"),
        (["--ttl", "999999999d"], "--ttl is longer than the lifetime of a CA"),
        (["--ttl", "9" * 400 + "d"], "--ttl is longer than the lifetime of a CA"),
        (["--server", "http://api.laptop"], "'http://api.laptop' is not the URL of an API server"),
        (["--server", "https://[::1"], "'https://[::1' is not the URL of an API server"),
        (["--user", ""], "no certificate can name the user ''"),
        (["--groups", "x" * 65], "no certificate can name the group 'xxx"),
        (["--cluster", "prod"], "there is no local cluster 'prod'"),
    ],
)
def test_what_cannot_be_is_one_error_in_words(export: Export, arguments: list[str], says: str) -> None:
    answer = export(*arguments)

    assert answer.code == ExitCode.INVALID
    assert says in answer.err
    assert answer.err.count("error:") == 1
    assert answer.out == ""


def test_a_cluster_in_a_store_is_found_by_its_name_or_as_the_only_one(call: Call, tmp_path: Path) -> None:
    url, store = f"file://{tmp_path}/store", FileStore(tmp_path / "store")
    assert call("complete", MINIMAL, "--store", url).code == ExitCode.OK
    (name,) = layout.clusters(store)
    without = call("export", "kubeconfig", "--store", url, "--cluster", name)
    assert without.code == ExitCode.REFUSED
    assert "there is no authority 'kubernetes-ca'" in without.err
    prepare.ensure_authorities(store, from_config(completed(cloud="local", name=name)))

    named = call("export", "kubeconfig", "--store", url, "--cluster", name)
    only = call("export", "kubeconfig", "--store", url)
    put_config(store, completed(cloud="local", name="other"), [("spec.yaml", "")])
    several = call("export", "kubeconfig", "--store", url)
    wrong = call("export", "kubeconfig", "--store", url, "--cluster", "othr")

    assert [answer.code for answer in (named, only)] == [ExitCode.OK, ExitCode.OK]
    assert {read(answer.out)[0]["server"] for answer in (named, only)} == {f"https://api.{name}"}
    assert (several.code, wrong.code) == (ExitCode.INVALID, ExitCode.INVALID)
    assert "there are several clusters in" in several.err
    assert "there is no cluster 'othr'" in wrong.err
    assert "did you mean `other`?" in wrong.err


def test_a_store_for_other_commands_does_not_hide_the_local_cluster(
    export: Export, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROTOKUBE_STORE", f"file://{tmp_path}/elsewhere")

    assert read(export().out)[0]["server"] == "https://api.laptop"


def test_a_link_stays_and_the_file_behind_it_is_written(export: Export, here: Path) -> None:
    (here / "link").symlink_to("real")

    assert export("-o", "link").code == ExitCode.OK
    assert (here / "link").is_symlink()
    assert "kind: Config" in (here / "real").read_text()


@pytest.mark.parametrize("kind", ["device", "pipe", "folder", "link to a device"])
def test_what_is_no_file_is_never_replaced_by_one(export: Export, here: Path, kind: str) -> None:
    place = here / "place"
    if kind == "folder":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        os.mknod(here / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        place.symlink_to("device") if kind.startswith("link") else (here / "device").rename(place)
    before = place.stat()

    answer = export("-o", "place")

    assert answer.code == ExitCode.REFUSED
    assert "is not a file" in answer.err
    assert (place.stat().st_mode, place.stat().st_ino) == (before.st_mode, before.st_ino)


def test_a_folder_that_is_not_there_is_told(export: Export, here: Path) -> None:
    answer = export("-o", "nowhere/admin.kubeconfig")

    assert answer.code == ExitCode.REFUSED
    assert "cannot write nowhere/admin.kubeconfig" in answer.err
    assert not (here / "nowhere").exists()


def test_a_terminal_is_shown_no_key_unless_asked(paths: Paths) -> None:
    command = [*COMMAND, "export", "kubeconfig"]
    env = environment(PROTOKUBE_STATE=str(paths.root.parent))

    refused, shown = on_terminal(command, env), on_terminal([*command, "-o", "-"], env)

    assert refused[0] == ExitCode.INVALID
    assert "a kubeconfig has a private key, which a terminal would show" in refused[1]
    assert "client-key-data" not in refused[1]
    assert (shown[0], "client-key-data" in shown[1]) == (ExitCode.OK, True)


def on_terminal(command: list[str], env: dict[str, str]) -> tuple[int, str]:
    """The exit code and the output of a command on a terminal of its own."""
    terminal, inside = os.openpty()
    started = subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside, env=env)
    os.close(inside)
    output = b""
    with suppress(OSError):  # EIO: nobody has it open any more
        while more := os.read(terminal, 65536):
            output += more
    os.close(terminal)
    return started.wait(), output.decode()


def test_a_file_with_something_else_is_overwritten_by_force_alone(export: Export, here: Path) -> None:
    (here / "config").write_text("precious\n")

    assert "or use --force" in export("-o", "config").err
    assert export("--file", "config", "--force").code == ExitCode.OK
    assert "kind: Config" in (here / "config").read_text()


def test_it_is_merged_into_the_files_of_kubeconfig_and_down_knows_where(
    export: Export, paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config"
    file.write_bytes(a_kubeconfig("prod", current="prod"))
    monkeypatch.setenv("KUBECONFIG", str(file))
    admin, jane = export("--merge"), export("--merge", "--user", "jane", "--no-switch-context")

    tree = yaml.safe_load(file.read_text())
    assert (admin.out, jane.out) == ("", "")
    assert admin.err.startswith(f"context protokube-laptop-admin in {file}: admin (system:masters) has access")
    assert [each["name"] for each in tree["contexts"]] == ["prod", "protokube-laptop-admin", "protokube-laptop-jane"]
    assert tree["current-context"] == "protokube-laptop-admin"

    done = take_out_contexts(paths)
    assert yaml.safe_load(file.read_text()) == yaml.safe_load(a_kubeconfig("prod", current="prod"))
    assert "removed the context protokube-laptop-jane" in " ".join(done)


def test_it_is_merged_for_a_cluster_in_a_store_too(
    call: Call, paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    url = f"file://{paths.store}"
    answers = [call("export", "kubeconfig", "--store", url, "--merge") for _ in range(2)]

    assert [each.code for each in answers] == [ExitCode.OK] * 2
    tree = yaml.safe_load((tmp_path / "config").read_text())
    assert [each["name"] for each in tree["contexts"]] == ["protokube-laptop-admin"]


@pytest.mark.parametrize("words", [["--merge", "-o", "x"], ["--merge", "--force"], ["--force"], ["--force", "-o", "-"]])
def test_options_that_contradict_each_other_are_refused(export: Export, here: Path, words: list[str]) -> None:
    answer = export(*words)

    assert (answer.code, answer.out) == (ExitCode.INVALID, "")
    assert not (here / "x").exists()


def test_a_cluster_with_etcd_alone_has_no_kubeconfig_and_the_command_that_adds_kubernetes_is_named(
    export: Export, paths: Paths
) -> None:
    store, config = FileStore(paths.store), completed(cloud="local", masters=3, name="laptop")
    made = a_revision(1, from_config(config, kubernetes=False), kubernetes="")
    put_in_force(store, "laptop", create_revision(store, "laptop", lambda _number: made), running=False)
    answer = export("-o", "admin.kubeconfig")

    assert answer.code == ExitCode.REFUSED
    assert answer.err.startswith("error: laptop has no Kubernetes, only etcd\n")
    assert "hint: protokube up --cluster laptop --kubernetes " in answer.err
