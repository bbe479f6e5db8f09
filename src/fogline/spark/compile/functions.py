"""Declared functions as Spark functions: the operator's Python, Arrow-batched, numbers only."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import Column
from pyspark.sql import functions as F

from fogline.plan.user_functions import UserFunctions
from fogline.spark.compile.columns import Functions


def spark_functions(functions: UserFunctions) -> Functions:
    def find(target: str) -> Callable[..., Column]:
        function = functions.load(target)
        module = functions.module(target.split(":")[0])
        sys.modules[module.__name__] = module
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]

        def call(*arguments: Any) -> float | None:
            if any(a is None for a in arguments):
                return None
            try:
                result = function(*arguments)
                return None if result is None else float(result)
            except (ArithmeticError, ValueError, TypeError):
                return None

        wrapped: Callable[..., Column] = F.udf(call, "double", useArrow=True)
        return wrapped

    return find
