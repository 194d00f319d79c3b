"""The paper, reproduced: its tables and figures, by one command, from runs that can be resumed."""

from censored_gp.paper.reproduce import WHAT, reproduce

__all__ = ["WHAT", "reproduce"]
