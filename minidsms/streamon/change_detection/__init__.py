"""How StreaMon notices that conditions have changed. Tsamoura, Gounaris and Manolopoulos 2016.

contracts.py            what a change detector is
cusum.py                our own: cumulative sums of a Bernoulli likelihood ratio, both ways
beta_cusum.py           the paper's: the same of Beta distributions that it learns
beta_distribution.py    the functions that needs
adwin.py                ADWIN2: a window as long as its parts agree
martingale.py           a bet that the order of the items does not matter
meta.py                 two windows, compared by their distribution functions
change_finder.py        the loss of a model, averaged twice
bound.py                a bound that values keep, for k-Mon
detectors.py            all of them by name, and the settings
"""
