"""Plans print themselves: expressions and operators as the text `fogline explain` shows."""

from __future__ import annotations

from fogline.language.ast import EventWindow, SessionWindow, TimeWindow
from fogline.plan.expressions import (
    Aggregate,
    AnyOf,
    Apply,
    Arithmetic,
    Compare,
    Constant,
    Every,
    Expr,
    Field,
    FromOrigin,
    Guarded,
    Inverse,
    KeyValue,
    OneOf,
    Running,
    Sampled,
    StartsWith,
    WindowSpec,
)
from fogline.plan.operators import (
    Combine,
    Emit,
    Evaluate,
    Feed,
    Filter,
    Key,
    Operator,
    Panes,
    Partial,
    Plan,
    Requery,
    Sample,
    Sampling,
    Scan,
    Trigger,
    Window,
    inputs_of,
)


def show_duration(millis: int) -> str:
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if millis % size == 0 and millis:
            return f"{millis // size} {unit}"
    return f"{millis} ms"


def show_window(window: WindowSpec | Trigger) -> str:
    match window:
        case TimeWindow(millis=millis):
            return show_duration(millis)
        case EventWindow(events=events):
            return f"{events} events"
        case SessionWindow(gap_millis=gap):
            return f"session {show_duration(gap)}"
        case Running():
            return "running"
    return "on arrival"


def show(expr: Expr) -> str:
    """One expression on one line."""
    match expr:
        case Constant(value):
            return f"{value:g}" if isinstance(value, float) else repr(value)
        case Field(name=name) | KeyValue(name=name):
            return name
        case Aggregate():
            return _aggregate(expr)
        case Arithmetic(operator, left, right):
            return f"({show(left)} {operator} {show(right)})"
        case Apply():
            numbers = f"[{_numbers(expr.parameters)}]" if expr.parameters else ""
            return f"{expr.function}{numbers}({', '.join(map(show, expr.arguments))})"
        case Guarded(condition, value):
            return f"({show(value)} when {show(condition)})"
        case Compare(operator, left, right):
            return f"{show(left)} {operator} {show(right)}"
        case OneOf(operand, values):
            return f"{show(operand)} in ({', '.join(map(str, values))})"
        case StartsWith(operand, prefix):
            return f"{show(operand)} like {prefix}%"
        case Every(terms):
            return " and ".join(f"({show(t)})" if isinstance(t, AnyOf) else show(t) for t in terms)
        case AnyOf(terms):
            return " or ".join(show(t) for t in terms)
        case Inverse(operand):
            return f"not ({show(operand)})"
        case Sampled(fraction):
            return "sampled live" if fraction is None else f"sampled {fraction:g}"
        case FromOrigin(origins):
            return f"from {', '.join(origins)}"


def _numbers(values: tuple[float, ...]) -> str:
    return ", ".join(f"{v:g}" for v in values)


def _aggregate(aggregate: Aggregate) -> str:
    numbers = f"[{_numbers(aggregate.parameters)}]" if aggregate.parameters else ""
    arguments = ", ".join(map(show, aggregate.arguments))
    condition = f" when {show(aggregate.condition)}" if aggregate.condition is not None else ""
    window = "" if isinstance(aggregate.window, Running) else f", {show_window(aggregate.window)}"
    offset = f", {show_duration(aggregate.offset_ms)} ago" if aggregate.offset_ms else ""
    return f"{aggregate.function}{numbers}({arguments}{condition}{window}{offset})"


def _keys(keys: tuple[Key, ...]) -> str:
    return f" by {', '.join(k.name for k in keys)}" if keys else ""


def _sampling(sampling: Sampling) -> str:
    if sampling.fraction is not None:
        return f"{sampling.fraction:g}"
    return f"error ≤ {sampling.max_error:g} at {sampling.confidence:g}"


def _partial(partial: Partial) -> str:
    return f"{partial.kind}({', '.join(_input(e) for e in partial.inputs)})"


def _input(expr: Expr) -> str:
    """An input without the part of its condition that says where the record comes from."""
    if not isinstance(expr, Guarded):
        return show(expr)
    terms = expr.condition.terms if isinstance(expr.condition, Every) else (expr.condition,)
    left = [t for t in terms if not isinstance(t, FromOrigin)]
    if not left:
        return show(expr.value)
    return f"{show(expr.value)} when {' and '.join(show(t) for t in left)}"


def show_operator(operator: Operator) -> str:
    """One operator on one line, without its inputs."""
    match operator:
        case Scan():
            return _scan(operator)
        case Feed(insight):
            return f"Feed {insight}"
        case Requery(insight, _):
            return f"Requery {insight} (computed again)"
        case Filter(_, condition):
            return f"Filter {show(condition)}"
        case Sample(_, sampling):
            return f"Sample {_sampling(sampling)}"
        case Window(_, aggregate, keys, trigger):
            return f"Window {show(aggregate)}{_keys(keys)} every {show_window(trigger)}"
        case Panes():
            kept = [_partial(p) for p in operator.partials]
            if operator.events:
                kept.append(f"events({', '.join(_input(e) for e in operator.events)})")
            size = show_duration(operator.pane_ms)
            return f"Panes {size}{_keys(operator.keys)}: {', '.join(kept)}"
        case Combine(_, aggregates, trigger, _):
            listed = ", ".join(show(a) for a in aggregates)
            return f"Combine every {show_window(trigger)}: {listed}"
        case Evaluate():
            shown = f" when {show(operator.condition)}" if operator.condition else ""
            return f"Evaluate {show(operator.value)}{_keys(operator.keys)}{shown}"
        case Emit():
            return f"Emit {operator.name}{' (hidden)' if operator.hidden else ''}"


def _scan(scan: Scan) -> str:
    if scan.columns is None:
        columns = "*"
    else:
        columns = ", ".join(f"{f.name} {f.type}" for f in scan.columns) or "nothing"
    condition = f" where {show(scan.condition)}" if scan.condition is not None else ""
    sample = f" sample {_sampling(scan.sampling)}" if scan.sampling else ""
    return f"Scan {scan.stream.name} [{columns}]{condition}{sample}"


def show_plan(plan: Plan) -> str:
    """The whole plan; a sub-plan that stands twice is printed once and then named.

    What an insight computes again is not shown again: that insight stands above it.
    """
    lines: list[str] = []
    seen: dict[Operator, int] = {}
    for emit in plan.emits:
        _tree(emit, 0, lines, seen)
    return "\n".join(lines)


def _tree(operator: Operator, depth: int, lines: list[str], seen: dict[Operator, int]) -> None:
    text = "  " * depth + show_operator(operator)
    shared = isinstance(operator, Combine | Panes)
    if shared and operator in seen:
        lines.append("  " * depth + f"{type(operator).__name__} #{seen[operator]} (shared)")
        return
    if shared:
        seen[operator] = len(seen) + 1
        text = text.replace(type(operator).__name__, f"{type(operator).__name__} #{len(seen)}", 1)
    lines.append(text)
    for child in () if isinstance(operator, Requery) else inputs_of(operator):
        _tree(child, depth + 1, lines, seen)
