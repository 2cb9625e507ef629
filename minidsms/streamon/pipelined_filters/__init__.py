"""The adaptive Select: commutative filters in a pipeline, whose order follows their drop rates and costs.

The instance of StreaMon of Babu 2005, section 3.2 and figure 4.10:

    conjunction.py    a condition as pipelines of filters; what Select runs
    executor.py       one pipeline: its filters in the present order
    profiler.py       profile tuples, costs, and the counts that execution leaves behind
    look_ahead.py     where in a chunk conditions change
    change_watch.py   whether conditions have changed
    answers.py        whether answering that pays
    sampling.py       which tuples are profiled, and when
    costs.py          what a filter costs per tuple
    reoptimizer.py    asks an ordering algorithm of `streamon.filter_ordering`
"""
