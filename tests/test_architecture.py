"""Imports run one way, without cycles, and only `fogline.spark` knows pyspark.

The checker reads the syntax trees of all modules, so imports in function bodies count too. Its own
tests run it over made-up trees that break each rule.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src"

CHAIN = ("model", "language", "plan", "placement", "deploy", "adapt", "coordinator")
# Which of our packages each package may import, besides itself. What is not listed (the programs
# at the outer edge) may import anything but `cli`.
BASE = frozenset(
    {
        *("", "errors", "settings", "child", "private_files", "unused_files"),
        *("http_server", "config_file", "garbage", "priority", "fabric_secret"),
        "http_hosts",
        *("state_files", "sealed_files"),
    }
)
SEES: dict[str, frozenset[str]] = {
    "": frozenset(),
    "errors": frozenset(),
    "settings": frozenset({"", "errors"}),
    "child": frozenset({"", "errors"}),
    "private_files": frozenset({"", "errors"}),
    "unused_files": frozenset(),
    "state_files": frozenset({"", "errors"}),
    "sealed_files": frozenset({"", "errors", "state_files"}),
    "garbage": frozenset(),
    "priority": frozenset(),
    "free_ports": frozenset({"", "errors"}),
    "config_file": frozenset({"", "errors"}),
    "http_hosts": frozenset({"", "errors"}),
    "fabric_secret": frozenset({"", "errors", "private_files", "state_files"}),
    **{name: BASE | frozenset(CHAIN[:place]) for place, name in enumerate(CHAIN)},
    # The gateway's steps are checked before they are sent.
    "coordinator": BASE | frozenset(CHAIN[:-1]) | {"broker", "control", "gateway"},
    "model": frozenset({"errors"}),
    "formats": frozenset(),
    "simulate": frozenset({"", "errors", "model"}),
    "spark": BASE | {"model", "language", "plan"},
    "broker": BASE | {"model", "free_ports"},
    "log": BASE | {"model"},
    "storage": BASE | {"model", "formats", "log"},
    "fabric": BASE | {"model", "formats", "log", "storage", "broker", "control"},
    "fsck": BASE | {"model", "log", "storage", "spark"},
    "control": BASE | {"model", "broker"},
    "links": BASE | {"model", "broker", "log"},
}


@dataclass(frozen=True)
class Import:
    """`module` imports `target`; `eager` when that happens as soon as `module` is imported."""

    module: str
    target: str
    line: int
    eager: bool


def module_name(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules(source: Path) -> dict[str, Path]:
    return {module_name(path, source): path for path in sorted(source.rglob("*.py"))}


def targets(node: ast.stmt, module: str, known: dict[str, Path]) -> list[str]:
    """The modules an import statement names, relative imports resolved."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        parts = module.split(".")
        is_package = known[module].name == "__init__.py"
        package = parts[: len(parts) - node.level + (1 if is_package else 0)]
        base = ".".join([*package, *([node.module] if node.module else [])])
    deeper = [f"{base}.{alias.name}" for alias in node.names]
    return [name if name in known else base for name in deeper]


