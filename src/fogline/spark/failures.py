"""What Spark says when it fails, for people."""

from __future__ import annotations

from fogline.errors import DataError


def told(error: BaseException) -> DataError:
    """Spark's failure in one line: the innermost cause, without the stack."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return DataError((causes[-1] if causes else lines[0] if lines else text)[:500])
