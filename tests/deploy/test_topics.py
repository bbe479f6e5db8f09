"""Finding topics in a tree gives what comparing them one by one gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fogline.model.topics import TopicTree, matches, wrong_job_topic

levels = st.sampled_from(["a", "b", "", "c"])
topics = st.lists(levels, min_size=1, max_size=4).map("/".join).filter(bool)
tails = st.sampled_from([[], [], ["#"]])
wild = st.lists(st.sampled_from(["a", "b", "", "+"]), min_size=1, max_size=4)
filters = st.builds(lambda front, tail: "/".join([*front, *tail]), wild, tails).filter(bool)


@given(st.lists(filters, max_size=8), topics)
def test_filters_that_take_a_topic(patterns: list[str], topic: str) -> None:
    tree: TopicTree[int] = TopicTree()
    for number, pattern in enumerate(patterns):
        tree.add(pattern, number)
    expected = [number for number, pattern in enumerate(patterns) if matches(pattern, topic)]
    assert sorted(tree.find_overlapping(topic)) == expected


@given(st.lists(topics, max_size=8), filters)
def test_topics_that_a_filter_takes(names: list[str], pattern: str) -> None:
    tree: TopicTree[int] = TopicTree()
    for number, name in enumerate(names):
        tree.add(name, number)
    expected = [number for number, name in enumerate(names) if matches(pattern, name)]
    assert sorted(tree.find_overlapping(pattern)) == expected


@given(filters, filters)
def test_meeting_is_mutual(one: str, other: str) -> None:
    first: TopicTree[bool] = TopicTree()
    second: TopicTree[bool] = TopicTree()
    first.add(one, True)
    second.add(other, True)
    assert list(first.find_overlapping(other)) == list(second.find_overlapping(one))


def test_a_very_long_topic() -> None:
    tree: TopicTree[bool] = TopicTree()
    deep = "/".join("a" * 30_000)
    tree.add(deep, True)
    assert list(tree.find_overlapping(deep)) == list(tree.find_overlapping("#")) == [True]


def test_what_is_no_topic() -> None:
    assert wrong_job_topic("a/b", reading=False) is None
    assert wrong_job_topic("a/+/#", reading=True) is None
    for wrong in ("", "a\0", "x" * 70_000, "$SYS", "fogline/nodes", "$share/g/a", "\ud800"):
        assert wrong_job_topic(wrong, reading=True)
        assert wrong_job_topic(wrong, reading=False)
    for wrong in ("a+", "#/a", "a#", "a/b+/c"):
        assert wrong_job_topic(wrong, reading=True)
        assert wrong_job_topic(wrong, reading=False)
