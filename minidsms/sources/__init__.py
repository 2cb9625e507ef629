"""Where streams and relations come from: files, pipes, sockets, frames, generators; and the driver that reads them in
time order.

Nothing is imported here: who begins with a stream that is pushed needs no readers of files.
"""
