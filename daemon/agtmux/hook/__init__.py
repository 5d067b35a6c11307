"""`agtmux-hook`, which agents run for each of their events, and the spool it leaves behind for the daemon.

`send`, `spool` and `wait` run on any machine's Python 3.8 as one script without dependencies, put together by
`compose`. `spool_reader` is the daemon's side.
"""
