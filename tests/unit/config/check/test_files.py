"""The user's own files: what cannot be written, what meets another, and what fights with us."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.agent import a_round
from builders.config import Group, a_group, completed, problems, the_problem, warnings
from protokube.agent import links
from protokube.agent.controlplane import manifestguard
from protokube.agent.volume import mounted_volumes
from protokube.config.check.ourplaces import MANIFESTS, POD_NETWORK, VOLUMES, our_places, why_not
from protokube.config.complete import Config
from protokube.launch.derive import from_config
from protokube.manifests import cni

POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  namespace: {namespace}\n"


def a_file(name: str = "f", **fields: Any) -> dict[str, Any]:
    return {"name": name, "content": "x", **fields}


def masters(*files: dict[str, Any], zone: str = "us-east-1a") -> Group:
    return a_group("masters", "Master", zones=[zone], fileAssets=list(files))


def of_path(path: str, **cluster: Any) -> str:
    """What is wrong with a file at this path."""
    problem = the_problem(fileAssets=[a_file(path=path)], **cluster)
    assert (problem.path, problem.where is None) == ("fileAssets.f.path", False)
    return problem.message.removeprefix(repr(path)).strip()


def of_pod(name: str, namespace: str = "kube-system", path: str = f"{MANIFESTS}/mine.yaml") -> dict[str, Any]:
    return a_file(path=path, content=POD.format(name=name, namespace=namespace))


@pytest.mark.parametrize("path", ["etc/motd", "motd", "~/x", "C:\\x"])
def test_a_place_is_an_absolute_path(path: str) -> None:
    assert of_path(path) == "is not an absolute path"


@pytest.mark.parametrize(
    ("path", "plain"),
    [("/a/../b", "/b"), ("/a/./b", "/a/b"), ("/a//b", "/a/b"), ("//a", "/a"), ("/../etc/motd", "/etc/motd")],
)
def test_a_place_has_no_way_round_in_it(path: str, plain: str) -> None:
    problem = the_problem(fileAssets=[a_file(path=path)])

    assert problem.message == f"{path!r} is not a normalized path"
    assert problem.hint == f"did you mean {plain}?"


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/etc", "/var/lib", "/proc", "/x/", MANIFESTS, "/etc/kubernetes", "/etc/cni/net.d", "/var/etcd"),
        *("/srv/kubernetes", "/srv/kubernetes/assets", "/srv/kubernetes/kube-apiserver"),
    ],
)
def test_no_file_has_the_name_of_a_folder(path: str) -> None:
    assert of_path(path) == "is a directory"


@pytest.mark.parametrize("path", ["/proc/sys/vm/swappiness", "/sys/x", "/dev/null"])
def test_nothing_is_kept_where_the_kernel_answers(path: str) -> None:
    assert of_path(path).endswith("where no file can be kept")


def test_a_place_can_be_shown() -> None:
    assert of_path("/etc/a\nb") == "has unprintable characters"


def test_the_name_of_a_file_without_a_place_is_looked_at_as_well() -> None:
    problem = the_problem(fileAssets=[a_file("../ca.crt")])

    assert problem.hint == "did you mean /srv/kubernetes/ca.crt?"


@pytest.mark.parametrize(
    ("fields", "path", "message"),
    [
        ({"mode": "rw-r"}, "mode", "'rw-r' is not a file mode"),
        ({"mode": "0200"}, "mode", "'0200' is not a file mode"),
        ({"content": "not base64!", "isBase64": True}, "content", "is not base64, but `isBase64` is set"),
        ({"roles": ["Nodes"]}, "roles[0]", "'Nodes' is not a role"),
    ],
)
def test_what_cannot_be_written_is_told_in_the_cluster_and_in_a_group(
    fields: dict[str, Any], path: str, message: str
) -> None:
    of_cluster, of_group = the_problem(fileAssets=[a_file(**fields)]), the_problem(masters(a_file(**fields)))

    assert (of_cluster.path, of_cluster.message) == (f"fileAssets.f.{path}", message)
    assert (of_group.path, of_group.message) == (f"instanceGroups.masters.fileAssets.f.{path}", message)


@pytest.fixture(scope="module")
def whole() -> Config:
    """With everything that we may run."""
    etcd = [{"name": "main"}, {"name": "events"}]
    return completed(cloud="local", masters=3, etcdClusters=etcd, encryptionConfig=True)


def test_no_file_takes_the_place_of_one_that_a_master_writes(whole: Config) -> None:
    wanted, ours = from_config(whole, nodes=True), our_places(whole.cluster, whole.rendered)
    paths = {*wanted.kubeconfigs, *(path for each in wanted.components for path in each.files), POD_NETWORK}
    paths |= {f"/srv/kubernetes/{name}.{kind}" for name in wanted.certificates for kind in ("crt", "key")}
    paths |= {"/srv/kubernetes/ca.key", "/srv/kubernetes/service-account.pub", "/srv/kubernetes/kubelet-server.key"}
    paths |= {"/srv/kubernetes/kube-apiserver/ca.crt", whole.cluster["kubelet"]["kubeconfigPath"]}
    paths |= {each.pod.config_file for each in wanted.etcd}
    assert len(paths) > 20

    reasons = {path: why_not(path, ours) for path in sorted(paths)}
    assert {path for path, reason in reasons.items() if reason is None or "writes itself" not in reason[0]} == set()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/etc/protokube/agent.json", "is in /etc/protokube, which is protokube's own"),
        ("/var/lib/protokube/set-aside/x", "is in /var/lib/protokube, which is protokube's own"),
        ("/run/protokube/x", "is in /run/protokube, which is protokube's own"),
        ("/mnt/master-vol-1/x", "is where etcd keeps its data"),
        ("/var/etcd/data/x", "is where etcd keeps its data"),
    ],
)
def test_no_file_lies_in_a_folder_of_ours_or_of_etcds(path: str, message: str) -> None:
    assert of_path(path) == message
    assert "choose another path" in the_problem(fileAssets=[a_file(path=path)]).hint


def test_the_places_that_are_ours_are_those_that_the_agent_knows() -> None:
    assert (MANIFESTS, POD_NETWORK) == (links.DIRECTORY, cni.FILE)
    assert f"{mounted_volumes.POINTS}/master-" == VOLUMES


def test_every_manifest_of_ours_is_kept_for_us_and_so_are_its_pod_and_its_copies(whole: Config, tmp_path: Path) -> None:
    agents = manifestguard.files_of(a_round(tmp_path, wanted=from_config(whole, nodes=True)))
    ours = our_places(whole.cluster, whole.rendered)

    assert dict(ours.manifests) == agents
    for name in agents:
        assert "is a manifest" in str(why_not(f"{MANIFESTS}/{name}", ours))
        for copy in (f"{name}.bak", f"{name}~", f"#{name}#", f"{name}.dpkg-old"):
            assert manifestguard.copy_of(copy, agents) == name
            assert "would be set aside" in str(why_not(f"{MANIFESTS}/{copy}", ours))


SCHEDULER = POD.format(name="kube-scheduler", namespace="kube-system")
AS_JSON = '{"kind": "Pod", "metadata": {"name": "kube-scheduler", "namespace": "kube-system"}}'


@pytest.mark.parametrize(
    "fields",
    [
        {"content": SCHEDULER},
        {"content": AS_JSON},
        {"content": b64encode(SCHEDULER.encode()).decode(), "isBase64": True},
        {"content": f"{SCHEDULER}---\n{POD.format(name='mine', namespace='kube-system')}"},
    ],
)
def test_a_pod_with_one_of_our_names_is_refused_however_it_is_written(fields: dict[str, Any]) -> None:
    problem = the_problem(fileAssets=[a_file(path=f"{MANIFESTS}/mine.yaml", **fields)])

    assert problem.path == "fileAssets.f.content"
    assert problem.message == "has the name of the pod kube-system/kube-scheduler, which protokube runs itself"
    assert problem.hint == "give the pod another name"


def test_a_pod_of_etcds_name_is_refused() -> None:
    assert "etcd-server," in the_problem(fileAssets=[of_pod("etcd-server")]).message


@pytest.mark.parametrize(
    "fields",
    [
        of_pod("mine"),
        of_pod("kube-scheduler", "default"),
        of_pod("kube-scheduler", path="/etc/mine/kube-scheduler.yaml"),
        a_file(path=f"{MANIFESTS}/x.yaml", content="no: [pod"),
        a_file(path=f"{MANIFESTS}/x.yaml", content="gA==", isBase64=True),
        a_file(path=f"{MANIFESTS}/my-etcd.manifest"),
        a_file(path="/srv/kubernetes/audit.yaml"),
        a_file(path="/srv/kubernetes/oidc-ca.crt"),
        a_file(path="/srv/kubernetes/kube-apiserver/audit-policy-config.yaml"),
        a_file(path="/srv/kubernetes/assets/ca.crt"),
        a_file(path="/etc/hosts"),
    ],
)
def test_other_files_of_users_are_theirs(fields: dict[str, Any]) -> None:
    assert warnings(completed(fileAssets=[fields])) == {}


def test_the_hosts_file_is_ours_where_names_are_kept_in_it() -> None:
    assert of_path("/etc/hosts", name="dev.k8s.local") == "is a file that protokube writes itself"


def test_the_name_of_kube_proxy_is_free_where_the_network_brings_its_own() -> None:
    asset = of_pod("kube-proxy", path=f"{MANIFESTS}/kube-proxy.manifest")

    assert sorted(problems(fileAssets=[asset])) == ["fileAssets.f.content", "fileAssets.f.path"]
    completed(fileAssets=[asset], kubeProxy={"enabled": False})


def test_two_files_of_one_machine_have_two_places() -> None:
    problem = the_problem(fileAssets=[a_file("a", path="/etc/x"), a_file("b", path="/etc/x", roles=["Master"])])

    assert (problem.path, problem.message) == ("fileAssets.b.path", "'/etc/x' is also the path of 'a'")
    of_group = the_problem(masters(a_file("a"), a_file("b", path="/srv/kubernetes/assets/a")))
    assert of_group.path == "instanceGroups.masters.fileAssets.b.path"


def test_files_of_different_machines_may_have_one_place() -> None:
    pair = [a_file("a", path="/etc/x", roles=["Master"]), a_file("b", path="/etc/x", roles=["Node"])]

    assert set(completed(fileAssets=pair).cluster["fileAssets"]) == {"a", "b"}


@pytest.mark.parametrize("order", [1, -1])
def test_no_file_lies_in_another_as_if_that_were_a_folder(order: int) -> None:
    pair = [a_file("a", path="/etc/x"), a_file("b", path="/etc/x/y/z")][::order]
    message = "'/etc/x/y/z' is below '/etc/x', which is the file 'a'"

    assert the_problem(fileAssets=pair).message == message
    assert the_problem(masters(pair[0]), fileAssets=[pair[1]]).message == message


def test_a_file_of_a_group_may_stand_instead_of_the_clusters() -> None:
    group = masters(a_file("b", path="/etc/x"), zone="local")
    config = completed(group, cloud="local", fileAssets=[a_file("a", path="/etc/x")])

    assert warnings(config) == {}


def test_files_that_no_machine_gets_yet_are_told() -> None:
    config = completed(
        a_group("pool", fileAssets=[a_file("p")]),
        masters(a_file("m"), a_file("n", roles=["Node", "Bastion"])),
        fileAssets=[
            a_file("all"),
            a_file("n", roles=["Node"], path="/etc/n"),
            a_file("both", roles=["Master", "Node"]),
        ],
        zones=["us-east-1a"],
    )

    assert {path: each.message for path, each in warnings(config).items()} == {
        "fileAssets.n": "no machine gets it yet: only masters are brought up, not machines of role Node",
        "instanceGroups.masters.fileAssets.n": (
            "no machine gets it: it is for Node, Bastion, and those of masters are Masters"
        ),
        "instanceGroups.pool.fileAssets.p": (
            "no machine gets it yet: only masters are brought up, not machines of role Node"
        ),
    }


def test_files_of_nodes_reach_them_on_racks() -> None:
    files = [a_file("n", roles=["Node"], path="/etc/n"), a_file("b", roles=["Bastion"], path="/etc/b")]

    found = warnings(completed(a_group("pool", fileAssets=[a_file("p")]), cloud="metal", fileAssets=files))

    assert {path: each.message for path, each in found.items()} == {
        "fileAssets.b": "no machine gets it yet: only masters and nodes are brought up, not machines of role Bastion"
    }


PARTS = st.sampled_from(["etc", "srv", "kubernetes", "manifests", "x", "..", ".", "", "ca.crt", "proc", "assets"])


@given(st.lists(PARTS, max_size=5).map(lambda parts: "/" + "/".join(parts)) | st.text("/.ab\n", max_size=6))
def test_a_place_that_is_accepted_is_plain_and_in_no_folder_of_ours(whole: Config, path: str) -> None:
    ours = our_places(whole.cluster, whole.rendered)
    if why_not(path, ours) is None:
        pure = PurePosixPath(path)
        assert pure.is_absolute()
        assert str(pure) == path
        assert ".." not in pure.parts
        assert path not in ours.files | ours.folders
        assert pure.parts[1] != "proc"
