"""The paper's tables and figures: one file each, one loop (frame), one page (page)."""

from .frame import reproduce
from .page import write_page
from .recipes import RECIPES
from .smiley import SMILEY

EXPERIMENTS = {experiment.name: experiment for experiment in (SMILEY, RECIPES)}

__all__ = ["EXPERIMENTS", "reproduce", "write_page"]
