"""What must hold when the memory of an LLM serving system changes hands, as code.

Importing this package needs the standard library only. Each finding is a sub-package ``memspec.<area>.<slug>``: the rule
in ``reference``, its broken twins in ``faults``, and one decision per clause in ``checks``.
"""

__version__ = "0.1.0"
