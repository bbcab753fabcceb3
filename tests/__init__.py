"""The tests: README.md beside this file says which folder tests what."""

import sys

# Pytest rewrites the assertions of all modules of installed plugins. These two packages have hundreds of modules, and
# their assertions need no better messages. Without the exception, the first start of a process takes ten seconds more.
for _finder in sys.meta_path:
    getattr(_finder, "_must_rewrite", set()).difference_update({"gmongo", "hypothesis"})
