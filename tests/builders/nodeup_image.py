"""Tasks of every kind that a cloud-init document can express, in the shapes that make a difference there."""

from __future__ import annotations

from protokube.nodeup.values import (
    Asset,
    Command,
    Directory,
    File,
    Gone,
    Group,
    Image,
    Installed,
    Link,
    Module,
    Mount,
    Packages,
    Sysctl,
    Task,
    Unit,
    User,
)


def every_kind() -> tuple[Task, ...]:
    return (
        Group(name="ssl"),
        Group(name="keys", gid=150),
        User(name="etcd", uid=333, group="ssl", home="/var/lib/etcd"),
        User(name="keeper", group="keys"),
        Directory(path="/etc/kubernetes"),
        Directory(path="/etc/kubernetes/pki", mode=0o750, group="ssl"),
        File(path="/etc/kubernetes/cloud.config", content=b"[global]\n"),
        File(path="/etc/kubernetes/pki/ca.crt", content=b"CERT", group="ssl", mode=0o640),
        File(path="/etc/keeper's", content=b"x\x00\xff", owner="keeper", group="keys"),
        File(path="/etc/first", content=b"once", keep=True),
        File(path="/etc/containerd/config.toml", content=b"version = 2\n", after=("packages containerd=1.6.20 runc",)),
        Packages(names=("containerd=1.6.20", "runc")),
        Mount(device="/dev/disk/by-id/data", path="/srv", options=("defaults", "nofail")),
        File(path="/srv/readme", content=b"on the disk\n"),
        Link(path="/etc/mtab", target="../proc/self/mounts"),
        Gone(path="/etc/old.conf"),
        Module(file="k8s.conf", names=("br_netfilter", "overlay")),
        Sysctl(file="99-protokube.conf", values={"net.ipv4.ip_forward": "1", "net.ipv4.tcp_rmem": "4096 87380 99999"}),
        Unit(
            name="containerd.service", drop_ins={"10-protokube.conf": "[Service]\nLimitNOFILE=1048576\n"},
            enabled=True, running=True, restart_on=("file /etc/containerd/config.toml",),
            after=("packages containerd=1.6.20 runc",),
        ),
        Unit(name="kubelet.service", content="[Service]\nExecStart=/usr/local/bin/kubelet\n", enabled=False),
        Unit(name="swap.target", running=False),
        Asset(name="kubelet", sha256="ab" * 32, urls=("https://one.example.com/kubelet", "file:///media/kubelet")),
        Asset(name="cni.tgz", sha256="cd" * 32, urls=("https://one.example.com/cni.tgz",)),
        Asset(name="pause.tar", sha256="ef" * 32, urls=("https://one.example.com/pause.tar",)),
        Installed(asset="kubelet", path="/usr/local/bin/kubelet"),
        Installed(asset="cni.tgz", path="/opt/cni/bin", member="bin/*"),
        Installed(asset="cni.tgz", path="/opt/cni/LICENSE", member="docs/LICENSE", mode=0o644),
        Image(name="registry.example.com/pause:3.9", asset="pause.tar", after=("unit containerd.service",)),
        Command(name="sync the clock", check=("timedatectl", "show", "it's synced"), run=("chronyc", "waitsync")),
    )  # fmt: skip
