"""The kubelet's files, from its part of the configuration.

Its flags are in a file too, the environment of its unit: so a changed flag is a changed file, which the agent writes to
a running machine. Not here: the kubeconfig and the keys, which are those of one machine.
"""

from __future__ import annotations

import shlex

from protokube.launch.machine import KubeletConfig
from protokube.manifests.component import words

KUBELET_ENV = "/etc/default/kubelet"
FLAGS = "KUBELET_FLAGS="


def kubelet_files(kubelet: KubeletConfig) -> dict[str, str]:
    """Content by path: its configuration files, and the environment file with its flags."""
    # Quoted twice, for two readers: the flags for what splits the variable into words, and the variable itself for the
    # reader of the file. systemd and a POSIX shell agree on a value that begins and ends with a quote.
    return {**kubelet.files, KUBELET_ENV: f"{FLAGS}{shlex.quote(shlex.join(words(kubelet.flags)))}\n"}


def flags_in(text: str) -> list[str]:
    """The command line arguments in an environment file; none if it sets no flags."""
    values = [each.removeprefix(FLAGS) for each in shlex.split(text) if each.startswith(FLAGS)]
    return shlex.split(values[-1]) if values else []
