"""The paper's tables and figures, and other methods beside it: one file each, one loop (frame), one page (page)."""

from .agreement import AGREEMENT
from .digits import DIGITS
from .frame import reproduce
from .newsgroups import NEWSGROUPS
from .page import write_page
from .peers import PEERS
from .recipes import RECIPES
from .sensitivity import SENSITIVITY
from .smiley import SMILEY

EXPERIMENTS = {one.name: one for one in (SMILEY, DIGITS, AGREEMENT, NEWSGROUPS, SENSITIVITY, RECIPES, PEERS)}

__all__ = ["EXPERIMENTS", "reproduce", "write_page"]
