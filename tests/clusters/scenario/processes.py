"""Which etcd runs on a machine of a scenario, and whether it was started with the manifest as it is now."""

from __future__ import annotations

from typing import Protocol

from clusters.scenario.etcd import EtcdModel, Machine
from protokube.host.running import Command, Runs
from protokube.launch.machine import MasterConfig


class Models(Protocol):
    wanted: MasterConfig
    etcd: dict[str, EtcdModel]


class ModelProcesses:
    """Implements Processes for one machine; nothing but etcd runs in a scenario."""

    def __init__(self, stage: Models, machine: Machine) -> None:
        self._stage, self._machine = stage, machine

    def runs(self, command: Command) -> Runs:
        (key,) = (
            each.key
            for each in self._stage.wanted.etcd
            if each.pod.environment["ETCD_CONFIG_FILE"] == command.environment["ETCD_CONFIG_FILE"]
        )
        process = self._stage.etcd[key].processes.get(self._machine.id)
        if process is None:
            return Runs.NOT
        try:
            return Runs.CURRENT if process.pod.text == command.manifest.read_text() else Runs.OLD
        except OSError:
            return Runs.NOT
