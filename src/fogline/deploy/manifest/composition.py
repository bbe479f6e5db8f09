"""Compositions: jobs at sites, written down in YAML.

Takes SpecK's field names and ours, also mixed. Only what the text alone can show is checked
here; `resolve` looks names, code and topics up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fogline.deploy.manifest.fields import Fields
from fogline.deploy.manifest.manifest import (
    CODE_INPUT,
    GATEWAY_INPUT,
    UNKNOWN,
    Composition,
    WrittenJob,
    WrittenPlace,
)
from fogline.deploy.manifest.problems import Lines, Problems, closest
from fogline.deploy.manifest.tree import START, Items, TreeTable, TreeValue, Word, kind_of
from fogline.deploy.manifest.yaml_tree import read_yaml
from fogline.model.streams import FORMATS

T = TypeVar("T")

TOP_FIELDS = ("jobs", "inputs", "name", "brokers")
JOB_FIELDS = (
    *("name", "job_name", "site", "spe_address", "entry", "entry_class", "job_path", "query"),
    *("steps", "source_broker", "sink_broker", "source_topic", "sink_topic", "source_topics"),
    *("sink_topics", "parameters", "input", "publish", "running"),
)
PLACE_FIELDS = ("topic", "site", "broker")
INPUT_FIELDS = CODE_INPUT + GATEWAY_INPUT


def read_composition(text: str) -> Composition:
    """What a text says, as far as it can be read, and what is wrong with the rest."""
    problems = Problems(Lines.of_yaml(text))
    return _Reader(problems).composition(read_yaml(text, problems))


class _Unread:
    """Notes which fields have problems; the order of reading is that of calls."""

    def __init__(self, problems: Problems) -> None:
        self.fields: set[str] = set()
        self._problems = problems

    def of(self, name: str, read: Callable[[], T]) -> T:
        before = len(self._problems)
        value = read()
        if len(self._problems) > before:
            self.fields.add(name)
        return value


class _Reader:
    def __init__(self, problems: Problems) -> None:
        self._problems = problems

    def composition(self, tree: TreeValue | None) -> Composition:
        if not isinstance(tree, TreeTable):
            self._no_composition(tree)
            return Composition((), problems=self._problems)
        fields = Fields(tree, self._problems)
        fields.refuse_unknown(TOP_FIELDS, "a composition")
        if not fields.items("jobs") and not isinstance(tree.fields.get("jobs"), Items):
            self._problems.add("MISSING", "a composition has jobs", tree.at, "jobs: a list of jobs")
        name = fields.word("name")
        brokers = tuple(item for item in fields.items("brokers") if self._is_word(item))
        unread = _Unread(self._problems)
        inputs = unread.of("inputs", lambda: self._places(fields, "inputs", None))
        items = unread.of("jobs", lambda: fields.items("jobs"))
        jobs = [self._job(item) for item in items]
        return Composition(
            tuple(job for job in jobs if job is not None),
            name.text if name else "",
            inputs if fields.value("inputs") is not None else None,
            tuple(item for item in brokers if isinstance(item, Word)),
            self._problems,
            bool(unread.fields) or None in jobs,
        )

    def _no_composition(self, tree: TreeValue | None) -> None:
        if len(self._problems):
            return
        at, what = (START, "nothing") if tree is None else (tree.at, kind_of(tree))
        message = f"a composition is a mapping with jobs, not {what}"
        self._problems.add("TYPE", message, at, "begin with jobs:")

    def _job(self, value: TreeValue) -> WrittenJob | None:
        if not isinstance(value, TreeTable):
            self._problems.add("TYPE", f"a job must be a mapping, not {kind_of(value)}", value.at)
            return None
        fields = Fields(value, self._problems)
        unread = _Unread(self._problems)
        fields.refuse_unknown(JOB_FIELDS, "a job")
        unread.fields |= {_guess_field(name) for name in value.fields if name not in JOB_FIELDS}
        name = unread.of("name", lambda: fields.one_of("name", "job_name"))
        if name is None and not unread.fields & {UNKNOWN, "name"}:
            unread.of("name", lambda: self._no_name(value))
        return WrittenJob(
            name=name or Word("", value.at),
            site=unread.of("site", lambda: fields.word("site")),
            address=unread.of("spe_address", lambda: fields.word("spe_address")),
            entry=unread.of("entry", fields.entry),
            path=unread.of("job_path", lambda: fields.word("job_path")),
            query=unread.of("query", lambda: fields.word("query")),
            steps=unread.of("steps", lambda: fields.steps("steps")),
            reads=unread.of("source", lambda: self._flow(fields, "source", unread)),
            writes=unread.of("sink", lambda: self._flow(fields, "sink", unread)),
            parameters=unread.of("parameters", lambda: fields.scalars("parameters")),
            input=unread.of("input", lambda: self._input(fields)),
            publish=fields.flag("publish", False),
            running=fields.flag("running", True),
            spots=fields.spots(),
            unread=frozenset(unread.fields),
        )

    def _no_name(self, job: TreeTable) -> None:
        if not job.fields.keys() & {"name", "job_name"}:
            self._problems.add("MISSING", "a job has a name", job.at, "add job_name")

    def _flow(self, fields: Fields, end: str, unread: _Unread) -> tuple[WrittenPlace, ...]:
        """The topics of a job's source or sink."""
        before = len(self._problems)
        broker = fields.word(f"{end}_broker")
        single = fields.word(f"{end}_topic")
        places = self._places(fields, f"{end}_topics", broker)
        if single is not None:
            places = (WrittenPlace(single, None, broker), *places)
        sure = len(self._problems) == before and not unread.fields & {UNKNOWN, end}
        if broker is not None and not places and sure:
            message = f"{end}_broker without {end}_topic"
            self._problems.add("MISSING", message, broker.at, f"add {end}_topic")
        return places

    def _places(self, fields: Fields, name: str, broker: Word | None) -> tuple[WrittenPlace, ...]:
        found = (self._place(item, broker) for item in fields.items(name))
        return tuple(place for place in found if place is not None)

    def _place(self, value: TreeValue, broker: Word | None) -> WrittenPlace | None:
        if isinstance(value, Word):
            return WrittenPlace(value, None, broker) if self._is_word(value) else None
        if not isinstance(value, TreeTable):
            self._problems.add("TYPE", "a topic, or {topic, site}, not a list", value.at)
            return None
        fields = Fields(value, self._problems)
        before = len(self._problems)
        fields.refuse_unknown(PLACE_FIELDS, "a topic")
        topic, site, own = (fields.word(name) for name in PLACE_FIELDS)
        if topic is None:
            if len(self._problems) == before:
                self._problems.add("MISSING", "the topic is missing", value.at, "add topic")
            return None
        if site is not None and own is not None:
            self._problems.add("CONFLICT", "site or broker, not both", value.at)
        return WrittenPlace(topic, site, own or (None if site else broker))

    def _is_word(self, value: TreeValue) -> bool:
        usable = isinstance(value, Word) and not value.empty
        if not usable:
            self._problems.add("TYPE", f"must be a text, not {kind_of(value)}", value.at)
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


def _guess_field(field: str) -> str:
    """What an unknown field of a job is likely to be, as a job names what was not read."""
    name = closest(field, JOB_FIELDS)
    if name.startswith(("source_", "sink_")):
        return name.partition("_")[0]
    return {"": UNKNOWN, "job_name": "name", "entry_class": "entry"}.get(name, name)
