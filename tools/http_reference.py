"""Writes the site's HTTP reference, a page of tables, from the server's OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def http_reference(document: dict[str, Any]) -> str:
    """The pages' tables of an OpenAPI document: endpoints by tag, then schemas."""
    head = document["info"]
    rows: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, what in methods.items():
            rows.setdefault(", ".join(what.get("tags", ["other"])), []).append(endpoint(method, path, what))
    parts = [f"# HTTP\n\nOpenAPI {document['openapi']}, version {head['version']} of the server. A running server has the "
             "document at `/openapi.json`. [The protocol](../http-api.md) says what it leaves out."]  # fmt: skip
    for tag, endpoints in rows.items():
        parts += [f"## {tag}", *endpoints]
    parts.append("## Schemas")
    for name, schema in sorted(document.get("components", {}).get("schemas", {}).items()):
        parts.append(f"### {name}\n\n{described(schema)}")
        properties = schema.get("properties", {})
        if properties:
            needed = schema.get("required", [])
            parts.append(table(["field", "type", "needed", ""], (
                [f"`{field}`", kind(one), "yes" if field in needed else "", cell(one)] for field, one in properties.items()
            )))  # fmt: skip
        elif "enum" in schema:
            parts.append("One of " + ", ".join(f"`{value}`" for value in schema["enum"]) + ".")
    return "\n\n".join(part for part in parts if part) + "\n"


def endpoint(method: str, path: str, what: dict[str, Any]) -> str:
    parts = [f"### {method.upper()} `{path}`", what.get("summary", ""), what.get("description", "")]
    parameters = what.get("parameters", [])
    if parameters:
        parts.append(table(["parameter", "in", "type", "needed", ""], (
            [f"`{one['name']}`", one["in"], kind(one.get("schema", {})), "yes" if one.get("required") else "", cell(one)]
            for one in parameters
        )))  # fmt: skip
    body = bodies(what.get("requestBody", {}))
    parts.append(f"Body: {body}" if body else "")
    answers = sorted(what.get("responses", {}).items())
    parts.append(table(["answer", "body", ""], ([status, bodies(one), cell(one)] for status, one in answers)))
    return "\n\n".join(part for part in parts if part)


def bodies(one: dict[str, Any]) -> str:
    """The media types of a body, and what each holds."""
    found = one.get("content", {}).items()
    return ", ".join(f"`{media}` {kind(content.get('schema', {}))}".strip() for media, content in found)


def table(head: list[str], rows: Iterator[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def described(one: dict[str, Any]) -> str:
    return str(one.get("description", ""))


def cell(one: dict[str, Any]) -> str:
    return " ".join(described(one).split()).replace("|", "\\|")


def kind(schema: dict[str, Any]) -> str:
    """A schema's type; another one's name leads there."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for word in ("oneOf", "anyOf", "allOf"):
        if word in schema:
            return " or ".join(kind(one) for one in schema[word])
    if "items" in schema:
        return f"list of {kind(schema['items'])}"
    types = schema.get("type", "")
    return " or ".join(types) if isinstance(types, list) else str(types)
