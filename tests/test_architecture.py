"""Imports run one way, without cycles, and only `fogline.spark` knows pyspark.

Every package is listed with the packages it may import, and every package with folders lists them
from the lowest up: a part may import the parts before it. The checker reads the syntax trees of all
modules, so imports in function bodies count too. Its own tests run it over made-up trees that break
each rule.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src"
MOST_MODULES = 18

# Which packages each may import besides itself; `x.y` is a part of one. `common` and `fogline`
# itself (the version) are open to all but `common` and `model`.
SEES: dict[str, tuple[str, ...]] = {
    "common": (),
    "model": ("common.errors",),
    "formats": ("common", "model"),
    "language": ("common", "model"),
    "plan": ("common", "model", "language"),
    "placement": ("common", "model", "language", "plan"),
    "deploy": ("common", "model", "language", "plan", "placement"),
    "adapt": ("common", "model", "language", "plan", "placement", "deploy"),
    "log": ("common", "model"),
    "broker": ("common", "model", "log"),
    "control": ("common", "model", "broker"),
    "links": ("common", "model", "broker", "log"),
    "storage": ("common", "model", "formats", "log"),
    "fabric": ("common", "model", "formats", "log", "storage", "broker", "control"),
    "spark": ("common", "model", "language", "plan"),
    # The gateway's steps are checked before they are sent.
    "coordinator": (
        *("common", "model", "language", "plan", "placement", "deploy", "adapt"),
        *("broker", "control", "gateway.jobs"),
    ),
    "gateway": ("common", "model", "formats", "broker", "control", "links", "log"),
    "agent": (
        *("common", "model", "language", "plan", "spark"),
        *("broker", "control", "links", "log", "storage", "fabric"),
    ),
    "fsck": ("common", "model", "log", "storage", "spark.jobs"),
    "simulate": ("common", "model"),
    "demo": ("common", "model", "broker", "coordinator", "deploy", "simulate"),
    "bench": ("common", "model", "adapt"),
    "testing": ("common", "model", "language"),
    "cli": (
        *("common", "model", "formats", "language", "plan", "placement", "deploy", "spark"),
        *("log", "storage", "fabric", "coordinator", "agent", "gateway"),
        *("simulate", "demo", "fsck"),
    ),
}
# The parts of a package, lowest first: folders, single modules, and "" for the modules beside them.
# The `__init__` of such a package may import all of them, and none of them imports it.
PARTS: dict[str, tuple[str, ...]] = {
    "common": ("errors", "", "process", "http"),
    "plan": ("", "rules", "analysis", "lowering", "explain"),
    "adapt": ("replication",),
    "deploy": ("manifest", "resolve", "query", "diff"),
    "coordinator": (
        *("errors", "nodes", "repository", "pipelines", "reconcile", "replication", "api", ""),
    ),
    "broker": ("errors", "", "mqtt", "mosquitto", "open"),
    "log": ("errors", "files", ""),
    "spark": ("session", "compile", "jobs", "run", ""),
    "agent": (
        *("config", "broker", "damage", "contracts", "jobs", "ingest", "engine", "publish"),
        *("coordination", "supervisor"),
    ),
    "gateway": ("operators", "jobs", "runtime", ""),
    "storage": ("errors", "", "files", "catalog", "query", "store", "ingest"),
    "fabric": (
        *("errors", "contract", "http", "query", "api", "membership", "replicas", "streams"),
        *("federation", ""),
    ),
    "demo": ("traffic_files", ""),
    "testing": ("reference", ""),
    "cli": ("output", "site", "run", "coordinator", ""),
}


@dataclass(frozen=True)
class Import:
    """`module` imports `target`; `eager` when that happens as soon as `module` is imported."""

    module: str
    target: str
    line: int
    eager: bool

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


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


def part(module: str) -> str:
    """Where a package has parts: `plan.rules` for `fogline.plan.rules.x`, `plan.` for
    `fogline.plan.x` and `plan` for its `__init__`. Else the package."""
    home, inner = package(module), module.split(".")[2:]
    if home not in PARTS or not inner:
        return home
    return f"{home}.{inner[0] if inner[0] in PARTS[home] else ''}"


def is_spark(module: str) -> bool:
    return module.split(".")[0] == "pyspark"


def may_import(module: str, target: str) -> bool:
    here, there = package(module), package(target)
    if is_spark(target):
        return here == "spark"
    if not here or here not in SEES:
        return False
    if not there:
        return here not in ("common", "model")
    if here != there:
        seen = target.removeprefix("fogline.")
        return any(f"{seen}.".startswith(f"{name}.") for name in SEES[here])
    if here not in PARTS or part(module) in (part(target), here):
        return True
    order = [f"{here}.{name}" for name in PARTS[here]]
    known = part(module) in order and part(target) in order
    return known and order.index(part(target)) < order.index(part(module))


def layer_violations(found: list[Import]) -> list[str]:
    return [str(item) for item in found if not may_import(item.module, item.target)]


def unlisted(source: Path) -> list[str]:
    """Packages and parts that are not listed, and listed ones that do not exist."""
    folders = {path.parent.relative_to(source).parts for path in source.rglob("*.py")}
    there = {parts[1] for parts in folders if len(parts) > 1}
    inner = {(parts[1], parts[2]) for parts in folders if len(parts) > 2}
    listed = {
        (home, name)
        for home, names in PARTS.items()
        for name in names
        if name and not (source / "fogline" / home / f"{name}.py").exists()
    }
    return [
        *(f"{name} is in only one of SEES and the source" for name in sorted(there ^ set(SEES))),
        *(f"{a}/{b} is in only one of PARTS and the source" for a, b in sorted(inner ^ listed)),
    ]


def loose_modules(source: Path) -> list[str]:
    return [path.name for path in (source / "fogline").glob("*.py") if path.name != "__init__.py"]


def crowded_folders(source: Path) -> list[str]:
    """Folders of more modules than can be looked through; their `__init__` is not counted."""
    counts = Counter(
        str(path.parent.relative_to(source))
        for path in source.rglob("*.py")
        if path.name != "__init__.py"
    )
    return sorted(f"{name}: {n}" for name, n in counts.items() if n > MOST_MODULES)


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


def cycle(found: Iterable[Import], by: Callable[[str], str] = str) -> list[str]:
    """One import cycle among our modules, or among what `by` makes of them; or nothing.

    Lazy imports count."""
    graph: dict[str, set[str]] = {}
    for item in found:
        here, there = by(item.module), by(item.target)
        if here != there and not is_spark(item.target):
            graph.setdefault(here, set()).add(there)
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


@pytest.fixture(scope="module")
def ours() -> list[Import]:
    return imports(SOURCE)


def test_the_checker_sees_the_project(ours: list[Import]) -> None:
    assert {"fogline", "fogline.common.errors", "fogline.simulate"} <= set(modules(SOURCE))
    assert ours


def test_every_package_is_listed() -> None:
    assert unlisted(SOURCE) == []


def test_no_module_is_loose() -> None:
    assert loose_modules(SOURCE) == []


def test_no_folder_is_crowded() -> None:
    assert crowded_folders(SOURCE) == []


def test_imports_run_one_way(ours: list[Import]) -> None:
    assert layer_violations(ours) == []


@pytest.mark.parametrize("by", [str, package, part])
def test_no_import_cycles(ours: list[Import], by: Callable[[str], str]) -> None:
    assert cycle(ours, by) == []


def test_the_command_line_starts_without_spark(ours: list[Import]) -> None:
    assert eager_path_to_spark(ours, "fogline.cli.main") == []


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
            {"fogline/demo/a.py": "import fogline.cli.main", "fogline/cli/main.py": ""},
            "fogline.demo.a:1 imports fogline.cli.main",
        ),
        (
            {"fogline/simulate/a.py": "import fogline.plan.b", "fogline/plan/b.py": ""},
            "fogline.simulate.a:1 imports fogline.plan.b",
        ),
        (
            {"fogline/spark/a.py": "from fogline.deploy import b", "fogline/deploy/b.py": ""},
            "fogline.spark.a:1 imports fogline.deploy.b",
        ),
        (
            {"fogline/newcomer/a.py": "import fogline.model.b", "fogline/model/b.py": ""},
            "fogline.newcomer.a:1 imports fogline.model.b",
        ),
        (
            {
                "fogline/coordinator/a.py": "from fogline.gateway.runtime import b",
                "fogline/gateway/runtime/b.py": "",
            },
            "fogline.coordinator.a:1 imports fogline.gateway.runtime.b",
        ),
        (
            {
                "fogline/fabric/http/a.py": "from fogline.fabric.api.b import c",
                "fogline/fabric/api/b.py": "",
            },
            "fogline.fabric.http.a:1 imports fogline.fabric.api.b",
        ),
        (
            {
                "fogline/fabric/api/a.py": "from fogline.fabric.process import b",
                "fogline/fabric/process.py": "",
            },
            "fogline.fabric.api.a:1 imports fogline.fabric.process",
        ),
        (
            {
                "fogline/broker/mqtt/a.py": "from fogline.broker import Broker",
                "fogline/broker/__init__.py": "",
            },
            "fogline.broker.mqtt.a:1 imports fogline.broker",
        ),
        (
            {
                "fogline/plan/newcomer/a.py": "from fogline.plan.b import c",
                "fogline/plan/b.py": "",
                "fogline/plan/rules/c.py": "from fogline.plan.explain import d",
                "fogline/plan/explain/d.py": "",
            },
            "fogline.plan.rules.c:1 imports fogline.plan.explain.d",
        ),
    ],
)
def test_the_checker_finds_a_wrong_import(
    tmp_path: Path, files: dict[str, str], violation: str
) -> None:
    assert layer_violations(imports(make_tree(tmp_path, files))) == [violation]


def test_the_checker_lets_right_imports_pass(tmp_path: Path) -> None:
    files = {
        "fogline/spark/a.py": "import pyspark\nfrom fogline.plan.b import c\nfrom .run.d import e",
        "fogline/spark/run/d.py": "",
        "fogline/plan/b.py": "from ..common.errors import E\nfrom fogline.model import m",
        "fogline/model/m.py": "",
        "fogline/common/errors.py": "",
        "fogline/coordinator/api/a.py": "from fogline.gateway.jobs import b",
        "fogline/gateway/jobs/b.py": "",
        "fogline/broker/__init__.py": "from fogline.broker.open import open_broker",
        "fogline/broker/open.py": "from fogline.broker.mqtt.client import Client",
        "fogline/broker/mqtt/client.py": "from fogline.broker.interface import Broker",
        "fogline/broker/interface.py": "",
        "fogline/cli/main.py": "def main():\n    from fogline.spark import a",
    }
    found = imports(make_tree(tmp_path, files))
    assert layer_violations(found) == []
    assert [cycle(found, by) for by in (str, package, part)] == [[], [], []]
    assert eager_path_to_spark(found, "fogline.cli.main") == []


def test_the_checker_finds_a_cycle(tmp_path: Path) -> None:
    files = {
        "fogline/plan/a.py": "from fogline.plan.b import x",
        "fogline/plan/b.py": "def f():\n    from .c import y",
        "fogline/plan/c.py": "from . import a",
    }
    loop = cycle(imports(make_tree(tmp_path, files)))
    assert loop == ["fogline.plan.a", "fogline.plan.b", "fogline.plan.c", "fogline.plan.a"]


def test_the_checker_finds_a_cycle_of_packages(tmp_path: Path) -> None:
    files = {
        "fogline/plan/a.py": "from fogline.model.b import x",
        "fogline/model/b.py": "",
        "fogline/model/c.py": "def f():\n    from fogline.plan.d import y",
        "fogline/plan/d.py": "",
    }
    found = imports(make_tree(tmp_path, files))
    assert cycle(found) == []
    assert cycle(found, package) == ["model", "plan", "model"]


def test_the_checker_finds_a_cycle_inside_a_package(tmp_path: Path) -> None:
    files = {
        "fogline/plan/rules/a.py": "from fogline.plan.lowering.b import x",
        "fogline/plan/lowering/b.py": "from fogline.plan.c import y",
        "fogline/plan/c.py": "",
        "fogline/plan/d.py": "from fogline.plan.rules.e import z",
        "fogline/plan/rules/e.py": "",
    }
    found = imports(make_tree(tmp_path, files))
    assert cycle(found, package) == []
    assert cycle(found, part) == ["plan.", "plan.rules", "plan.lowering", "plan."]


def test_the_checker_finds_what_is_not_listed(tmp_path: Path) -> None:
    files = {"fogline/newcomer/a.py": "", "fogline/plan/newcomer/a.py": "", "fogline/loose.py": ""}
    tree = make_tree(tmp_path, files)
    assert "newcomer is in only one of SEES and the source" in unlisted(tree)
    assert "plan/newcomer is in only one of PARTS and the source" in unlisted(tree)
    assert "plan/rules is in only one of PARTS and the source" in unlisted(tree)
    assert loose_modules(tree) == ["loose.py"]


def test_the_checker_finds_a_crowded_folder(tmp_path: Path) -> None:
    names = [f"fogline/plan/m{n}.py" for n in range(MOST_MODULES)]
    few = dict.fromkeys(["fogline/plan/__init__.py", *names], "")
    assert crowded_folders(make_tree(tmp_path, few)) == []
    tree = make_tree(tmp_path, {"fogline/plan/more.py": ""})
    assert crowded_folders(tree) == [f"fogline/plan: {MOST_MODULES + 1}"]


def test_the_checker_finds_spark_behind_the_command_line(tmp_path: Path) -> None:
    files = {
        "fogline/cli/main.py": "from fogline.cli.run.go import go",
        "fogline/cli/run/go.py": "from fogline.spark.a import b",
        "fogline/spark/a.py": "from pyspark.sql import SparkSession",
    }
    path = eager_path_to_spark(imports(make_tree(tmp_path, files)), "fogline.cli.main")
    assert path == ["fogline.cli.main", "fogline.cli.run.go", "fogline.spark.a", "pyspark.sql"]
