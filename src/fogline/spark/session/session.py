"""One Spark session with what Fogline needs: the connector, UTC, RocksDB state, no noise."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from fogline.common.errors import SetupError
from fogline.common.settings import Settings
from fogline.spark.session.lean import without_tests
from fogline.spark.session.scratch import own_folder

JAR = Path(__file__).parent.with_name("fogline-connector.jar")
CLASSES = JAR.with_suffix(".jsa")
"""Made by `class_cache`, which see; it may be missing."""
Session = SparkSession
_NOISE = (
    b"WARNING: Using incubator modules",
    b"Setting default log level",
    b"To adjust logging level",
    b"Using Spark's default log4j profile",
    b"Warning: Java versions > Java 11 can only operate in restricted mode",
)
_END_SECONDS = 10.0
_LOGGING = Path(__file__).parent.with_name("log4j2.properties")


def open_session(
    settings: Settings, name: str = "fogline", more: Mapping[str, str] | None = None
) -> SparkSession:
    """Starts (or joins) the session of this process; raises SetupError when Spark cannot start.

    `more` are further Spark settings.
    """
    if not JAR.exists():
        raise SetupError("the connector jar is missing", "run: make setup")
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        raise SetupError("Java is missing", "run: apt-get install openjdk-17-jre-headless")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    without_tests()
    running = SparkSession._instantiatedSession  # the one of this process, whatever the thread
    if running is not None and running.sparkContext._jsc is not None:
        return running
    conf = SparkConf().setMaster(settings.engine).setAppName(name)
    try:
        conf.setAll(list((_configuration(settings) | dict(more or {})).items()))
        context = SparkContext(gateway=_launch(conf), conf=conf)
        return SparkSession(context)
    except Exception as error:
        raise SetupError(f"Spark does not start: {str(error).splitlines()[0]}") from error


def engine_has_ended(error: BaseException) -> bool:
    """Whether an error means that Spark's process has ended, not that Spark refused something."""
    lost = isinstance(error, Py4JError | ConnectionError)
    return lost and not isinstance(error, Py4JJavaError | BrokenPipeError)


@contextmanager
def engine_alive() -> Iterator[None]:
    """Inside, a Spark process that ends is reported as such, not as a broken connection."""
    try:
        yield
    except (Py4JError, ConnectionError) as error:
        if not engine_has_ended(error):  # the engine's own words; a reader of results ended
            raise
        hint = "it was ended from outside or ran out of memory (FOGLINE_MEMORY); start again"
        raise SetupError("the Spark engine died", hint) from error


def _launch(conf: SparkConf) -> JavaGateway:
    """The JVM, with what it says at every start kept from standard error."""
    reader, writer = os.pipe()
    options = {"stderr": writer, "stdin": subprocess.PIPE}
    gateway: JavaGateway = launch_gateway(conf, options)  # type: ignore[no-untyped-call]
    os.close(writer)
    atexit.register(_end, gateway.proc)
    threading.Thread(target=_pass_on, args=(reader,), daemon=True, name="spark-stderr").start()
    return gateway


def _end(java: subprocess.Popen[bytes]) -> None:
    """Before its folder is removed. It ends by itself when nobody can reach it any more."""
    with suppress(OSError, subprocess.TimeoutExpired):
        if java.stdin is not None:
            java.stdin.close()
        java.wait(_END_SECONDS)


def _pass_on(reader: int) -> None:
    with os.fdopen(reader, "rb") as lines:
        for line in lines:
            if not line.startswith(_NOISE):
                sys.stderr.buffer.write(line)
                sys.stderr.flush()


_QUICK = "-XX:+UseParallelGC"
"""A run over what is there needs throughput; a site, which waits and answers, has its own."""


def _configuration(settings: Settings) -> dict[str, str]:
    state = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    return _local_files(settings) | {
        "spark.jars": str(JAR),
        "spark.driver.memory": settings.memory,
        "spark.driver.defaultJavaOptions": _QUICK,
        "spark.driver.extraJavaOptions": _java_options(settings),
        "spark.driver.bindAddress": settings.engine_host,
        "spark.driver.host": settings.engine_host,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.shuffle.partitions": str(settings.stateful_partitions),
        "spark.sql.streaming.stateStore.providerClass": state,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "1000000",
        "spark.sql.adaptive.enabled": "false",
        # Where in our code a column was made helps no user, and costs more than making it.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.local.dir": str(_spill_folder(settings)),
        "spark.pyspark.python": sys.executable,
    }


def _java_options(settings: Settings) -> str:
    """Those of the user come last and win."""
    # A query of many insights is one large generated method, which Java would otherwise interpret.
    own = f"-Dlog4j2.configurationFile=file:{_LOGGING} -Xss8m -XX:-DontCompileHugeMethods"
    own += f" -Djava.io.tmpdir={own_folder(Path(tempfile.gettempdir()))}"
    if CLASSES.exists():
        own += f" -XX:SharedArchiveFile={CLASSES} -Xlog:cds*=off"
    return f"{own} {settings.java}".rstrip()


def _spill_folder(settings: Settings) -> Path:
    """Where state and shuffled rows go. The workers of a cluster have folders of their own."""
    local = settings.engine.startswith("local")
    return own_folder(settings.scratch) if local else settings.scratch


def _local_files(settings: Settings) -> dict[str, str]:
    """Checkpoint files without a child process each; only where all of Spark is this process."""
    if not settings.engine.startswith("local"):
        return {}
    return {
        "spark.driver.extraClassPath": str(JAR),
        "spark.hadoop.fs.file.impl": "io.fogline.files.LocalFiles",
        "spark.hadoop.fs.AbstractFileSystem.file.impl": "io.fogline.files.LocalContext",
    }
