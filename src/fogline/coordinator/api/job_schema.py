"""The fields of a job and of a change to one, for OpenAPI: SpecK's names and ours."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def _text(about: str) -> Schema:
    return {"type": "string", "description": about}


def _topics(about: str) -> Schema:
    place = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("topic", "site", "broker")},
        "required": ["topic"],
    }
    items = {"anyOf": [{"type": "string"}, place]}
    return {"type": "array", "items": items, "description": about}


_PARAMETER = {"type": ["string", "number", "boolean"]}
_FIELDS: Schema = {
    "job_name": _text("its name, unique among all jobs; also: name"),
    "name": _text("the same as job_name"),
    "site": _text("where it runs: a node's name"),
    "spe_address": _text("where it runs: the address at which the node announces itself"),
    "entry_class": _text("the function: module.function; also: entry"),
    "entry": _text("the function: module:function"),
    "job_path": _text("the package with the code, as PUT /packages names it"),
    "query": _text("instead of code: the text of a query, or the name of an .ins file"),
    "steps": {
        "type": "array",
        "items": {"type": "object", "properties": {"op": {"type": "string"}}, "required": ["op"]},
        "description": "instead of code, on a gateway: light operators",
    },
    "source_broker": _text("where source_topic is: mqtt://host:port"),
    "source_topic": _text("what it reads"),
    "source_topics": _topics("what it reads"),
    "sink_broker": _text("where sink_topic is: mqtt://host:port"),
    "sink_topic": _text("where its results go"),
    "sink_topics": _topics("where its results go"),
    "parameters": {
        "type": "object",
        "additionalProperties": _PARAMETER,
        "description": "values for the code or the steps",
    },
    "input": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "how code gets its records: format, schema, time, lateness",
    },
    "publish": {"type": "boolean", "description": "publish results on the broker too"},
    "running": {"type": "boolean", "description": "false: installed, but stopped"},
}

JOB: Schema = {"type": "object", "properties": _FIELDS, "additionalProperties": False}
CHANGE: Schema = {
    "type": "object",
    "properties": {
        "parameters": {
            "type": "object",
            "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
            "description": "values that change; null takes one back",
        },
        "running": {"type": "boolean"},
    },
    "additionalProperties": False,
}
