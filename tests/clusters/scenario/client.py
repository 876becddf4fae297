"""The Etcd Protocol over the model of etcd: what an agent on one machine can ask of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from clusters.scenario.etcd import EtcdModel, Found, Machine, Process, State, with_member, without_leases
from protokube.errors import TryLater
from protokube.etcd import Alarm, Hash, KeyValue, NoSpace, Range, Status
from protokube.members.start_values import Listed

MOST_LEARNERS = 1


class ModelEtcd:
    """Implements MaintainedEtcd for one machine, which reaches members by their names."""

    def __init__(self, model: EtcdModel, machine: Machine) -> None:
        self.model, self.machine = model, machine
        self.calls = 0
        self._connected: set[str] = set()
        """Machines whose members answered before: connections outlive DNS."""

    def members(self) -> Sequence[Listed]:
        return self._led()[0].db.state.members

    def listed_by(self, endpoint: str) -> Sequence[Listed]:
        return self._one(endpoint).db.state.members

    def status(self, endpoint: str) -> Status:
        process, found = self._one(endpoint), self.model.leader()
        state = process.db.state
        me = state.member(process.db.member)
        leader = found[0].db.member if found and process in found[1] else 0
        return Status(
            cluster_id=process.db.cluster, member_id=process.db.member, leader=leader, revision=state.sequence,
            raft_term=1, raft_index=state.sequence, applied_index=state.sequence, db_size=process.db.size,
            version=process.version, learner=bool(me and me.learner), db_size_in_use=state.live + state.old,
            errors=tuple(f"memberID:{each.member} alarm:{each.name} " for each in sorted(state.alarms)),
        )  # fmt: skip

    def cluster_version(self) -> str:
        major, minor = self._led()[0].db.state.version
        return f"{major}.{minor}.0" if major else ""

    def reachable(self, endpoint: str) -> bool:
        calls = self.calls
        try:
            self._one(endpoint)
        except TryLater:
            return False
        finally:
            self.calls = calls  # a connection is looked at, and nothing is asked
        return True

    def survey(self, seconds: float, unlikely: str = "") -> Mapping[str, Status]:
        found: dict[str, Status] = {}
        for name in sorted({each.name for each in self.model.processes.values()}):
            with suppress(TryLater):
                found[name] = self.status(name)
        return found

    def hash(self, endpoint: str, revision: int) -> Hash:
        db = self._one(endpoint).db
        return Hash(cluster_id=db.cluster, member_id=db.member, hash=db.state.history, revision=revision, compacted=0)

    def add_learner(self, peer_url: str) -> Listed:
        found = self._led()
        state = found[0].db.state
        if sum(each.learner for each in state.members) >= MOST_LEARNERS:
            raise TryLater("etcdserver: too many learner members in cluster")
        if not state.voters <= {each.db.member for each in found[1]}:
            raise TryLater("etcdserver: unhealthy cluster")
        if state.by_url(peer_url):
            raise TryLater("etcdserver: Peer URLs already exists")
        new = Listed(id=self.model.number() + 2**32, name="", peer_urls=(peer_url,), client_urls=(), learner=True)
        self._carry_out(found, lambda known: replace(known, members=(*known.members, new)))
        return new

    def promote(self, member: int) -> None:
        found = self._led()
        me = found[0].db.state.member(member)
        if me is None or member not in {each.db.member for each in found[1]}:
            raise TryLater("etcdserver: can only promote a learner member which is in sync with leader")
        if me.learner:
            self._carry_out(found, partial(with_member, before=me, after=replace(me, learner=False)))

    def remove(self, member: int) -> None:
        found = self._led()
        self.model.removed_running += [each.db.member for each in self.model.able() if each.db.member == member]
        left = tuple(each for each in found[0].db.state.members if each.id != member)
        self._carry_out(found, lambda known: replace(known, members=left))

    def alarms(self) -> Sequence[Alarm]:
        return sorted(self._led()[0].db.state.alarms)

    def disarm(self, alarm: Alarm) -> None:
        self._carry_out(self._led(), lambda known: replace(known, alarms=known.alarms - {alarm}))

    def compact(self, revision: int, *, physical: bool = True) -> None:
        def deleted(known: State) -> State:
            return replace(known, old=0) if revision >= known.old_until else known

        self._carry_out(self._led(), deleted)

    def defragment(self, endpoint: str) -> None:
        db = self._one(endpoint).db
        db.size = db.state.live + db.state.old

    def move_leader(self, endpoint: str, target: int) -> None:
        found = self._led()
        if found[0].name != endpoint:
            raise TryLater("etcdserver: not leader")
        self.model.preferred = target

    def page(self, endpoint: str, start: str, limit: int, *, values: bool = False) -> Sequence[KeyValue]:
        keys = self._one(endpoint).db.state.keys
        return [keys[key] for key in sorted(keys) if key >= start][:limit]

    def grant(self, ttl: int) -> int:
        found, lease = self._room(), self.model.number()
        self._lease(found, lease, ttl)
        return lease

    def keep(self, lease: int) -> bool:
        found = self._led()
        known = found[0].db.state.leases.get(lease)
        if known is None:
            return False
        self._lease(found, lease, known[0])
        return True

    def _lease(self, found: Found, lease: int, ttl: int) -> None:
        granted = (ttl, self.model.clock.seconds + ttl)
        self._carry_out(found, lambda known: replace(known, leases={**known.leases, lease: granted}))

    def revoke(self, lease: int) -> None:
        self._carry_out(self._led(), partial(without_leases, over={lease}))

    def read(self, prefix: str) -> Sequence[KeyValue]:
        keys = self._led()[0].db.state.keys
        return tuple(keys[key] for key in sorted(keys) if key.startswith(prefix))

    def read_at(self, prefix: str) -> Range:
        db = self._led()[0].db
        keys = tuple(db.state.keys[key] for key in sorted(db.state.keys) if key.startswith(prefix))
        return Range(cluster_id=db.cluster, revision=db.state.sequence, keys=keys)

    def put(self, key: str, value: str, lease: int = 0) -> int:
        return self._put(self._room(), key, value, lease)

    def create(self, key: str, value: str, lease: int = 0) -> bool:
        found = self._room()
        if key in found[0].db.state.keys:
            return False
        self._put(found, key, value, lease)
        return True

    def _put(self, found: Found, key: str, value: str, lease: int) -> int:
        state = found[0].db.state
        if lease and lease not in state.leases:
            raise TryLater("etcdserver: requested lease not found")
        entry = KeyValue(key=key, value=value, lease=lease, mod_revision=state.sequence + 1)
        return self._carry_out(found, lambda known: replace(known, keys={**known.keys, key: entry})).sequence

    def _carry_out(self, found: Found, change: Callable[[State], State]) -> State:
        after = self.model.carry_out(found, change)
        if self.model.answers_lost:
            raise TryLater("no answer from etcd, so it may have been done or not")
        return after

    def _led(self) -> Found:
        self.calls += 1
        found = self.model.led()
        reached = {each.machine.id for each in found[1] if self._reaches(each)}
        if not reached:
            raise TryLater("no member of etcd answers")
        self._connected = reached
        return found

    def _room(self) -> Found:
        """Who leads, if etcd takes writes."""
        found = self._led()
        if any(each.name == "NOSPACE" for each in found[0].db.state.alarms):
            raise NoSpace("etcdserver: mvcc: database space exceeded")
        return found

    def _reaches(self, process: Process) -> bool:
        if process.machine.id == self.machine.id:
            return True
        try:
            return self.machine.resolve(process.host_name) == process.machine.address
        except TryLater:
            return process.machine.id in self._connected

    def _one(self, endpoint: str) -> Process:
        self.calls += 1
        self.model.progress()
        for process in self.model.able():
            if process.name == endpoint and self._reaches(process):
                return process
        raise TryLater(f"{endpoint} does not answer")
