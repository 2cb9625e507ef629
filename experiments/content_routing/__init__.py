"""Content-based routing: figures 3 to 10 and tables 1 to 3 of Bizarro, Babu, DeWitt and Widom, in the paper's unit and
by the clock.

    streams.py     Stream-Star: tuples of classes, and which filters drop them
    simulator.py   tuple by tuple, as the paper counts: SBR, Content-Learns, Content-Knows, Ticket, A-Greedy
    engine.py      the same streams through queries: processor time and evaluations
    flights.py     the year of flights of the demo
    report.py      the figures, as pages

`python -m experiments.content_routing [calls] [clock] [flights]`
"""
