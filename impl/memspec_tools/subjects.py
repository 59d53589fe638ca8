"""Somebody's implementation, named on the command line."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memspec_tools.errors import SpecError


def subject_factory(name: str, device: str) -> Callable[[], Any]:
    """Turn ``package.module`` or ``package.module:attribute`` into a factory of subjects.

    A class or a function is called (with ``device`` if it takes one argument); any other attribute, and a module without
    attribute, is the subject itself. The working directory is searched first. Raises SpecError when the name leads nowhere.
    """
    module_name, _, attribute = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as trouble:
        raise SpecError(
            None, None, f"--subject {name}: no module {trouble.name!r} on the path, which begins with {here}"
        ) from trouble
    except (Exception, SystemExit) as trouble:
        raise SpecError(
            None, None, f"--subject {name}: importing it fails: {type(trouble).__name__}: {trouble}"
        ) from trouble
    if not attribute:
        return lambda: module
    if not hasattr(module, attribute):
        raise SpecError(None, None, f"--subject {name}: {module_name} has no {attribute!r}")
    thing: Any = getattr(module, attribute)
    if not inspect.isroutine(thing) and not inspect.isclass(thing):
        return lambda: thing
    try:
        wants = [
            p
            for p in inspect.signature(thing).parameters.values()
            if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
    except (TypeError, ValueError):
        wants = []
    if len(wants) > 1:
        raise SpecError(
            None, None, f"--subject {name}: a factory takes nothing or the device, not {len(wants)} arguments"
        )
    call: Callable[..., Any] = thing
    return (lambda: call(device)) if wants else call
