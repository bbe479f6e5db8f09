"""The page that shows the interface to people: one HTML text, nothing from anywhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem }
code { font-family: ui-monospace, monospace }
section { border-top: 1px solid #bbb; padding: .5rem 0 }
h2 { font-size: 1.05rem; margin: .3rem 0 } b { display: inline-block; min-width: 4.5rem }
p { margin: .2rem 0 }
@media (prefers-color-scheme: dark) { body { background: #111; color: #eee } }
"""


def page_of(openapi: Mapping[str, Any]) -> str:
    title = escape(f"{openapi['info']['title']} {openapi['info']['version']}")
    sections = "\n".join(_sections(openapi))
    intro = escape(str(openapi["info"].get("description", "")))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{title}</h1><p>{intro}</p>\n{sections}\n</body></html>\n"
    )


def _sections(openapi: Mapping[str, Any]) -> Iterator[str]:
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            yield (
                f"<section><h2><b>{escape(method.upper())}</b> <code>{escape(path)}</code></h2>"
                f"<p>{escape(_about(operation))}</p>{_details(operation)}</section>"
            )


def _about(operation: Mapping[str, Any]) -> str:
    return " ".join(filter(None, (operation.get(key) for key in ("summary", "description"))))


def _details(operation: Mapping[str, Any]) -> str:
    parts = []
    named = [p["name"] for p in operation.get("parameters", ()) if p.get("in") == "query"]
    if named:
        parts.append("Parameters: " + _codes(named))
    content = operation.get("requestBody", {}).get("content", {})
    if content:
        parts.append("Body: " + _codes(content))
    parts.append("Answers: " + _codes(operation.get("responses", {})))
    return "".join(f"<p>{part}</p>" for part in parts)


def _codes(names: Any) -> str:
    return ", ".join(f"<code>{escape(str(name))}</code>" for name in names)
