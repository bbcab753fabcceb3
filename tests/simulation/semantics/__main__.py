"""Lists where a server, and the simulation, answer otherwise than MongoDB's documentation says.

``python -m tests.simulation.semantics`` asks the simulation, or the server of MONGODB_URI.
"""

from __future__ import annotations

import sys

from . import listing

if __name__ == "__main__":
    sys.exit(listing.main(sys.argv[1:]))
