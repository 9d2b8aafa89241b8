"""The paper's tables and figures, and other methods beside it: one file each, one loop (frame), one page (page)."""

from .agreement import AGREEMENT
from .bags import BAGS
from .chains import CHAINS
from .clusters import CLUSTERS
from .digits import DIGITS
from .frame import reproduce
from .modes import MODES
from .newsgroups import NEWSGROUPS
from .numbers import NUMBERS
from .page import write_page
from .peers import PEERS
from .recipes import RECIPES
from .sensitivity import SENSITIVITY
from .smiley import SMILEY
from .starts import STARTS

EXPERIMENTS = {
    one.name: one
    for one in (
        SMILEY,
        DIGITS,
        STARTS,
        AGREEMENT,
        MODES,
        NEWSGROUPS,
        SENSITIVITY,
        RECIPES,
        BAGS,
        PEERS,
        CLUSTERS,
        NUMBERS,
        CHAINS,
    )
}

__all__ = ["EXPERIMENTS", "reproduce", "write_page"]
