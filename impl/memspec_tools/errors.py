from __future__ import annotations

from pathlib import Path

from memspec_tools.places import shown


class SpecError(Exception):
    """Bad input, told in one line: ``file:line: what is wrong``. The command line turns it into exit code 2."""

    def __init__(self, path: Path | None, line: int | None, message: str) -> None:
        place = "" if path is None else f"{shown(path)}{f':{line}' if line else ''}: "
        super().__init__(place + message)
        self.path, self.line, self.message = path, line, message

    def __reduce__(self) -> tuple[type[SpecError], tuple[Path | None, int | None, str]]:
        return type(self), (self.path, self.line, self.message)
