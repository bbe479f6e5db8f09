"""The logs and the jobs of a site that nobody runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from fogline.agent.config.site import SiteConfig
from fogline.agent.jobs.site_jobs import SiteJobs
from fogline.log import SiteLog


@pytest.fixture
def logs(tmp_path: Path) -> SiteLog:
    return SiteLog(tmp_path / "log", min_free_bytes=1)


@pytest.fixture
def jobs(tmp_path: Path, logs: SiteLog) -> SiteJobs:
    return SiteJobs(SiteConfig("s", tmp_path), tmp_path, logs)
