"""Runs of minutes and hours: a command each, as `make soak` and `make crashes` call them.

The default tests draw a few of the cases of each.
"""
