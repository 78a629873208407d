"""The documentation as a site, made by Sphinx from the pages of the repository. `docs/README.md` gives their order."""

import __future__
import re
import sys
import types
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).parent)]

import reference
from pygments.lexers.special import TextLexer

project = "Anabranch"
root_doc = "docs/README"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
include_patterns = ["*.md", "docs/**", "*/README.md", "papers/*/README.md", "tests/*/README.md"]
# python/README.md is for the package index; docs/python.md has more.
exclude_patterns = ["target", ".*", "crates", "fuzz/target", "python", "packaging"]
suppress_warnings = ["myst.header"]
# Values in texts are to be copied as they are.
smartquotes = False
# As GitHub names the anchors of headings.
myst_heading_anchors = 6

html_theme = "furo"
html_title = "Anabranch"
html_static_path = ["static"]
html_favicon = "static/icon.svg"
html_css_files = ["site.css"]
html_js_files = ["live.js", "scroll.js"]
html_copy_source = False
html_use_index = False
html_show_copyright = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

autodoc_mock_imports = ["distributed", "fsspec", "gymnasium", "matplotlib", "numpy", "pandas", "pyarrow", "xarray"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"


def native() -> None:
    """The native half of the package as its type stub describes it: nothing is compiled for the site."""
    stub = ROOT / "python/anabranch/_native.pyi"
    module = types.ModuleType("anabranch._native")
    module.__version__ = ""
    sys.modules[module.__name__] = module
    # A stub names classes before it has them.
    exec(compile(stub.read_text(), stub, "exec", flags=__future__.annotations.compiler_flag), module.__dict__)


PLAYGROUND = (ROOT / "crates/playground/site/engine.wasm").exists()
#: An entry of the order: `- [Title](page.md): a remark`, indented if it is below the entry before.
ENTRY = re.compile(r"^( *)- \[(.+?)\]\((.+?)\.md\)", re.M)
#: The line of the order that the pages of `reference.py` replace.
MADE = re.compile(r"^\*Made with the site: .*\*$", re.M)
#: Pages whose sections all have the same headings: the contents beside them end above those.
ALIKE = {"docs/schedulers", "docs/congestion"}
#: A link to a file of the repository that is no page; all of them are text.
FILE = re.compile(r'(<a class="reference download internal" )download="" (href="[^"]+)"')
LIVE = re.compile(r"^<!-- live: (\S+) -->$", re.M)


def name_of(link: str) -> str:
    """The document that `docs/README.md` links to, from the root."""
    return (ROOT / "docs" / link).resolve().relative_to(ROOT).as_posix()


def contents(caption: str, entries: list[tuple[str, str]]) -> str:
    lines = "\n".join(f"{title} </{page}>" for title, page in entries)
    heading = f":caption: {caption}\n" if caption else ""
    return f"\n\n```{{toctree}}\n:hidden:\n{heading}\n{lines}\n```\n"


def order(text: str) -> dict[str, str]:
    """The tables of contents that each document ends with: the start page has one per part, a page those below it."""
    found: dict[str, str] = {}
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        top: list[tuple[str, str]] = []
        below: dict[str, list[tuple[str, str]]] = {}
        for indent, title, link in ENTRY.findall(part):
            entry = (title, name_of(link))
            below.setdefault(top[-1][1], []).append(entry) if indent else top.append(entry)
        if top:
            found[root_doc] = found.get(root_doc, "") + contents(part.splitlines()[0], top)
        found |= {page: contents("", entries) for page, entries in below.items()}
    return found


def figure(name: str, fragment: str) -> str:
    """The playground at a scenario; a link where it cannot run."""
    if not PLAYGROUND:
        return "<p class=\"live\">The live figure is not in this build, which was made without WebAssembly.</p>"
    page = "../" * name.count("/") + "playground/index.html"
    fragment = fragment.replace("&", "&amp;")
    return (
        f'<div class="live" data-page="{page}" data-fragment="{fragment}"><p>The figure needs JavaScript and WebAssembly, and a web '
        f'server: <a href="{page}#{fragment}">open it in the playground</a>.</p></div>'
    )


def prepare(app, name: str, source: list[str]) -> None:
    text = source[0]
    if name == root_doc:
        text = MADE.sub("\n".join(f"- [{title}](reference/{page}.md): {about}" for page, (title, about) in reference.PAGES.items()), text)
    text = LIVE.sub(lambda found: figure(name, found[1]), text)
    depth = "---\ntocdepth: 2\n---\n" if name in ALIKE else ""
    source[0] = depth + text + app.order.get(name, "")


def begin(app) -> None:
    native()
    reference.write(ROOT)
    text = (ROOT / f"{root_doc}.md").read_text()
    made = "\n".join(f"- [{title}](reference/{page}.md)" for page, (title, _) in reference.PAGES.items())
    app.order = order(MADE.sub(made, text))


def finish(app, name: str, template: str, context: dict, doctree) -> None:
    """A heading has a level: the captions beside the text are below the page's title. A link to a file shows it."""
    if "body" in context:
        context["body"] = FILE.sub(r'\1\2.txt"', context["body"])
    context["furo_navigation_tree"] = context["furo_navigation_tree"].replace('role="heading"', 'role="heading" aria-level="2"')


def name_files(app, fault) -> None:
    """As text, so that any web server lets a browser show them."""
    for file in [file for file in Path(app.outdir, "_downloads").rglob("*") if file.is_file()]:
        file.rename(f"{file}.txt")


def setup(app) -> None:
    # A graph, which GitHub draws, is text here.
    app.add_lexer("mermaid", TextLexer)
    app.connect("builder-inited", begin, priority=1)
    app.connect("source-read", prepare)
    # After the theme.
    app.connect("html-page-context", finish, priority=900)
    app.connect("build-finished", name_files)
