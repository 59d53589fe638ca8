"""Sphinx settings of the gallery. ``memspec_tools.gallery`` starts Sphinx with them; nobody calls it by hand."""

from __future__ import annotations

import os

project = "memspec"
extensions = ["sphinx_gallery.gen_gallery", "memspec_tools.gallery_hooks"]
nitpicky = True
html_permalinks_icon = "¶"
html_copy_source = False
sphinx_gallery_conf = {
    "examples_dirs": [os.environ["MEMSPEC_GALLERY_SCRIPTS"]],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/plot_\w+\.py$",
    "ignore_pattern": r"(__init__|conf)\.py$",
    "image_scrapers": ("memspec_tools.gallery_hooks.svg_figures",),
    "reset_modules": ("matplotlib", "memspec_tools.gallery_hooks.around_a_script"),
    "reset_modules_order": "both",
    "subsection_order": "memspec_tools.gallery_hooks.by_area",
    "doc_module": ("memspec", "memspec_tools"),
    "backreferences_dir": None,
    "first_notebook_cell": '# Needed once:\n# %pip install "memspec[gallery]"\n%matplotlib inline',
    "abort_on_example_error": False,
    "write_computation_times": False,
    "min_reported_time": 0,
    "show_memory": False,
    "show_signature": False,
    "capture_repr": (),
}
