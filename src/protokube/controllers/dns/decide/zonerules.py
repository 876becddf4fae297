"""Choose which zones of a provider we manage.

A rule names a zone (`example.com`), an id (`*/ID`), both (`example.com/ID`), or everything (`*`). For each zone name,
the zones that a rule names win over those that only `*` covers. The result must be unambiguous: one zone, or a public
and a private one of the same name. Otherwise all zones of that name are left alone: a guess could write to a zone that
no resolver asks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from protokube.errors import InvalidRequest
from protokube.records.names import normalise, problem
from protokube.records.zones import Horizon, Zone

ID = re.compile(r"[!-~]+")
ID_PREFIX = re.compile(r"^/?hostedzone/")
"""Route 53 puts this prefix in front of an id in some responses and not in others."""


@dataclass(frozen=True, slots=True, order=True)
class Rule:
    """Which zones to manage; an empty field matches any."""

    name: str = ""
    id: str = ""

    @property
    def wildcard(self) -> bool:
        return not self.name and not self.id

    def covers(self, zone: Zone) -> bool:
        return self.name in ("", zone.name) and self.id in ("", ID_PREFIX.sub("", zone.id))

    def __str__(self) -> str:
        return f"{self.name or '*'}/{self.id}" if self.id else self.name or "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Managed:
    """The zones we write to, by name, and why the others are left alone."""

    horizons: dict[str, Horizon]
    left: tuple[tuple[Zone, str], ...] = ()
    rules: tuple[Rule, ...] = ()

    @property
    def zones(self) -> tuple[Zone, ...]:
        return tuple(sorted(zone for horizon in self.horizons.values() for zone in horizon.zones))


def parse_rules(texts: Iterable[str]) -> tuple[Rule, ...]:
    """The rules, sorted, without duplicates; no rule at all means `*`. Raises InvalidRequest with every error."""
    rules: set[Rule] = set()
    wrong: list[str] = []
    for text in ",".join(texts).split(","):
        if not text.strip():
            continue
        rule = _parse(text.strip())
        if isinstance(rule, Rule):
            rules.add(rule)
        else:
            wrong.append(f"{text!r}: {rule}")
    if wrong:
        raise InvalidRequest(
            f"{len(wrong)} zone rule{'' if len(wrong) == 1 else 's'} cannot be read",
            saw="; ".join(wrong),
            want="example.com, example.com/ID, */ID or *",
        )
    return tuple(sorted(rules or {Rule()}))


def _parse(text: str) -> Rule | str:
    """A rule, or what is wrong with the text."""
    name, slash, id_ = text.partition("/")
    id_ = ID_PREFIX.sub("", id_)
    if not name or (slash and not id_):
        return "a part is missing beside the slash"
    if name != "*" and (why := "a wildcard" if name.startswith("*") else problem(name)):
        return f"the name has {why}"
    if id_ and not ID.fullmatch(id_):
        return "the id has a character that no id has"
    return Rule("" if name == "*" else normalise(name), "" if id_ == "*" else id_)


def choose(zones: Collection[Zone], rules: Sequence[Rule]) -> Managed:
    """The zones to manage. A rule that matches no zone has no effect; no rule at all means `*`."""
    horizons: dict[str, Horizon] = {}
    left: list[tuple[Zone, str]] = []
    explicit = [rule for rule in rules if not rule.wildcard]
    wildcard = not rules or len(explicit) < len(rules)
    for name, group in groupby(sorted(set(zones)), key=lambda zone: zone.name):
        of_name = list(group)
        if why := problem(name):
            left += ((zone, f"its name has {why}, and no name that anybody may ask for ends so") for zone in of_name)
            continue
        named = [zone for zone in of_name if any(rule.covers(zone) for rule in explicit)]
        survivors = named or (of_name if wildcard else [])
        unnamed = "another zone of that name is named by a rule" if named else "no rule covers it"
        left += ((zone, unnamed) for zone in of_name if zone not in survivors)
        public = [zone for zone in survivors if not zone.private]
        private = [zone for zone in survivors if zone.private]
        if len(public) > 1 or len(private) > 1:
            why = _unclear(name, public, private)
            left += ((zone, why) for zone in survivors)
        elif survivors:
            horizons[name] = Horizon(public=next(iter(public), None), private=next(iter(private), None))
    return Managed(horizons=horizons, left=tuple(sorted(left)), rules=tuple(rules))


def _unclear(name: str, public: Sequence[Zone], private: Sequence[Zone]) -> str:
    kinds = [
        f"{len(zones)} {word} zone{'' if len(zones) == 1 else 's'} ({', '.join(zone.id for zone in zones)})"
        for word, zones in (("public", public), ("private", private))
        if zones
    ]
    example = (public if len(public) > 1 else private)[0]
    return f"{name} is {' and '.join(kinds)}: name the one to manage by its id, as in {name}/{example.id}"
