"""One Spark session with what Fogline needs: the connector, UTC, RocksDB state, no console noise."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from fogline.errors import SetupError
from fogline.settings import Settings

JAR = Path(__file__).with_name("fogline-connector.jar")
_LOGGING = Path(__file__).with_name("log4j2.properties")


def open_session(settings: Settings, name: str = "fogline") -> SparkSession:
    """Starts (or joins) the session of this process; raises SetupError when Spark cannot start."""
    if not JAR.exists():
        raise SetupError("the connector jar is missing", "run: make setup")
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        raise SetupError("Java is missing", "run: apt-get install openjdk-17-jre-headless")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(settings.engine).appName(name)
    for key, value in _configuration(settings).items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        raise SetupError(f"Spark does not start: {str(error).splitlines()[0]}") from error
    session.sparkContext.setLogLevel("ERROR")
    return session


def _configuration(settings: Settings) -> dict[str, str]:
    quiet = f"-Dlog4j2.configurationFile=file:{_LOGGING}"
    state = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    return {
        "spark.jars": str(JAR),
        "spark.driver.memory": settings.memory,
        "spark.driver.extraJavaOptions": quiet,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
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
        "spark.local.dir": str(settings.scratch),
        "spark.pyspark.python": sys.executable,
    }
