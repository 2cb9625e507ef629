"""Content-based routing of joins: elements of one input take different orders by what they say.

    executor.py         a join whose elements take the routes of its plan
    profiler.py         samples of rows, with the logical filters that drop them
    costs.py            what telling rows apart costs
    reoptimizer.py      routes that save more than they cost
    adaptive_routes.py  when it is asked

The filters of a pipeline are its logical filters (`joins.logical_filters`), so that classes are found, and
their orders judged, as those of a Select are (`content_routing.choosing`). Bizarro, Babu, DeWitt and Widom 2004.
"""
