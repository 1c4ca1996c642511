"""The pages as a site (make docs-site). There is no list of pages here: the navigation is that of docs/README.md."""

import re
from pathlib import Path
from urllib.parse import unquote

from docutils import nodes
from sphinx import addnodes

repository = "https://github.com/storagebench/storagebench"
top = Path(__file__).resolve().parents[2]
pages = "docs/README"  # lists all pages
catalogue = "experiments/README"

project = "storagebench"
root_doc = "README"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
include_patterns = ["*.md", "docs/**.md", "experiments/**.md"]
exclude_patterns = [".*", "api", "bin", "charts", "cmd", "config", "controllers", "dist", "hack", "images", "internal", "test", "tools"]
myst_disable_syntax = ["myst_block_break", "myst_line_comment", "myst_role", "myst_target"]  # which GitHub does not know
myst_heading_anchors = 6  # with the names that GitHub gives them
highlight_language = "text"
smartquotes = False  # text stays as it is written
suppress_warnings = ["misc.highlighting_failure"]  # examples are shortened with ...

html_theme = "furo"
html_title = "storagebench"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_use_index = False


def navigation(app, docname, content):
    """Adds to the first page the navigation: the tables of docs/README.md, then what else it links to, then the rest."""
    if docname == root_doc:
        content[0] += toctrees((top / f"{pages}.md").read_text())
    if docname == catalogue:
        content[0] += toctree("", {"*/README": None})


def toctrees(text):
    groups, elsewhere, caption = {"": {pages: "All pages"}}, {}, ""
    for line in text.splitlines():
        if line.startswith("## "):
            caption = line[3:]
        for name, target in re.findall(r"\[([^\]]+)\]\(([^)#]+)\)", line):
            if not (page := document(target)):
                continue
            if line.startswith("| ["):
                groups.setdefault(caption, {})[page] = name
            else:
                elsewhere[page] = None  # it has the name that its heading gives it
    listed = {root_doc}.union(*groups.values())
    others = elsewhere | dict.fromkeys(path.stem for path in sorted(top.glob("*.md")))
    groups["Project"] = {page: None for page in others if page not in listed}
    return "".join(toctree(caption, links) for caption, links in groups.items())


def document(target):
    """The page that a link of docs/README.md leads to, if it is one."""
    path = (top / "docs" / target / ("" if target.endswith(".md") else "README.md")).resolve()
    return path.relative_to(top).with_suffix("").as_posix() if path.exists() else None


def toctree(caption, links):
    entries = "\n".join(f"{name} <{page}>" if name else page for page, name in links.items())
    options = ":hidden:\n:glob:\n" + (f":caption: {caption}\n" if caption else "")
    return f"\n```{{toctree}}\n{options}\n{entries}\n```\n"


def folders(app, doctree):
    """A link to a folder leads to its README. One to a folder without it, or to a page that the site does not have, leads to the
    repository. Any other target that is not there is an error."""
    here = Path(app.env.doc2path(app.env.docname)).parent
    for node in list(doctree.findall(addnodes.pending_xref)):
        if node.get("refdomain") == "doc":
            page = f"{node['reftarget']}.md"
            if node["reftarget"] not in app.env.found_docs and (top / page).is_file():
                node.replace_self(nodes.reference("", "", *node.children, refuri=f"{repository}/blob/main/{page}", internal=False))
            continue
        path = (here / unquote(node["reftarget"])).resolve()
        if node["reftype"] != "myst" or node.get("refdomain") or not path.is_dir() or not path.is_relative_to(top):
            continue
        name = path.relative_to(top).as_posix()
        if f"{name}/README" in app.env.found_docs:
            node["refdomain"], node["reftarget"], node["reftargetid"] = "doc", f"{name}/README", None
        else:
            node.replace_self(nodes.reference("", "", *node.children, refuri=f"{repository}/tree/main/{name}", internal=False))


def begin(app, error):
    """A server and a person look for index.html first."""
    if error is None:
        (Path(app.outdir) / "index.html").write_text(
            '<!doctype html><meta charset="utf-8"><title>storagebench</title>'
            f'<meta http-equiv="refresh" content="0; url={root_doc}.html"><a href="{root_doc}.html">storagebench</a>\n'
        )


def setup(app):
    app.connect("source-read", navigation)
    app.connect("doctree-read", folders)
    app.connect("build-finished", begin)
