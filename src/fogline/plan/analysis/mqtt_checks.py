"""What MQTT asks of topics and brokers, reported when a query is checked, not when it is to run."""

from __future__ import annotations

import re
from collections.abc import Collection

from fogline.common.errors import UsageError
from fogline.language import ast
from fogline.model.broker_url import BrokerUrl
from fogline.model.topics import reserved_topic, wrong_filter, wrong_topic
from fogline.plan.analysis.problems import QueryProblems, did_you_mean

_PLACE = re.compile(r"\{([^{}]*)\}")


def check_source(provider: ast.Provider, problems: QueryProblems) -> None:
    """A stream `FROM mqtt(…)`."""
    for parameter in provider.parameters:
        if parameter.key == "topic" and (wrong := wrong_filter(str(parameter.value))):
            problems.add("PARAMETER", wrong[0], parameter, wrong[1])
        if parameter.key == "broker":
            _check_broker(parameter, problems)
        if parameter.key == "format" and parameter.value == "csv" and not provider.get("header"):
            message = "csv messages do not say what their columns are"
            problems.add("PARAMETER", message, parameter, 'name them: header="time,device,x"')


def check_target(to: ast.Provider, keys: Collection[str], problems: QueryProblems) -> None:
    """Results that go `TO mqtt(…)`; its topic may name keys of the insight."""
    if not isinstance(to.get("topic"), str):
        problems.add("PARAMETER", 'TO mqtt needs topic="…"', to)
    for parameter in to.parameters:
        if parameter.key == "topic":
            _check_template(parameter, keys, problems)
        elif parameter.key == "broker":
            _check_broker(parameter, problems)


def _check_template(
    parameter: ast.Parameter, keys: Collection[str], problems: QueryProblems
) -> None:
    template = str(parameter.value)
    for name in _PLACE.findall(template):
        if name not in keys:
            hint = did_you_mean(name, keys) or f"add it to the keys: BY {name}"
            problems.add("PARAMETER", f"{{{name}}} is not a key of the insight", parameter, hint)
    if wrong := wrong_topic(_PLACE.sub("_", template)) or reserved_topic(template):
        problems.add("PARAMETER", f"results cannot go to {template!r}", parameter, wrong[1])


def _check_broker(parameter: ast.Parameter, problems: QueryProblems) -> None:
    try:
        BrokerUrl.parse(str(parameter.value))
    except UsageError as error:
        hint = "for example mqtt://127.0.0.1:1883"
        problems.add("PARAMETER", error.message, parameter, hint)
