"""Builds the connector jar with javac against the jars that pyspark brings.

Nothing happens when the jar is newer than every source. Run it with the Python of the virtual
environment: `python connector/build.py [JAR]`.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "src"
JAR = HERE.parent / "src" / "fogline" / "spark" / "fogline-connector.jar"


def spark_jars() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        sys.exit("connector: pyspark is not installed in this environment; run `make setup`")
    return Path(spec.origin).parent / "jars"


def build(jar: Path) -> None:
    files = [path for path in SOURCES.rglob("*") if path.is_file()]
    newest = max(path.stat().st_mtime for path in [*files, Path(__file__)])
    if jar.exists() and jar.stat().st_mtime > newest:
        return
    javac = shutil.which("javac")
    if javac is None:
        sys.exit("connector: javac not found; apt-get install openjdk-17-jdk-headless")
    java = [str(path) for path in files if path.suffix == ".java"]
    with tempfile.TemporaryDirectory() as folder:
        classes = Path(folder) / "classes"
        lint = "-Xlint:all,-serial,-processing,-classfile,-path"
        target = ["-cp", f"{spark_jars()}/*", "-d", str(classes)]
        command = [javac, "--release", "17", lint, "-Werror", *target, *java]
        if subprocess.run(command, check=False).returncode:
            sys.exit("connector: the Java sources do not compile")
        made = Path(folder) / jar.name
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(classes.rglob("*.class")):
                archive.write(path, path.relative_to(classes))
            for path in files:
                if path.suffix != ".java":
                    archive.write(path, path.relative_to(SOURCES))
        jar.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(made, jar.with_suffix(".new"))
        jar.with_suffix(".new").replace(jar)
    print(f"connector: built {jar.name} from {len(java)} sources")


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else JAR)
