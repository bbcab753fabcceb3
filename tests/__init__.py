"""The tests of gmongo. README.md describes the folders of tests."""

import sys

# Pytest rewrites the assertions in all modules of installed plugins, so that failures have better messages. For these
# two packages, the marker disables the rewrite of their hundreds of modules. The first start of a process is thus 10 s
# faster.
for _finder in sys.meta_path:
    getattr(_finder, "_must_rewrite", set()).difference_update({"gmongo", "hypothesis"})
