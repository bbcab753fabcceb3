"""Check the prose of the Markdown pages against the style guide in ``CONTRIBUTING.md``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "tests/README.md", ROOT / "examples/README.md"]
    if "conformance" not in page.parts
)
LONGEST = 25
# The number of findings that a page may have. A number may only decrease.
BASELINE: dict[str, int] = {}

NOUNS = r"(?:application|client|driver|gevent|gmongo|library|parent|pool|PyMongo|Python|server|user)"
AFTER = r"(?=[.,:)]|$| (?:and|are|at|has|have|in|is|on|or|that|to|which)\b)"
FORBIDDEN = [
    (r";", "write two sentences, or a list"),
    (r"^(?:Wh(?:at|o|oever|atever)|Those)\b(?!.*\?)", "start with the noun"),
    (r"(?:^|[:,] )wh(?:at|oever) [^?]*$", "name the noun"),
    (r"\b(?:about|all|and|as|at|but|by|for|from|in|is|of|on|than|to|with) (?:those|wh(?:at|oever))\b", "name the noun"),
    (rf"\bof (?:\w+ ){{0,2}}{NOUNS}'s{AFTER}", "use a noun compound: driver greenlet"),
    (r"\b(?:tell|tells|telling|told|hears?|heard)\b", "name the action: notify, report, publish"),
    (r"\b(?:asks?|asked|asking)\b", "name the action: query, request, send"),
    (r"\b(?:tries|tried|try|trying) (?:it )?again\b", "retry"),
    (r"\b(?:goes|go|went|gone|going) on\b", "continue, resume"),
    (r"\b(?:believes?|believed|lies|lied|lying)\b", "accept, reject, malformed"),
    (r"\bh(?:olds?|eld|olding) (?:up )?(?:the |its |a )?(?:event )?(?:loop|hub)\b", "block, keep alive"),
    (r"\blooks? at\b|\blooked at\b", "check, read, measure"),
    (r"\bloop (?:is|was) (?:never |not )?held\b", "block the event loop"),
    (r"\btime-outs?\b", "timeout is one word"),
    (r"\b(?:houses?|floors?|annex|annexes)\b", "architecture, layer, baseline"),
    (r"\b(?:mends?|mended)\b", "fix, fixed"),
    (r"\b(?:so|be it|all the same|too so)(?=[.:]|$)", "no adverb for a missing verb"),
    (r"\bbut for\b|\bof late\b|\bas ever\b|\bas good as\b|\bbe it\b", "use a common phrase"),
    (r"\b(?:any|every)body\b", "name the greenlet, caller or user"),
    (r"\b(?:Neither|Nor|Never|Nowhere|Only then|Not only) (?:are|can|do|does|has|have|is|may|will)\b", "no inversion"),
    (r"\b\w+n't\b", "no contraction"),
]
GENERATED = re.compile(r"<!-- (?P<name>[\w-]+): begin -->.*?<!-- (?P=name): end -->|<!--.*?-->", re.DOTALL)
FENCE = re.compile(r"^ *(?P<fence>`{3,}|~{3,}).*?^ *(?P=fence) *$", re.MULTILINE | re.DOTALL)
ITEM = re.compile(r"^ *(?:[-*+]|\d+\.|#+|>|:) +")
SPAN = re.compile(r"(`+).+?\1", re.DOTALL)
LINK = re.compile(r"!?\[(?P<text>[^\]]*)\](?:\([^)]*\)|\[[^\]]*\])?")
END = re.compile(r"(?<=[.!?])[)*_\"]* +(?=\S)")
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|vs|No)\.")


def paragraphs(text: str) -> Iterator[str]:
    """Yield each paragraph, list item, heading and table cell, without code blocks and generated parts."""
    paragraph: list[str] = []
    for line in [*FENCE.sub("\n", GENERATED.sub("\n", text)).splitlines(), ""]:
        row, begins = line.lstrip().startswith("|"), ITEM.match(line)
        if (row or begins or not line.strip()) and paragraph:
            yield " ".join(paragraph)
            paragraph = []
        if row:
            yield from SPAN.sub(lambda span: span[0].replace("|", " "), line).strip().strip("|").split("|")
        elif line.strip():
            paragraph.append(ITEM.sub("", line).strip())
        if line.startswith("#"):
            yield paragraph.pop()


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page. A code span is one word."""
    for paragraph in paragraphs(text):
        plain = LINK.sub(lambda link: link["text"], SPAN.sub("`code`", paragraph))
        plain = ABBREVIATION.sub(lambda short: short[1], plain).replace("**", "")
        yield from filter(None, (sentence.strip() for sentence in END.split(plain)))


def findings(text: str) -> list[str]:
    """Return a line for each sentence that is too long or matches a forbidden pattern."""
    violations = []
    for sentence in sentences(text):
        words = len([word for word in sentence.split() if re.search(r"\w", word)])
        if words > LONGEST:
            violations.append(f"{words} words: {sentence}")
        violations += [f"{advice}: {sentence}" for pattern, advice in FORBIDDEN if re.search(pattern, sentence)]
    return violations


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_follows_style_guide(page: Path) -> None:
    violations = findings(page.read_text("utf-8"))
    assert len(violations) <= BASELINE.get(str(page.relative_to(ROOT)), 0), "\n".join(violations)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The pool closes the connection.", 0),
        ("The pool closes the connection; the client retries.", 1),
        ("What is read is checked.", 1),
        ("It is a greenlet of the driver's.", 1),
        ("The time-out is told.", 2),
        ("| `a; b` | The server is asked. |", 1),
        ("```\nWhat; told; time-out\n```\n<!-- x: begin -->\ntold\n<!-- x: end -->", 0),
        (f"- {'word ' * 25}.\n- {'word ' * 26}.", 1),
        ("What does the pool do? It waits.", 0),
    ],
)
def test_findings_count_violations(text: str, count: int) -> None:
    assert len(findings(text)) == count
