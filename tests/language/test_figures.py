"""The example queries of the document the language comes from, as they are printed there."""

from __future__ import annotations

import pytest

from fogline.language import parse, print_query
from fogline.language.ast import (
    Binary,
    Call,
    Comparison,
    Insight,
    Metric,
    Number,
    Options,
    TimeWindow,
)

FIGURES = {
    12: """
cpu_stream = STREAM FROM storageFabric (metricID="cpu_ptc",
                                         entityType="POD",
                                         podNamespace="{namespace}",
                                         podName="{podName}");

avg_cpu = COMPUTE (
    AVG("cpu_ptc" FROM (cpu_stream), 60 SECONDS)
    WHEN  ≥ 60.0
    ) EVERY 10 SECONDS;
""",
    13: """
temperature = STREAM FROM storageFabric (metricID="temperature");
abnormal_temperature = COMPUTE AVG(temperature, 10 MINUTES) WHEN >
    RUNNING_MEAN(temperature) +
    3*RUNNING_STD(temperature)
""",
    14: """
walker_stream = STREAM FROM storageFabric (metricID="walker_%");
robot_stream = STREAM FROM storageFabric (metricID="robot_%");
robot_delay_ratio = COMPUTE (
    100.0 *
    MAX("robot_publish_rate" FROM (robot_stream), 10 SECONDS) /
    MAX("robot_deliver_rate" FROM (robot_stream), 10 SECONDS)
) EVERY 5 SECONDS;

walker_delay_ratio = COMPUTE (
    100.0 *
    MAX("walker_publish_rate" FROM (walker_stream), 5 SECONDS) /
    MAX("walker_deliver_rate" FROM (walker_stream), 5 SECONDS)
) EVERY 1 SECONDS;
""",
    15: """
moves = STREAM FROM storageFabric (metricID="robot_joints_moves");
outliers = COMPUTE OUTLIER_DETECTION(moves, 10 MINUTES) EVERY 5 SECONDS
          WITH ALGORITHM pmcod AND K=50 AND R=0.5
""",
    16: """
event_stream = STREAM FROM storageFabric (metricID="dangerous_event");
notif = COMPUTE (
    SUM("dangerous_event" FROM (event_stream), 10 SECONDS) BY node_id WHEN >= 5.0
    ) EVERY 1 SECONDS;
""",
    17: """
cpu_util = STREAM FROM storageFabric (metricID="cpu_ptc");
running_cpu_util = COMPUTE RUNNING_AVG(cpu_util)
                  WITH SCHEDULER=RAINBOW_EnergyAware;

network_io = STREAM FROM storageFabric (nodeID="{node-id}");
sum_network_io = COMPUTE AVG(network_io, 30 MINUTES) EVERY 15 SECONDS
                  WITH SAMPLE 0.2;

gpu_memory = STREAM FROM storageFabric (metricID="gpu_memory");
gpu_memory_load = COMPUTE AVG(gpu_memory, 10 MINUTES)
                  WITH MAX_ERROR 0.05 AND CONFIDENCE 0.95
""",
    20: """
insight1 = COMPUTE (
    AVG("SYSTEM_CPU_VISIBLETOTAL" FROM (stream2), 10 SECONDS)
) EVERY 5 SECONDS;
""",
}


@pytest.mark.parametrize("number", FIGURES)
def test_figure_survives_printing(number: int) -> None:
    tree = parse(FIGURES[number])
    assert parse(print_query(tree)) == tree


def insights(number: int) -> dict[str, Insight]:
    return {insight.name: insight for insight in parse(FIGURES[number]).insights}


def average(name: str, *streams: str, millis: int) -> Call:
    return Call("AVG", (Metric(name, streams),), window=TimeWindow(millis))


def test_figure_12() -> None:
    assert insights(12)["avg_cpu"] == Insight(
        "avg_cpu",
        average("cpu_ptc", "cpu_stream", millis=60_000),
        when=Comparison(">=", None, Number(60.0)),
        every=TimeWindow(10_000),
    )


def test_figure_13() -> None:
    temperature = (Metric("temperature"),)
    limit = Binary(
        "+",
        Call("RUNNING_MEAN", temperature),
        Binary("*", Number(3.0), Call("RUNNING_STD", temperature)),
    )
    assert insights(13)["abnormal_temperature"].when == Comparison(">", None, limit)


def test_figure_14() -> None:
    ratio = insights(14)["walker_delay_ratio"]
    assert isinstance(ratio.expression, Binary)
    assert ratio.expression.operator == "/"
    assert ratio.every == TimeWindow(1000)


def test_figure_15() -> None:
    wanted = Options(algorithm="pmcod", neighbours=50, radius=0.5)
    assert insights(15)["outliers"].options == wanted


def test_figure_16() -> None:
    notif = insights(16)["notif"]
    assert notif.keys == (Metric("node_id"),)
    assert isinstance(notif.expression, Call)
    assert notif.expression.keys == ()
    assert notif.when == Comparison(">=", None, Number(5.0))


def test_figure_17() -> None:
    found = [insight.options for insight in insights(17).values()]
    assert found == [
        Options(scheduler="RAINBOW_EnergyAware"),
        Options(sample=0.2),
        Options(max_error=0.05, confidence=0.95),
    ]


def test_figure_20() -> None:
    expression = average("SYSTEM_CPU_VISIBLETOTAL", "stream2", millis=10_000)
    wanted = Insight("insight1", expression, every=TimeWindow(5000))
    assert insights(20) == {"insight1": wanted}


def test_old_grammar_with_colon_and_quoted_key() -> None:
    file = parse('s : STREAM FROM storageFabric(metricID="x"); i = compute SUM("x", 5 s) by "node"')
    assert file.streams[0].name == "s"
    assert file.insights[0].keys == (Metric("node"),)
