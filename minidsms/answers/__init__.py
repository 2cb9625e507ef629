"""Answers on their way to whoever asked: fetched, awaited, called back, or read as a relation."""
