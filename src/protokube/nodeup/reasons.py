"""Why each thing is true of a machine, and which field of the spec changes it: one row for the keys of its tasks.

Patterns are those of a shell. The first that fits counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Reason:
    """One row."""

    key: str
    """Pattern of the keys of tasks."""
    why: str
    field: str
    """How to change it; empty if nothing does."""
    masters: bool = False
    """Whether only masters have it."""


REASONS: tuple[Reason, ...] = (
    Reason(
        "packages systemd-timesyncd",
        "certificates are judged by the clock; only where nothing keeps it",
        "`ntp.managed: false`, or another time service in `packages`",
    ),
    Reason(
        "packages chrony", "as above, on Fedora's relatives or where `packages` names it", "`ntp.managed`, `packages`"
    ),
    Reason(
        "unit systemd-timesyncd.service", "keeps the clock; one that is active already is kept instead", "`ntp.managed`"
    ),
    Reason("unit chrony*.service", "as above", "`ntp.managed`, `packages`"),
    Reason(
        "command the clock is synchronized",
        "a clock that is wrong by more than 30 s is waited for, before anything is downloaded",
        "`ntp.managed`",
    ),
    Reason(
        "file /etc/protokube/machine.json", "the cluster that the machine belongs to; later runs refuse another one", ""
    ),
    Reason("file /etc/hostname", "a machine of a rack is called as the inventory calls it", "the inventory"),
    Reason("command host name", "the same, until the next boot", "the inventory"),
    Reason("file /etc/apt/apt.conf.d/90protokube-proxy", "packages come through the proxy", "`egressProxy`"),
    Reason(
        "packages of a node",
        "what kubelet, agent and network plugins call, and containerd where the distribution's fits that Kubernetes",
        "`containerd.version`, `containerd.skipInstall`",
    ),
    Reason("packages of the spec", "asked for", "`packages`"),
    Reason("packages unattended-upgrades", "the system updates itself", "`updatePolicy`"),
    Reason("packages dnf-automatic", "the system updates itself", "`updatePolicy`"),
    Reason("unit dnf-automatic-install.timer", "the system updates itself", "`updatePolicy`"),
    Reason(
        "file /etc/apt/apt.conf.d/90protokube-updates",
        "whether the system updates itself; without `updatePolicy` it is as the image has it",
        "`updatePolicy`",
    ),
    Reason(
        "module protokube.conf",
        "rules of Services hold on bridges (br_netfilter), images have layers (overlay); IPVS where kube-proxy uses it",
        "`kubeProxy.proxyMode`",
    ),
    Reason(
        "sysctl 99-protokube.conf",
        "pods are routed, many connections and watches are usual, and what the kubelet requires of the kernel",
        "`sysctlParameters`: they override ours",
    ),
    Reason("mount *", "asked for; formatted only if proven blank", "`volumeMounts` of the group"),
    Reason("directory /etc/kubernetes/manifests", "the kubelet runs the pods that are here", ""),
    Reason("directory /etc/kubernetes*", "configuration of the kubelet and etcd", ""),
    Reason(
        "directory /etc/cni/net.d",
        "the pod network's configuration; the agent or a network add-on writes it",
        "`networking`",
    ),
    Reason("directory /opt/cni/bin", "network plugins, of ours and of add-ons", ""),
    Reason("directory /etc/protokube", "launch data; for root alone", ""),
    Reason("directory /var/lib/protokube", "what the agent keeps; for root alone", ""),
    Reason("directory /var/lib/kubelet", "volumes of pods, and the kubelet's credentials; for root alone", ""),
    Reason("directory /srv/kubernetes", "keys and certificates; for root alone", ""),
    Reason("directory /root/.ssh", "keys of operators", "`sshPublicKeys`"),
    Reason(
        "file /root/.ssh/authorized_keys2",
        "keys of operators, beside the user's own in authorized_keys, which stay",
        "`sshPublicKeys`",
    ),
    Reason(
        "command SSH keys of operators",
        "the same where sshd reads authorized_keys alone: they are appended",
        "`sshPublicKeys`",
    ),
    Reason("file /etc/logrotate.d/protokube", "log files that their writers do not rotate", ""),
    Reason("unit logrotate.timer", "they are looked at each hour, since one may grow fast", ""),
    Reason("asset containerd", "where the distribution's package does not fit", "`containerd.version`, `.packages`"),
    Reason("asset runc", "goes with that containerd", "`containerd.runc`"),
    Reason("installed /usr/local/bin", "programs of that containerd", "`containerd.version`"),
    Reason("installed /usr/local/sbin/runc", "starts containers", "`containerd.runc`"),
    Reason(
        "file /etc/containerd/config.toml",
        "the kubelet's cgroup driver, the pause image, mirrors, network plugins",
        "`containerd`; `.configAdditions` adds entries, `.configOverride` replaces the file",
    ),
    Reason("file /etc/containerd/certs.d/*", "mirrors of a registry", "`containerd.registryMirrors`"),
    Reason("unit containerd.service", "runs containers; they outlive its restart", "`containerd.skipInstall`"),
    Reason("asset cni-plugins", "network plugins of one version", ""),
    Reason("installed /opt/cni/bin", "network plugins from that archive", ""),
    Reason("link /opt/cni/bin/*", "network plugins of the distribution's package, where there is no archive", ""),
    Reason("asset kubectl", "for people on a master", "`kubernetesVersion`", masters=True),
    Reason("installed /usr/local/bin/kubectl", "for people on a master", "`kubernetesVersion`", masters=True),
    Reason("asset kubelet", "the kubelet of this version", "`kubernetesVersion`"),
    Reason("installed /usr/local/bin/kubelet", "the kubelet of this version", "`kubernetesVersion`"),
    Reason(
        "file /etc/default/kubelet",
        "the kubelet's flags and version; on a master the agent keeps it up to date",
        "`kubelet`, `masterKubelet`",
    ),
    Reason("file /etc/default/kubelet-machine", "flags of this machine alone: its name and address", "the inventory"),
    Reason(
        "file /etc/kubernetes/config/kubelet.yaml",
        "the kubelet's configuration; on a master the agent keeps it up to date",
        "`kubelet`, `masterKubelet`",
    ),
    Reason(
        "unit kubelet.service", "neither enabled nor started: the agent does it, once disks and names are ready", ""
    ),
    Reason(
        "file /etc/protokube/agent.json",
        "what the agent of this master is told; no secret is in it",
        "the whole spec",
        masters=True,
    ),
    Reason("file /etc/protokube/*", "what the agent's document refers to, such as the inventory", "", masters=True),
    Reason("unit protokube-api-proxy.service", "the kubelet's way to an API server that answers", "", masters=True),
    Reason(
        "unit protokube-agent.service",
        "disks, names, etcd, the control plane and the kubelet, round after round",
        "",
        masters=True,
    ),
    Reason("asset *", "asked for, or an image that is there before a pod needs it", "`containerd.installCriCtl`"),
    Reason("installed *", "asked for", "`containerd.installCriCtl`"),
    Reason("image *", "there before a pod needs it, and kept from the kubelet's garbage collection", ""),
    Reason("file *", "a file of the user's; on a master the agent keeps it up to date", "`fileAssets`"),
    Reason("unit *", "a hook of the user's; disabled ones are stopped", "`hooks`"),
)


def reason(key: str) -> Reason | None:
    """For the key of a task; None for one that no row describes."""
    return next((each for each in REASONS if fnmatchcase(key, each.key)), None)
