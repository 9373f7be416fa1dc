"""Set up what all tests share, before anything imports torch."""

import os

# Two workers and the commands they start share few cores: with a pool of torch threads each, they mostly wait for each
# other. Commands inherit this.
os.environ.setdefault("OMP_NUM_THREADS", "1")
