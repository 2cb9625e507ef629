"""What statements do to a connection, and what is declared by them. docs/semantics, "Statements"."""
