"""TPC-H as continuous queries over relations: tables from a seed, the 22 queries, and the same written by hand."""
