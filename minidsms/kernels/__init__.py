"""Compiled loops over arrays, by topic (`machine_code` compiles and keeps them)."""
