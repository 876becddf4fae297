"""Labels and taints: the API server refuses a Node with an invalid one, in every round."""

from __future__ import annotations

import re

from protokube.config.draft import Draft
from protokube.config.machines import may_set_itself

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
WORD = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
DOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
LONGEST_DOMAIN = 253
WORD_HINT = "at most 63 letters, digits, dashes, dots and underscores, with a letter or a digit at both ends"


def is_key(text: str) -> bool:
    """`NAME` or `DOMAIN/NAME`."""
    domain, slash, name = text.rpartition("/")
    good = bool(DOMAIN.fullmatch(domain)) and len(domain) <= LONGEST_DOMAIN if slash else True
    return good and bool(WORD.fullmatch(name))


def is_value(text: str) -> bool:
    return not text or bool(WORD.fullmatch(text))


def check_labels(draft: Draft) -> None:
    """`nodeLabels` of a group or a kubelet."""
    for label, value in (draft.get("nodeLabels") or {}).items():
        path = draft.at(f"nodeLabels.{label}")
        if not is_key(label):
            hint = f"NAME or DOMAIN/NAME; a name has {WORD_HINT}"
            draft.ledger.problem(path, f"{label!r} is not a label key", hint, draft.at("nodeLabels"))
        elif not is_value(value):
            draft.ledger.problem(path, f"{value!r} is not a label value", f"empty, or {WORD_HINT}")


def check_own_labels(kubelet: Draft) -> None:
    """A kubelet exits if it is configured with a label that it may not set."""
    check_labels(kubelet)
    for label in kubelet.get("nodeLabels") or {}:
        if not may_set_itself(label):
            hint = "put it under nodeLabels of an instance group; the agent sets it"
            kubelet.ledger.problem(kubelet.at(f"nodeLabels.{label}"), "a kubelet may not set this label itself", hint)


def check_taints(draft: Draft) -> None:
    """`taints` of a group or a kubelet; a Node has at most one taint of each key and effect."""
    seen: dict[tuple[str, str], str] = {}
    for index, text in enumerate(draft.get("taints") or []):
        path = draft.at(f"taints[{index}]")
        rest, _, effect = text.rpartition(":")
        key, _, value = rest.partition("=")
        if effect not in EFFECTS or not is_key(key) or not is_value(value):
            hint = f"key=value:Effect, with one of {', '.join(EFFECTS)}"
            if effect in EFFECTS:
                hint += f"; key and value are those of a label: {WORD_HINT}"
            draft.ledger.problem(path, f"{text!r} is not a taint", hint)
        elif (key, effect) in seen:
            message = f"{text!r} has the key and the effect of {seen[key, effect]!r}"
            draft.ledger.problem(path, message, "a node has at most one such taint; keep one of the two")
        seen.setdefault((key, effect), text)
