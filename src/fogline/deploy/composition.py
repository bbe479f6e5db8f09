"""Compositions: jobs at sites, written down in YAML.

Takes SpecK's field names and ours, also mixed. Only what can be told from the text alone is checked
here; `resolve` looks names, code and topics up.
"""

from __future__ import annotations

from fogline.deploy.fields import Fields
from fogline.deploy.problems import Lines, Problems
from fogline.deploy.tree import START, Items, Table, Value, Word, kind_of
from fogline.deploy.written import (
    CODE_INPUT,
    GATEWAY_INPUT,
    Composition,
    WrittenJob,
    WrittenPlace,
)
from fogline.deploy.yaml_tree import read_yaml
from fogline.model.streams import FORMATS

TOP_FIELDS = ("jobs", "inputs", "name", "brokers")
JOB_FIELDS = (
    *("name", "job_name", "site", "spe_address", "entry", "entry_class", "job_path", "query"),
    *("steps", "source_broker", "sink_broker", "source_topic", "sink_topic", "source_topics"),
    *("sink_topics", "parameters", "input", "publish", "running"),
)
PLACE_FIELDS = ("topic", "site", "broker")
INPUT_FIELDS = CODE_INPUT + GATEWAY_INPUT


def read_composition(text: str) -> Composition:
    """What a text says; raises PipelineError with everything wrong in it."""
    lines = Lines.of_yaml(text)
    problems = Problems(lines)
    tree = read_yaml(text, problems)
    composition = _Reader(problems).composition(tree, lines)
    problems.raise_if_any()
    return composition


class _Reader:
    def __init__(self, problems: Problems) -> None:
        self._problems = problems

    def composition(self, tree: Value | None, lines: Lines) -> Composition:
        if not isinstance(tree, Table):
            self._no_composition(tree)
            return Composition(())
        fields = Fields(tree, self._problems)
        fields.refuse_unknown(TOP_FIELDS, "a composition")
        if not fields.items("jobs") and not isinstance(tree.fields.get("jobs"), Items):
            self._problems.add("MISSING", "a composition has jobs", tree.at, "jobs: a list of jobs")
        name = fields.word("name")
        inputs = None if fields.value("inputs") is None else self._places(fields, "inputs", None)
        brokers = tuple(item for item in fields.items("brokers") if self._is_word(item))
        return Composition(
            tuple(job for item in fields.items("jobs") if (job := self._job(item))),
            name.text if name else "",
            inputs,
            tuple(item for item in brokers if isinstance(item, Word)),
            lines,
        )

    def _no_composition(self, tree: Value | None) -> None:
        if len(self._problems):
            return
        at, what = (START, "nothing") if tree is None else (tree.at, kind_of(tree))
        message = f"a composition is a mapping with jobs, not {what}"
        self._problems.add("TYPE", message, at, "begin with jobs:")

    def _job(self, value: Value) -> WrittenJob | None:
        if not isinstance(value, Table):
            self._problems.add("TYPE", f"a job is a mapping, not {kind_of(value)}", value.at)
            return None
        fields = Fields(value, self._problems)
        fields.refuse_unknown(JOB_FIELDS, "a job")
        name = fields.one_of("name", "job_name")
        if not value.fields.keys() & {"name", "job_name"}:
            self._problems.add("MISSING", "a job has a name", value.at, "add job_name")
        return WrittenJob(
            name=name or Word("", value.at),
            site=fields.word("site"),
            address=fields.word("spe_address"),
            entry=fields.entry(),
            path=fields.word("job_path"),
            query=fields.word("query"),
            steps=fields.steps("steps"),
            reads=self._flow(fields, "source"),
            writes=self._flow(fields, "sink"),
            parameters=fields.scalars("parameters"),
            input=self._input(fields),
            publish=fields.flag("publish", False),
            running=fields.flag("running", True),
            spots=fields.spots(),
        )

    def _flow(self, fields: Fields, end: str) -> tuple[WrittenPlace, ...]:
        """The topics of a job's source or sink."""
        broker = fields.word(f"{end}_broker")
        single = fields.word(f"{end}_topic")
        places = self._places(fields, f"{end}_topics", broker)
        if single is not None:
            places = (WrittenPlace(single, None, broker), *places)
        if broker is not None and not places:
            message = f"{end}_broker without {end}_topic"
            self._problems.add("MISSING", message, broker.at, f"add {end}_topic")
        return places

    def _places(self, fields: Fields, name: str, broker: Word | None) -> tuple[WrittenPlace, ...]:
        found = (self._place(item, broker) for item in fields.items(name))
        return tuple(place for place in found if place is not None)

    def _place(self, value: Value, broker: Word | None) -> WrittenPlace | None:
        if isinstance(value, Word):
            return WrittenPlace(value, None, broker) if self._is_word(value) else None
        if not isinstance(value, Table):
            self._problems.add("TYPE", "a topic, or {topic, site}, not a list", value.at)
            return None
        fields = Fields(value, self._problems)
        fields.refuse_unknown(PLACE_FIELDS, "a topic")
        topic, site, own = (fields.word(name) for name in PLACE_FIELDS)
        if topic is None:
            self._problems.add("MISSING", "the topic is missing", value.at, "add topic")
            return None
        if site is not None and own is not None:
            self._problems.add("CONFLICT", "site or broker, not both", value.at)
        return WrittenPlace(topic, site, own or (None if site else broker))

    def _is_word(self, value: Value) -> bool:
        usable = isinstance(value, Word) and not value.empty
        if not usable:
            self._problems.add("TYPE", f"a text is wanted, not {kind_of(value)}", value.at)
        return usable

    def _input(self, fields: Fields) -> dict[str, str]:
        table = fields.mapping("input")
        if table is None:
            return {}
        inner = Fields(table, self._problems)
        inner.refuse_unknown(INPUT_FIELDS, "input")
        words = {name: inner.word(name) for name in INPUT_FIELDS}
        form = words["format"]
        if form is not None and form.text not in FORMATS:
            message = f"no format {kind_of(form)}"
            hint = "formats: " + ", ".join(FORMATS)
            self._problems.add_unknown("FORMAT", message, form.at, form.text, FORMATS, hint)
        return {name: word.text for name, word in words.items() if word is not None}
