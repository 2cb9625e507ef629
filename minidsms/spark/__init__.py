"""The same queries in batch: archives are read, and queries answered, by Apache Spark.

Invariant: importing this package loads neither pyspark nor a Java machine; the first call that needs them does.
"""
