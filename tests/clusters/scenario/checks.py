"""Invariants: checked after every event and every round of a scenario."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from clusters.scenario.cluster import Stage
from clusters.scenario.host import Host
from protokube.agent.round import Round
from protokube.agent.volume.inventory import is_gone
from protokube.host import WriteTest
from protokube.members.identity import FILE, Identity, decode
from protokube.members.start_values import Join, Start
from protokube.records.member import parse_claim


class Broken(BaseException):
    """An invariant does not hold. No `except Exception` of ours may catch it, also where one round runs in another."""


def demand(holds: bool, what: str) -> None:
    if not holds:
        raise Broken(what)


@dataclass
class Watch:
    """Keeps the values that may only grow."""

    stage: Stage
    epochs: dict[str, int] = field(default_factory=dict)
    """The greatest epoch seen at the provider, by volume."""
    identities: dict[str, int] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    asides: set[Path] = field(default_factory=set)
    """Data that was set aside, by its key in the model of etcd."""

    def strip(self, volume: str) -> None:
        """A tool strips the tags; the lower epoch that results is not the agents' fault."""
        self.stage.change_tags(volume, mark="", epoch=0, last_holder="")
        self.epochs.pop(volume, None)

    def wiped(self, volume: str) -> None:
        self.identities.pop(volume, None)

    def after_event(self) -> None:
        self._volumes()
        self._members()
        self._set_aside()
        self._names()

    def _volumes(self) -> None:
        stage = self.stage
        held = Counter(
            (each.attached_to, stage.cluster_of(each))
            for each in stage.cloud.volumes()
            if each.attached_to and each.id not in stage.beside
        )
        for (machine, key), number in held.items():
            demand(number == 1, f"{machine} holds {number} volumes of {key}")
        for volume in stage.cloud.volumes():
            before = self.epochs.get(volume.id, 0)
            demand(volume.epoch >= before, f"the epoch of {volume.id} fell from {before} to {volume.epoch}")
            self.epochs[volume.id] = volume.epoch
        for platter in stage.platters.by_volume.values():
            demand(not platter.wrongly_formatted, f"{platter.volume} carried data and was formatted")
            if platter.folder is None or not (platter.folder / FILE).exists():
                continue
            identity = decode((platter.folder / FILE).read_bytes())
            assert isinstance(identity, Identity), identity
            before = self.identities.get(platter.volume, 0)
            demand(identity.epoch >= before, f"the identity of {platter.volume} fell from {before} to {identity.epoch}")
            self.identities[platter.volume] = identity.epoch

    def _members(self) -> None:
        for key, model in self.stage.etcd.items():
            serving = Counter(each.pod.volume for each in model.able())
            demand(all(number == 1 for number in serving.values()), f"a volume is served twice: {serving}")
            demand(len(model.histories) <= 1, f"{key} was founded {len(model.histories)} times")
            demand(not model.forgot, f"a voter of {key} was started without its data: {model.forgot}")
            demand(not model.started_old, f"older copies were started in {key}: {model.started_old}")
            demand(not model.removed_running, f"running members of {key} were removed: {model.removed_running}")
            demand(not model.early, f"a member of {key} was started before its name led to it: {model.early}")
            found = model.leader()
            if found is not None:
                gone = model.acknowledged - found[0].db.state.writes
                demand(not gone, f"{key} lost acknowledged writes: {sorted(gone)}")

    def _set_aside(self) -> None:
        """The newest data is never set aside: at that moment another disk has at least as much."""
        for platter in self.stage.platters.by_volume.values():
            for file in platter.folder.glob("**/*.aside-*/member/db") if platter.folder else ():
                key = Path(file.read_text())
                if key in self.asides:
                    continue
                self.asides.add(key)
                for model in self.stage.etcd.values():
                    if (old := model.dbs.get(key)) is not None:
                        kept = [each.state.sequence for each in model.dbs.values() if each.file.exists()]
                        demand(max(kept, default=0) >= old.state.sequence, f"the newest data is set aside: {file}")

    def _names(self) -> None:
        for etcd in self.stage.wanted.etcd:
            for member in etcd.members:
                claim = parse_claim(self.stage.dns.text(member.dns_name))
                epoch = claim.epoch if claim else 0
                before = self.names.get(member.dns_name, 0)
                demand(epoch >= before, f"{member.dns_name} went back from epoch {before} to {epoch}")
                self.names[member.dns_name] = epoch

    def after_round(self, host: Host, round_: Round | None) -> None:
        """Check a round that has ended."""
        if round_ is None:
            return
        demand(not round_.report.bugs, f"a bug on {host.id}: {round_.report.bugs}")
        tests = Counter(job.number for job in host.disks.under_way() if isinstance(job, WriteTest))
        demand(max(tests.values(), default=0) <= 1, f"{host.id} writes to one disk from several children: {tests}")
        links = host.links()
        for file, volume in links.items():
            demand(volume in host.disks.table, f"{host.id} links {file} from {volume}, which is not mounted")
            if round_.volumes is not None:
                listed = round_.volume(volume)
                demand(
                    listed is None or listed.attached_to in (host.id, None),
                    f"{host.id} links {file} from {volume}, which was attached to another machine: {listed}",
                )
                demand(
                    not is_gone(round_, volume), f"{host.id} links {file} from {volume}, which does not exist any more"
                )
            if host.reaches(volume):
                identity = self.stage.identity(volume)
                demand(identity.holder == host.id, f"{host.id} links {file} from {volume} of {identity.holder}")
        waits = {(each.step, each.about) for each in (*round_.report.waits, *round_.report.person)}
        for home in round_.mounted:
            may = isinstance(round_.decisions.get(home.volume), Start | Join) and home.volume in round_.settled
            if may and home.member.dns_name in round_.named and ("etcd", home.name) not in waits:
                demand(home.volume in links.values(), f"{host.id} serves {home.name} without a link")
