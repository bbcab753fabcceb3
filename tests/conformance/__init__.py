"""From a requirement to its proof: the pages in docs/conformance, kept true by the markers of the tests."""
