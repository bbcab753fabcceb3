"""The tests of gmongo. The file ``README.md`` describes the test folders."""

import sys

# Pytest rewrites the assertions in all modules of installed plugins, so that failures have better
# messages. Without the rewrite of two packages with hundreds of modules, the first start of a test
# process is 10 s faster.
for _finder in sys.meta_path:
    getattr(_finder, "_must_rewrite", set()).difference_update({"gmongo", "hypothesis"})
