"""Durable connections: what a folder keeps, so that a process may end at any moment. docs/durability.md.

The engine is deterministic in its inputs. So what is kept is the log of the inputs (`log.py`): statements, elements and
heartbeats, in the order in which they were taken. Opening the folder carries them out again (`recovery.py`).
"""
