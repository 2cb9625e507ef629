"""How a step of a join finds rows of a window: each way is a file, and a row of the table in `methods`.

contract.py        what an access method is
hashes.py          a column's word, or several columns' hash
cells.py           cells of columns whose differences have bounds
bit_addresses.py   the first bits of the hashes of columns, side by side
methods.py         all of them
"""
