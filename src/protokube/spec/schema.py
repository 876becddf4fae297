"""The schema as JSON Schema, for editors: every field, with a line of description."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any, get_origin

from protokube.spec.cluster import Cluster
from protokube.spec.fields import Declared, declared, duration, element, quantity
from protokube.spec.group import InstanceGroup
from protokube.spec.parse import API_VERSION

DIALECT = "https://json-schema.org/draft/2020-12/schema"
KINDS: dict[str, type] = {"Cluster": Cluster, "InstanceGroup": InstanceGroup}
SCALARS: dict[Any, str] = {str: "string", int: "integer", bool: "boolean", float: "number"}


def json_schema(kind: str | None = None) -> dict[str, Any]:
    """The JSON Schema of one kind, or of both."""
    parts: dict[str, Any] = {}
    kinds = {name: schema for name, schema in KINDS.items() if kind in (None, name)}
    documents = [_document(name, schema, parts) for name, schema in kinds.items()]
    head: dict[str, Any] = {"$schema": DIALECT, "title": f"protokube {kind or 'documents'}"}
    # an editor that knows the kind shows the fields of that kind only
    body = documents[0] if len(documents) == 1 else {"oneOf": documents}
    return {**head, **body, "$defs": dict(sorted(parts.items()))}


def _document(kind: str, schema: type, parts: dict[str, Any]) -> dict[str, Any]:
    metadata = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "labels": {"type": "object"},
            "annotations": {"type": "object"},
            "creationTimestamp": {},
            "generation": {},
            "namespace": {"type": "string"},
        },
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": kind},
            "metadata": metadata,
            "spec": _record(schema, parts),
            "rendered": {"type": "object", "description": "Flags and files; shown by `complete`, never read"},
        },
        "additionalProperties": False,
    }


def _record(schema: type, parts: dict[str, Any]) -> dict[str, Any]:
    name = schema.__name__
    if name not in parts:
        parts[name] = {}
        properties = {field: _field(rule, parts) for field, rule in declared(schema).items()}
        doc = (schema.__doc__ or "").partition("\n")[0]
        parts[name] = {"type": "object", "description": doc, "properties": properties, "additionalProperties": False}
    return {"$ref": f"#/$defs/{name}"}


def _field(rule: Declared, parts: dict[str, Any]) -> dict[str, Any]:
    if rule.keyed:
        inner = _record(element(rule.type), parts)
        own = parts[element(rule.type).__name__]["properties"]
        own.setdefault("name", {"type": "string", "description": "Its name"})
        schema: dict[str, Any] = {"type": "array", "items": {**inner, "required": ["name"]}}
    else:
        schema = _type(rule.type, parts)
    if described := describe(rule):
        schema = {**schema, "description": described}
    return {**schema, **_bounds(rule)}


def describe(rule: Declared) -> str:
    """The description of a field; for a component's setting, its flag and file entry."""
    flag = f"--{rule.flag}" if rule.flag else ""
    since = f" (from {rule.since})" if rule.since else ""
    file = f"{rule.file}{since} in its configuration file" if rule.file else ""
    return ". ".join(part for part in (rule.doc, " or ".join(part for part in (flag, file) if part)) if part)


def _type(kind: Any, parts: dict[str, Any]) -> dict[str, Any]:
    if is_dataclass(kind):
        return _record(kind, parts)  # type: ignore[arg-type]  # a schema class
    if kind is Any:
        return {}
    if get_origin(kind) is list:
        return {"type": "array", "items": _type(element(kind), parts)}
    if get_origin(kind) is dict:
        inner = element(kind)
        # labels may have no value, and the decoder takes an unquoted `true` as text where the schema has text
        values = {"type": ["string", "number", "boolean", "null"]} if inner is str else _type(inner, parts)
        return {"type": "object", "additionalProperties": values}
    if kind is str:
        return {"type": ["string", "number", "boolean"]}
    return {"type": SCALARS[kind]}


def _bounds(rule: Declared) -> dict[str, Any]:
    if choices := getattr(rule.check, "choices", None):
        return {"enum": list(choices)}
    if bounds := getattr(rule.check, "bounds", None):
        least, most = bounds
        return {"minimum": least, **({"maximum": most} if most is not None else {})}
    if examples := getattr(rule.check, "examples", None):
        return {"examples": list(examples)}
    for check, examples in ((duration, ["30s", "5m"]), (quantity, ["100m", "512Mi"])):
        if rule.check is check:
            return {"examples": examples}
    return {}
