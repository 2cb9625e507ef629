"""How fast minidsms is, beside hand-written kernels, DuckDB and other stream engines.

`python -m benchmarks` measures; `results/` keeps what the last full run found. Every contestant answers the same query
over the same input in one process, in interleaved rounds, and no figure is shown whose answer differs from the others'.
"""
