"""Results on their way into the site log: which log, which topic, which bytes.

Every insight has a log and a topic of its own, `insights/<job>/<insight>`. With `TO mqtt(topic=…)`
its results go to that topic too, by way of a log of their own, `to/<job>/<insight>`. Keys in a
topic template are filled in from the result; what would split a topic or match others becomes `_`.
"""

from __future__ import annotations

import re

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fogline.model.sites import command_log, insight_log
from fogline.model.streams import NUMBER
from fogline.plan.expressions import KeyValue
from fogline.plan.lowering.program import Output, Program
from fogline.spark.compile.keys import key_value

_UNSAFE, _SAFE = "/+#\0", "____"
_PLACE = re.compile(r"\{([^{}]*)\}")


def outbound(records: DataFrame, program: Program, job: str, outlet: str = "") -> DataFrame:
    """Rows of (log, topic, payload) from the records of `output_records`. `outlet`: the job under
    whose name they are published, where that is another one."""
    own = F.concat(F.lit(insight_log(outlet or job, "")), F.col("insight"))
    published = F.struct(
        own.alias("log"), own.alias("topic"), F.col("record").cast("binary").alias("payload")
    )
    commands = [_command(output, job) for output in program.outputs if output.to is not None]
    if not commands:
        return records.select(published.alias("row")).select("row.*")
    rows = records.select(F.explode(F.array(published, *commands)).alias("row"))
    return rows.where(F.col("row").isNotNull()).select("row.*")


def _command(output: Output, job: str) -> Column:
    assert output.to is not None
    template = next(str(p.value) for p in output.to.parameters if p.key == "topic")
    row = F.struct(
        F.lit(command_log(job, output.name)).alias("log"),
        _render_topic(template, output).alias("topic"),
        F.col("record").cast("binary").alias("payload"),
    )
    return F.when(F.col("insight") == output.name, row)


def _render_topic(template: str, output: Output) -> Column:
    types = {key.name: key.expression.type for key in output.keys}
    parts: list[Column] = []
    for index, text in enumerate(_PLACE.split(template)):
        if index % 2 == 0:
            parts.append(F.lit(text))
            continue
        value = key_value(KeyValue(text, types[text]), F.col("key"))
        shown = F.format_string("%s", value.cast("bigint")) if types[text] == NUMBER else value
        parts.append(F.translate(F.coalesce(shown, F.lit("")), _UNSAFE, _SAFE))
    return F.concat(*parts)
