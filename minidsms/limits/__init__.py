"""What may be held and taken: the account of memory, and who is refused, shed or failed when it is short."""