def statements(tree: ast.Module) -> list[tuple[ast.stmt, bool]]:
    """Every statement, and whether it runs when the module is imported."""
    found: list[tuple[ast.stmt, bool]] = []

    def visit(node: ast.AST, eager: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                found.append((child, eager))
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            visit(child, eager and not inside)

    visit(tree, True)
    return found


def imports(source: Path) -> list[Import]:
    """All imports of our modules and of pyspark, each aimed at the deepest module it names."""
    known = modules(source)
    found = []
    for module, path in known.items():
        for node, eager in statements(ast.parse(path.read_text(encoding="utf-8"))):
            for target in targets(node, module, known):
                if target.split(".")[0] in ("fogline", "pyspark"):
                    found.append(Import(module, target, node.lineno, eager))
    return found


def package(module: str) -> str:
    """`plan` for `fogline.plan.rules.x`; empty for `fogline` itself."""
    return [*module.split("."), ""][1]


def is_spark(module: str) -> bool:
    return module.split(".")[0] == "pyspark"


def layer_violations(found: list[Import]) -> list[str]:
    wrong = []
    for item in found:
        here, there = package(item.module), package(item.target)
        if is_spark(item.target):
            allowed = here == "spark"
        elif there == "cli":
            allowed = here in ("cli", "__main__")
        else:
            allowed = here == there or here not in SEES or there in SEES[here]
        if not allowed:
            wrong.append(f"{item.module}:{item.line} imports {item.target}")
    return wrong


def eager_path_to_spark(found: list[Import], start: str) -> list[str]:
    """The chain of imports by which importing `start` would also import pyspark; or nothing."""
    paths, seen = [[start]], {start}
    while paths:
        path = paths.pop()
        for item in found:
            if item.module != path[-1] or not item.eager or item.target in seen:
                continue
            if is_spark(item.target):
                return [*path, item.target]
            seen.add(item.target)
            paths.append([*path, item.target])
    return []


def cycle(found: list[Import]) -> list[str]:
    """One import cycle among our modules, or nothing; lazy imports count."""
    graph: dict[str, set[str]] = {}
    for item in found:
        if item.module != item.target and not is_spark(item.target):
            graph.setdefault(item.module, set()).add(item.target)
    done: set[str] = set()

    def walk(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return []
        for target in sorted(graph.get(module, ())):
            if loop := walk(target, [*path, module]):
                return loop
        done.add(module)
        return []

    return next((loop for module in sorted(graph) if (loop := walk(module, []))), [])


def test_the_checker_sees_the_project() -> None:
    assert {"fogline", "fogline.errors", "fogline.simulate"} <= set(modules(SOURCE))
    assert imports(SOURCE)


def test_imports_run_one_way() -> None:
    assert layer_violations(imports(SOURCE)) == []


def test_gateway_and_store_decode_with_the_same_modules() -> None:
    users = {package(item.module) for item in imports(SOURCE) if package(item.target) == "formats"}
    assert {"gateway", "storage"} <= users


def test_no_import_cycles() -> None:
    assert cycle(imports(SOURCE)) == []


def test_the_command_line_starts_without_spark() -> None:
    assert eager_path_to_spark(imports(SOURCE), "fogline.cli") == []


def make_tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in {"fogline/__init__.py": "", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("files", "violation"),
    [
        (
            {"fogline/model/a.py": "from fogline.plan import b", "fogline/plan/b.py": ""},
            "fogline.model.a:1 imports fogline.plan.b",
        ),
        (
            {
                "fogline/plan/a.py": "def f():\n    from ..deploy import b",
                "fogline/deploy/b.py": "",
            },
            "fogline.plan.a:2 imports fogline.deploy.b",
        ),
        (
            {"fogline/agent/a.py": "def f():\n    import pyspark.sql"},
            "fogline.agent.a:2 imports pyspark.sql",
        ),
        (
            {"fogline/agent/a.py": "from pyspark.sql import functions"},
            "fogline.agent.a:1 imports pyspark.sql",
        ),
        (
            {"fogline/agent/a.py": "import fogline.cli", "fogline/cli.py": ""},
            "fogline.agent.a:1 imports fogline.cli",
        ),
        (
            {"fogline/simulate/a.py": "import fogline.plan.b", "fogline/plan/b.py": ""},
            "fogline.simulate.a:1 imports fogline.plan.b",
        ),
        (
            {"fogline/spark/a.py": "from fogline.deploy import b", "fogline/deploy/b.py": ""},
            "fogline.spark.a:1 imports fogline.deploy.b",
        ),
    ],
)
def test_the_checker_finds_a_wrong_import(
    tmp_path: Path, files: dict[str, str], violation: str
) -> None:
    assert layer_violations(imports(make_tree(tmp_path, files))) == [violation]


def test_the_checker_lets_right_imports_pass(tmp_path: Path) -> None:
    files = {
        "fogline/spark/a.py": "import pyspark\nfrom fogline.plan.b import c\nfrom .d import e",
        "fogline/spark/d.py": "",
        "fogline/plan/b.py": "from ..errors import FoglineError\nfrom fogline.model import m",
        "fogline/model/m.py": "",
        "fogline/errors.py": "",
        "fogline/cli.py": "def main():\n    from fogline.spark import a",
    }
    found = imports(make_tree(tmp_path, files))
    assert layer_violations(found) == []
    assert cycle(found) == []
    assert eager_path_to_spark(found, "fogline.cli") == []


def test_the_checker_finds_a_cycle(tmp_path: Path) -> None:
    files = {
        "fogline/plan/a.py": "from fogline.plan.b import x",
        "fogline/plan/b.py": "def f():\n    from .c import y",
        "fogline/plan/c.py": "from . import a",
    }
    loop = cycle(imports(make_tree(tmp_path, files)))
    assert loop == ["fogline.plan.a", "fogline.plan.b", "fogline.plan.c", "fogline.plan.a"]


def test_the_checker_finds_spark_behind_the_command_line(tmp_path: Path) -> None:
    files = {
        "fogline/cli.py": "from fogline.run import go",
        "fogline/run.py": "from fogline.spark.a import b",
        "fogline/spark/a.py": "from pyspark.sql import SparkSession",
    }
    path = eager_path_to_spark(imports(make_tree(tmp_path, files)), "fogline.cli")
    assert path == ["fogline.cli", "fogline.run", "fogline.spark.a", "pyspark.sql"]
