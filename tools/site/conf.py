"""Sphinx's configuration. Nothing here may load anything from another host."""

from __future__ import annotations

from tanist import __version__

project = "tanist"
author = "tanist's authors"
release = version = __version__
extensions = ["myst_parser"]
root_doc = "index"

myst_heading_anchors = 5
myst_enable_extensions = ["colon_fence"]
# Pages are written for plain readers of Markdown too: a page may begin its parts with `###`, and code need not be code.
suppress_warnings = ["misc.highlighting_failure", "myst.header"]

html_theme = "furo"
html_title = f"tanist {version}"
html_favicon = "../../web/public/icon.svg"
html_static_path = ["static"]
html_css_files = ["wide.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_last_updated_fmt = None
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
highlight_language = "text"
add_module_names = False
toc_object_entries_show_parents = "hide"
