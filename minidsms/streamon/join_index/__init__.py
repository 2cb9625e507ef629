"""Which patterns the index of an n-way join has: StreaMon's three for access patterns.

    executor.py        a join that indexes the patterns of its plan
    profiler.py        what the steps of the pipelines inspect without any, from sampled rows
    reoptimizer.py     which patterns cost less than they spare
    adaptive_index.py  when it is asked

An *access pattern* is what a step of a pipeline compares: columns of the input that it visits. Hashed as one, as soon
as the last input is chosen that they are compared with, they lead to the rows that join, past none that do not. The
patterns are those that the present orders probe; which these are needs no sampling. Works, Rundensteiner and Agu 2010
(AMRI), whose adaptive hash index this is.
"""
