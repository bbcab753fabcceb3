"""Configuration of the site: guides in Markdown (MyST), and the reference from the docstrings (autodoc).

The docstrings have the syntax of Sphinx, because Sphinx checks each reference in the docstrings.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import gmongo

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

project = "gmongo"
author = copyright = "the authors of gmongo"
version = release = gmongo.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "package.md"]
html_theme = "furo"
html_title = f"gmongo {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sphinx = False
html_copy_source = False

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
# The reference of a class contains its inherited members, except the members of Python's own classes.
autodoc_default_options = {
    "members": True,
    "inherited-members": "object,Exception,BaseException,tuple,dict,list,str,IOBase,Enum",
}
add_module_names = False
default_role = "code"

# Sphinx reports broken references, except to Python, to other projects and to internal types.
nitpicky = True
nitpick_ignore_regex = [
    (
        r"py:.*",
        r"(abc|bson|collections|contextlib|datetime|enum|gevent|io|logging|os|socket|ssl|time|typing|urllib|uuid)\..*",
    ),
    (
        r"py:.*",
        r"(Any|bool|bytes|dict|float|frozenset|int|list|object|set|str|tuple|type|None|NoReturn|\w+Error|\w+Exit)",
    ),
    (
        r"py:.*",
        r"(Document|DocumentDict|Value|Binary|CodecOptions|ObjectId|RawBSONDocument|Timestamp|TypeRegistry|UUID|SSLContext|PathLike|Client)",
    ),
    (r"py:.*", r"(Callable|Iterable|Iterator|Mapping|MutableMapping|Sequence)"),
    (r"py:.*", r"(gmongo\.)?(\w+\.)*(DocumentType|OtherType|T|Remote|Stream|SupportsWrite)"),
    (r"py:.*", r"(gmongo\.)?(\w+\.)*_\w+(\.\w+)*"),
    (r"py:.*", r"(Address|Bound|CollationIn|Direction|Hint|KeyOrList|KMSConnect\w+|Tls|Update|WriteModel)"),
    (r"py:.*", r"gmongo\.(auth|cmap|execution|operations|options|sdam|wire)\.(\w+\.)+\w+"),
    (r"py:.*", r"gmongo\.testing\.(command|mongod|plan|remote|simulation)\b.*"),
    (r"py:.*", r"(Call|Cluster|Path|Plan|Program|ServerSession|Settings|Topology|TopologySettings)"),
]

# Page of the site → its source file in the repository, for each source file outside of this folder.
EXTERNAL_PAGES = {
    "architecture": "ARCHITECTURE.md",
    "changelog": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "examples": "examples/README.md",
    "security-policy": "SECURITY.md",
    "tests": "tests/README.md",
}
_LINK = re.compile(r"\[([^\]\[]*)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")


def _convert_to_site_links(text: str, page: Path, folder: Path) -> str:
    """Return the text of a page with links that work on the site.

    :param page: the path of the page on the site.
    :param folder: the folder of the page's source file.
    """
    pages = {(ROOT / source).resolve(): HERE / f"{name}.md" for name, source in EXTERNAL_PAGES.items()}

    def convert_link(match: re.Match[str]) -> str:
        link_text, path, anchor = match[1], match[2], match[3] or ""
        target = (folder / path).resolve()
        if target.is_dir():
            target = _find_nearest_readme(target)
        target = pages.get(target, target)
        relative = os.path.relpath(target, page.parent)
        if target.is_relative_to(HERE):
            return f"[{link_text}]({relative}{anchor})"
        # Sphinx copies the target of a `path:` link to the site, and reports a link to a missing file.
        return f"[{link_text}](path:{relative})" if target.exists() else match[0]

    return _LINK.sub(convert_link, text)


def _find_nearest_readme(folder: Path) -> Path:
    """Return the README of a folder, or of its nearest parent folder that contains a README."""
    readme = folder / "README.md"
    return readme if readme.exists() else _find_nearest_readme(folder.parent)


def _convert_links(_app: Any, name: str, content: list[str]) -> None:
    page = HERE / f"{name}.md"
    if name in EXTERNAL_PAGES:
        source = ROOT / EXTERNAL_PAGES[name]
        content[0] = _convert_to_site_links(source.read_text(encoding="utf-8"), page, source.parent)
    elif page.exists():
        content[0] = _convert_to_site_links(content[0], page, page.parent)


_EMPTY_HEADER_CELL = re.compile(r"<th[^>]*>(<p></p>)?</th>")


def _convert_empty_headers(_app: Any, _name: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
    """Convert header cells without text, which confuse screen readers, to plain cells."""
    if "body" in context:
        context["body"] = _EMPTY_HEADER_CELL.sub("<td></td>", context["body"])


def setup(app: Any) -> None:
    """Register the hooks of the site."""
    app.connect("html-page-context", _convert_empty_headers)
    app.connect("source-read", _convert_links)
