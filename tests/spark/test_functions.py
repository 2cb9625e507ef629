"""Every built-in function as a column of Spark, which computes what no other means exactly in batches of the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minidsms.cql.binder import bind
from minidsms.cql.bound import Project
from minidsms.cql.catalog import FunctionDef
from minidsms.cql.parser import parse_query
from minidsms.elements import Field, Schema, Type
from minidsms.functions import LIBRARY
from minidsms.spark.engines import Setting, engine_of
from minidsms.spark.expressions import Expressions
from minidsms.testing.compare import catalog_of
from minidsms.testing.generators import Case, declaration
from tests.expressions.samples import SAMPLES, stream_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_spark_has_every_function(spark: SparkSession) -> None:
    examples = {name: function.example[0] for name, function in LIBRARY.items()}
    for name, expression in (examples | SAMPLES).items():
        stream = stream_of(expression)
        query = f"SELECT {expression} AS r FROM {stream} [RANGE 3]"
        tree = bind(parse_query(query), catalog_of(Case((declaration(stream),), query, ())), query).node
        assert isinstance(tree, Project)
        expressions = Expressions(1_000_000, {})
        compute = expressions._compute if name in SAMPLES else expressions.compute
        assert compute(tree.exprs[0]).value is not None, name


def test_an_engine_in_a_task_has_functions_of_a_folder_whose_names_are_built_in() -> None:
    schema = Schema((Field("v", Type.INTEGER),))
    twice = FunctionDef("Concat", lambda v: 2 * v, (Type.INTEGER,), Type.INTEGER)
    query = "SELECT ISTREAM(concat(v)) FROM S [NOW]"
    setting = Setting((("S", True, schema),), (), (), query, (Type.INTEGER,), "ms", False, False, (twice,), ())
    with engine_of(setting) as (db, q):
        db.push("S", (4,), ts=1)
        db.advance(1)
        assert [change.row for change in q.fetch()] == [(8,)]
