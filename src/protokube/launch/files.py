"""The kubelet's files, from its part of the configuration.

Its flags and its version are in a file too, the environment of its unit: so a changed flag, or another version, is a
changed file, which the agent writes to a running machine. Not here: the kubeconfig and the keys, which are those of one
machine.
"""

from __future__ import annotations

import shlex

from protokube.launch.machine import KubeletConfig
from protokube.manifests.component import words

KUBELET_ENV = "/etc/default/kubelet"
FLAGS, VERSION = "KUBELET_FLAGS=", "KUBELET_VERSION="


def kubelet_files(kubelet: KubeletConfig) -> dict[str, str]:
    """Content by path: its configuration files, and the environment file with its flags."""
    # Quoted twice, for two readers: the flags for what splits the variable into words, and the variable itself for the
    # reader of the file. systemd and a POSIX shell agree on a value that begins and ends with a quote.
    version = f"{VERSION}{kubelet.version}\n" if kubelet.version else ""
    flags = f"{FLAGS}{shlex.quote(shlex.join(words(kubelet.flags)))}\n"
    return {**kubelet.files, KUBELET_ENV: version + flags}


def flags_in(text: str) -> list[str]:
    """The command line arguments in an environment file; none if it sets no flags."""
    return shlex.split(_value(text, FLAGS))


def version_in(text: str) -> str:
    """The version of the kubelet that these flags are for; empty if it is not known."""
    return _value(text, VERSION)


def _value(text: str, name: str) -> str:
    values = [each.removeprefix(name) for each in shlex.split(text) if each.startswith(name)]
    return values[-1] if values else ""
