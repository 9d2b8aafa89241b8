"""The paper's tables and figures, and other methods beside it: one file each, one loop (frame), one page (page)."""

from .digits import DIGITS
from .frame import reproduce
from .page import write_page
from .peers import PEERS
from .recipes import RECIPES
from .smiley import SMILEY

EXPERIMENTS = {experiment.name: experiment for experiment in (SMILEY, DIGITS, RECIPES, PEERS)}

__all__ = ["EXPERIMENTS", "reproduce", "write_page"]
