"""Check the prose of pages, docstrings and comments against the style guide in ``CONTRIBUTING.md``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cases import rows, with_cases

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "tests/*.md", "examples/*.md", "benchmarks/*.md")
    for page in ROOT.glob(pattern)
    if "conformance" not in page.parts
)
CODE_FILES: dict[str, list[Path]] = {}
for pattern in ("*.cfg", "*.ini", "*.toml", "*.yaml", ".ci/*", ".github/*/*.yml", "{}/**/*.py"):
    for folder in ("benchmarks", "docs", "examples", "gmongo", "tests") if "{}" in pattern else [""]:
        for source in sorted(ROOT.glob(pattern.format(folder))):
            parts = source.parent.relative_to(ROOT).parts
            name = "/".join(parts[: 2 if parts[:1] == ("tests",) or parts[:2] == ("gmongo", "testing") else 1])
            CODE_FILES.setdefault(name, []).append(source)
MAX_WORDS = 25

RULES = [(row["pattern"], row["advice"]) for row in rows(__file__, "forbidden")]
FORBIDDEN_PATTERN = re.compile("|".join(f"(?:{pattern})" for pattern, _ in RULES))
GENERATED_PATTERN = re.compile(r"<!-- (?P<name>[\w-]+): begin -->.*?<!-- (?P=name): end -->|<!--.*?-->", re.DOTALL)
FENCE_PATTERN = re.compile(r"^ *(?P<fence>`{3,}|~{3,}).*?^ *(?P=fence) *$", re.MULTILINE | re.DOTALL)
ITEM_START_PATTERN = re.compile(r"^ *(?:[-*+]|\d+\.|#+|>|:) +")
FIELD_PATTERN = re.compile(r" *:\w[^:]*: ")
CODE_SPAN_PATTERN = re.compile(r"(`+).+?\1", re.DOTALL)
EXAMPLE_PATTERN = re.compile(r"::\n(?:\n|    .*\n)+|^ *>>> .*\n(?:.+\n)*", re.MULTILINE)
# The pattern also matches string literals, because a character # in a string literal does not begin a
# comment.
COMMENT_PATTERN = re.compile(
    r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'|(^ *#.*(?:\n *#.*)*|#.*)", re.MULTILINE
)
DIRECTIVE_PATTERN = re.compile(r"#!.*|# *(?:type: ignore|noqa|fmt|pragma|ruff)\b[^#]*")
LINK_PATTERN = re.compile(r"!?\[(?P<text>[^\]]*)\](?:\([^)]*\)|\[[^\]]*\])?")
SENTENCE_END_PATTERN = re.compile(r"(?<=[.!?])[)*_\"]* +(?=\S)")
ABBREVIATION_PATTERN = re.compile(r"\b(e\.g|i\.e|etc|vs|No)\.")


def paragraphs(text: str) -> Iterator[str]:
    """Yield each paragraph, list item, heading and table cell, without code blocks and generated
    parts.
    """
    paragraph: list[str] = []
    for line in [*FENCE_PATTERN.sub("\n", GENERATED_PATTERN.sub("\n", text)).splitlines(), ""]:
        is_row, starts_item = (
            line.lstrip().startswith("|"),
            ITEM_START_PATTERN.match(line) or FIELD_PATTERN.match(line),
        )
        if (is_row or starts_item or not line.strip()) and paragraph:
            yield " ".join(paragraph)
            paragraph = []
        if is_row:
            yield from (
                CODE_SPAN_PATTERN.sub(lambda span: span[0].replace("|", " "), line).strip().strip("|").split("|")
            )
        elif line.strip():
            paragraph.append(ITEM_START_PATTERN.sub("", line).strip())
        if line.startswith("#"):
            yield paragraph.pop()


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, in which the word `code` replaces each code span."""
    for paragraph in paragraphs(text):
        # The description of a field may be a list of phrases, separated by semicolons.
        if FIELD_PATTERN.match(paragraph):
            paragraph = FIELD_PATTERN.sub("", paragraph).replace("; ", ". ")
        plain_text = LINK_PATTERN.sub(lambda link: link["text"], CODE_SPAN_PATTERN.sub("`code`", paragraph))
        plain_text = ABBREVIATION_PATTERN.sub(lambda short: short[1], plain_text).replace("**", "")
        yield from filter(None, (sentence.strip() for sentence in SENTENCE_END_PATTERN.split(plain_text)))


def findings(text: str) -> list[str]:
    """Return a text for each sentence that is too long, and for each match of a forbidden pattern."""
    violations = []
    for sentence in sentences(text):
        word_count = len([word for word in sentence.split() if re.search(r"\w", word)])
        if word_count > MAX_WORDS:
            violations.append(f"{word_count} words: {sentence}")
        if FORBIDDEN_PATTERN.search(sentence):
            violations += [f"{advice}: {sentence}" for pattern, advice in RULES if re.search(pattern, sentence)]
    return violations


def docstrings(node: ast.AST) -> Iterator[str]:
    """Yield the docstrings of a module, and of its classes and functions.

    Omit examples in the docstrings.
    """
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield EXAMPLE_PATTERN.sub("\n\n", f"{ast.get_docstring(node) or ''}\n")
    for child in getattr(node, "body", ()):
        yield from docstrings(child)


def comments(text: str) -> Iterator[str]:
    """Yield the comments of a file. Consecutive comment lines are one comment."""
    for comment in filter(None, COMMENT_PATTERN.findall(text)):
        yield re.sub(r"^ *#:? ?", "", DIRECTIVE_PATTERN.sub("", comment), flags=re.MULTILINE)


def texts(source: Path) -> Iterator[str]:
    """Yield the docstrings and comments of a file."""
    text = source.read_text("utf-8")
    if source.suffix == ".py":
        yield from docstrings(ast.parse(text))
    yield from comments(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_follows_style_guide(page: Path) -> None:
    assert findings(page.read_text("utf-8")) == []


@pytest.mark.parametrize("folder", sorted(CODE_FILES))
def test_code_follows_style_guide(folder: str) -> None:
    faults = [f"{source}: {each}" for source in CODE_FILES[folder] for text in texts(source) for each in findings(text)]
    assert faults == []


@with_cases
def test_findings_returns_one_text_per_violation(text: str, count: int) -> None:
    assert len(findings(text)) == count
