"""The tests. README.md describes the folders."""

import sys

# Pytest rewrites the assertions in all modules of installed plugins. These two packages have hundreds of modules, and
# their assertions need no better messages. Without this exception, the first start of a process takes 10 s longer.
for _finder in sys.meta_path:
    getattr(_finder, "_must_rewrite", set()).difference_update({"gmongo", "hypothesis"})
