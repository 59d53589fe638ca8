"""The site: plain functions, page in and page out, under one thin MkDocs plugin."""

from memspec_tools.site.plugin import MemspecPlugin

__all__ = ["MemspecPlugin"]
