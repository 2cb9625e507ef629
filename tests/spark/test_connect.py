"""Spark Connect: queries by every way, and what is refused, from a process that has no driver of Spark's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import minidsms
from minidsms.spark import java
from minidsms.spark.session import LOOPBACK

pytest.importorskip("grpc", reason="Spark Connect needs pip install 'pyspark[connect]'")

PROGRAM = """
import json, os, sys
from pyspark.sql import SparkSession
import minidsms
from minidsms.spark import explain, register, run, stream

folder = sys.argv[1]
query = "SELECT k, COUNT(*) AS n FROM S [RANGE 10] GROUP BY k"
spark = SparkSession.builder.remote("local[1]").config("spark.sql.shuffle.partitions", "1").getOrCreate()
for by in ("frames", "engines", "replay"):
    print("told", by, sorted(map(tuple, run(query, folder, spark=spark, by=by).collect())))
print("told", "replay  " in explain(query, folder, spark=spark))
try:
    explain(query, folder, spark=spark, analyze=True)
except minidsms.Error as error:
    print("told", str(error).splitlines()[0])
register(spark)
print("told", spark.read.format("minidsms").option("name", "S").load(folder).count())
os.mkdir(folder + "/raw")
with open(folder + "/raw/a.json", "w") as file:
    file.writelines(json.dumps({"at": 1000 + i, "k": i % 3}) + "\\n" for i in range(30))
live = spark.readStream.schema("at long, k long").json(folder + "/raw")
declared = "CREATE STREAM S (at INTEGER, k INTEGER) TIMESTAMP BY at"
writing = stream("ISTREAM (SELECT k FROM S [NOW])", {"S": live}, declared).writeStream.format("parquet")
writing = writing.option("path", folder + "/out").option("checkpointLocation", folder + "/state")
writing.trigger(availableNow=True).start().awaitTermination()
print("told", spark.read.parquet(folder + "/out").count())
spark.stop()
"""


@pytest.mark.long
def test_queries_run_over_spark_connect(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (k INTEGER) ARCHIVE '{tmp_path}'")
        query = db.query("SELECT k, COUNT(*) AS n FROM S [RANGE 10] GROUP BY k")
        db.push("S", [(i % 3,) for i in range(40)], ts=list(range(0, 80, 2)))
        db.advance(78)
        live = sorted((c.ts, c.sign, *c.row) for c in query.fetch())
    left_out = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_REMOTE")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment |= {"JAVA_HOME": java.java_home(), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": LOOPBACK}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=900)
    told = [line.partition("told ")[2] for line in done.stdout.splitlines() if "told " in line]
    assert told == [
        *(f"{by} {live}" for by in ("frames", "engines", "replay")),
        "True",
        "what a row costs cannot be measured over Spark Connect",
        "40",
        "29",
    ], done.stderr[-3000:]
