"""The paper's tables and figures: one file each, one loop (frame), one page (page)."""

from .digits import DIGITS
from .frame import reproduce
from .newsgroups import NEWSGROUPS
from .page import write_page
from .recipes import RECIPES
from .sensitivity import SENSITIVITY
from .smiley import SMILEY

EXPERIMENTS = {experiment.name: experiment for experiment in (SMILEY, DIGITS, NEWSGROUPS, SENSITIVITY, RECIPES)}

__all__ = ["EXPERIMENTS", "reproduce", "write_page"]
