"""Content-based routing: tuples that differ in content take the filters of a condition in different orders.

    dividing.py        runs it: a chunk is divided by route
    sample.py          unbiased tuples with their attributes, and what every filter says of them
    choosing.py        the routes that save most on a sample, if they save anything
    gain_ratio.py      how much an attribute tells of a filter (equations 1 to 5)
    content_learns.py  the matrices of Content-Learns; learning.py runs them
    trial.py           do they pay by the clock?
    reoptimizer.py     routes where they pay, else the order of the ordering algorithm
    of_joins/          the same for the elements of joins

Bizarro, Babu, DeWitt, Widom: Content-Based Routing: Different Plans for Different Data.
"""
