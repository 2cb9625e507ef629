"""Archives: streams and relations kept in Parquet files by time; written while they run, replayed later."""
