"""Set up what all tests share, before anything imports torch."""

import os
import signal

# Two workers and the commands they start share few cores: with a pool of torch threads each, they mostly wait for each
# other. Commands inherit this.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell that starts the tests in the background has them ignore Ctrl-C; the commands that tests stop with it must not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
