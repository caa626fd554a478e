"""The documentation site (`make docs`). It can be read from the file system: no page needs a server or the network."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from backcast import __version__

project = "Backcast"
author = "The Backcast authors"
copyright = "The Backcast authors, Apache-2.0"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "docstrings", "mathml", "public_names"]
exclude_patterns = ["_ext", "figures", "measurements", "tables.py"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
math_renderer = html_math_renderer = "mathml"

default_role = "code"  # docstrings have `names` as Markdown has them
autodoc_member_order = "groupwise"
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "exclude-members": "count, index"}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_attr_annotations = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"Backcast {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_search_summary = False  # browsers do not let a page from the file system read another one
html_copy_source = False
