"""What notebooks show: queries, tables and plans as HTML, and a view that is kept up to date. docs/notebooks.md."""
