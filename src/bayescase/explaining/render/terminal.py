"""Tables for a terminal, by rich. What others have written, such as names and values, is never read as markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from shutil import get_terminal_size

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ..explanation import KEY, CaseExplanation, DifferencesExplanation, ModelExplanation, PairExplanation, TreeExplanation
from ..overall import in_chain
from ..parts import Card, Distinction
from ..words import cut, percent, show

MOST_ROWS = 30
NARROW = 16  # letters of the first column at least


def explanation_table(explained: ModelExplanation, title: str = "") -> Table:
    """The clusters of a model: who stands for each, and what sets it apart.

    Parameters
    ----------
    explained : ModelExplanation
    title : str, default=""
        What the table is about, such as the name of a file.

    Returns
    -------
    rich.table.Table
    """
    table = titled(f"{title}: {explained.summary}" if title else explained.summary)
    table.add_column("Cluster", min_width=NARROW, max_width=36)
    alone = len(explained.clusters) == 1
    table.add_column("Key features" if alone else "More often than elsewhere", no_wrap=True)
    for column in ("Here", "Elsewhere", "Key"):
        table.add_column(column, justify="right", no_wrap=True)
    for cluster in explained.clusters:
        card = cluster.card()
        head = f"[bold]{escape(card.title)}[/]\n{escape(card.size)},\n{escape(card.like)}"
        table.add_row(head, *("\n".join(column) for column in zip(*card_lines(card, room_for_words()), strict=True)))
    table.caption, table.caption_justify = f"[not dim]{escape(KEY)}[/]", "left"
    return table


def room_for_words() -> int:
    """Letters beside a narrow first column, three columns of numbers and the lines between them."""
    return min(60, max(NARROW, get_terminal_size().columns - NARROW - 36))


def card_lines(card: Card, room: int) -> list[tuple[str, ...]]:
    """The lines of a card: words, share here, share elsewhere, probability of a key feature."""
    lines: list[tuple[str, ...]] = []
    if card.nothing:
        lines.append((f"  {'–' if card.alone else 'nothing for certain'}", "", "", ""))
    for heading, found, more in card.sections:
        lines += [(f"  [dim]{cut(heading, room)}[/]", "", "", "")] if found is not card.has else []
        lines += [line(d, room) for d in found]
        lines += [(f"  [dim]and {more} more[/]", "", "", "")] if more else []
    return lines


def line(d: Distinction, room: int) -> tuple[str, ...]:
    words = escape(cut(d.words, room))
    key = percent(d.probability) if d.probability else ""
    return (
        f"* [bold]{words}[/]" if d.key else f"  {words}",
        percent(d.here),
        percent(d.there),
        key if d.key else f"[dim]{key}[/]",
    )


def case_table(case: CaseExplanation) -> Table:
    """The features of a case beside its prototype, key features first.

    Parameters
    ----------
    case : CaseExplanation

    Returns
    -------
    rich.table.Table
    """
    weight = {c.feature: c.weight for c in case.reasons[0].contributions} if case.reasons else {}
    title = f"Beside the prototype, {case.prototype}"
    table = titled(title, ("Feature", "Key", "Its value", "Prototype's", "Agrees"))
    if case.reasons:
        table.add_column(f"For cluster {case.cluster}, not {case.reasons[0].there}", justify="right")
    said = [f for f in case.features if f.key or f.value is not False or f.prototype not in (None, False)]
    order = sorted(said, key=lambda f: (not f.key, -abs(weight.get(f.name, 0.0))))
    for f in order[:MOST_ROWS]:
        agrees = "" if f.agrees is None else "yes" if f.agrees else "[bold]no[/]"
        cells = [escape(f.name), "*" if f.key else "", escape(show(f.value)), escape(show(f.prototype)), agrees]
        table.add_row(*cells, *([f"{weight[f.name]:+.2f}" if f.name in weight else ""] if case.reasons else []))
    return counted_out(table, len(order))


def pair_table(pair: PairExplanation) -> Table:
    """What two clusters have more often than the other.

    Parameters
    ----------
    pair : PairExplanation

    Returns
    -------
    rich.table.Table
    """
    first, second = pair.first, pair.second
    columns = ("More often in", "What", f"Cluster {first.cluster}", f"Cluster {second.cluster}")
    table = titled(f"{first.prototype} and {second.prototype}", columns)
    for side in (first, second):
        for d in side.more_often:
            here, there = percent(d.here), percent(d.there)
            table.add_row(escape(side.title), escape(d.words), *((here, there) if side is first else (there, here)))
    return table


def tree_table(tree: TreeExplanation) -> Table | Text:
    """Which clusters are joined, the cheapest join first; of one cluster a sentence.

    Parameters
    ----------
    tree : TreeExplanation

    Returns
    -------
    rich.table.Table or rich.text.Text
    """
    if not tree.joins:
        return Text(tree.sentence)
    table = titled(tree.sentence, ("Clusters left", "Less probable", "Joined", "Cases", "Like"))
    for k, node in zip(range(tree.n_clusters - 1, 0, -1), tree.joins, strict=True):
        joined = " + ".join(escape(cut(tree.nodes[part].title, 36)) for part in node.parts)
        name = "" if node.prototype is None else escape(str(node.prototype))
        left = f"[bold]{k} *[/]" if k == tree.number else str(k)
        table.add_row(left, percent(node.less_probable), joined, f"{node.size:,}", name)
    table.caption, table.caption_justify = (
        "[not dim]less probable: the cases of all clusters that are joined, told as one[/]",
        "left",
    )
    return table


def differences_table(found: DifferencesExplanation) -> Table:
    """The cases that are not in the same cluster in all chains.

    Parameters
    ----------
    found : DifferencesExplanation

    Returns
    -------
    rich.table.Table
    """
    columns = ("Case", "Shown", *(f"Chain {c}" for c in range(found.n_chains)))
    rows = [(cut(case.name, 40), case.cluster, *map(in_chain, case.chains)) for case in found.cases]
    return plain_table("Cases that could as well be in another cluster", columns, rows, MOST_ROWS)


def plain_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], most: int | None = None) -> Table:
    """Any rows of words.

    Parameters
    ----------
    title : str
    columns : sequence of str
        The head.
    rows : iterable of sequences
    most : int, default=None
        Rows shown; the rest are counted. All of them if None.

    Returns
    -------
    rich.table.Table
    """
    cells = list(rows)
    table = titled(title, columns, lines=False)
    for row in cells[:most]:
        table.add_row(*(escape(str(cell)) for cell in row))
    return counted_out(table, len(cells), most)


def titled(title: str, columns: Sequence[str] = (), lines: bool = True) -> Table:
    table = Table(title=escape(title), title_justify="left", show_lines=lines and not columns)
    for column in columns:
        table.add_column(escape(column))
    return table


def counted_out(table: Table, n: int, most: int | None = MOST_ROWS) -> Table:
    if most is not None and n > most:
        table.caption, table.caption_justify = f"… and {n - most} more", "left"
    return table
