"""The tree of errors: no name twice, and what is raised in place of another names it."""

from __future__ import annotations

import ast
import importlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from fogline.common.errors import FoglineError

SOURCE = Path(__file__).resolve().parents[2] / "src"
TREES = {
    path.relative_to(SOURCE): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(SOURCE.rglob("*.py"))
}


def error_classes() -> list[str]:
    """Every class of ours that descends from an exception, by the names of its bases."""
    classes = [
        node for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    ]
    known, found = {"Exception", "BaseException"}, list[ast.ClassDef]()
    while True:
        more = [
            node
            for node in classes
            if node not in found
            and any(isinstance(base, ast.Name) and base.id in known for base in node.bases)
        ]
        if not more:
            return [node.name for node in found]
        found += more
        known |= {node.name for node in more}


def test_no_name_stands_for_two_errors() -> None:
    names = Counter(error_classes())
    assert {"FoglineError", "StoreError", "RepositoryError", "NodeUnreachable"} <= set(names)
    assert [name for name, count in names.items() if count > 1] == []


def test_packages_add_to_one_tree() -> None:
    for name in ("broker", "control", "coordinator", "fabric", "log", "storage"):
        errors = importlib.import_module(f"fogline.{name}.errors")
        for found in vars(errors).values():
            if isinstance(found, type) and issubclass(found, Exception):
                assert issubclass(found, FoglineError), found


def raised_in_place(tree: ast.AST) -> Iterator[ast.Raise]:
    handlers = (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler))
    for handler in handlers:
        for node in ast.walk(handler):
            if isinstance(node, ast.Raise) and node.exc is not None:
                yield node


def test_an_error_in_place_of_another_says_from_which() -> None:
    found = [(path, node) for path, tree in TREES.items() for node in raised_in_place(tree)]
    assert len(found) > 100
    assert [f"{path}:{node.lineno}" for path, node in found if node.cause is None] == []
