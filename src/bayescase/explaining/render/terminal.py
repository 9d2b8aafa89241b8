"""Tables for a terminal, by rich. What others have written, such as names and values, is never read as markup."""

from rich.markup import escape
from rich.table import Table

from ..explanation import show

MOST_FEATURES = 8
MOST_ROWS = 30


def in_words(name, value):
    """A feature and its value; a yes/no feature is named or denied."""
    name = escape(name)
    if value is True:
        return f"[bold]{name}[/]"
    if value is False:
        return f"no {name}"
    return f"{name} [bold]{escape(str(value))}[/]"


def explanation_table(explained, title=""):
    """The clusters of a ModelExplanation: what is shared in each, with its share here and elsewhere."""
    sizes = f"{explained.n_cases} cases, {explained.n_features} features, {len(explained.clusters)} clusters"
    table = titled(f"{title}: {sizes}" if title else sizes)
    table.add_column("Cluster", justify="right")
    table.add_column("Cases", justify="right")
    table.add_column("Prototype")
    table.add_column("What its cases share (here, elsewhere)")
    for cluster in explained.clusters:
        keys = cluster.key_features
        words = [f"{in_words(f.name, f.value)} [dim]{f.share:.0%}, {f.elsewhere:.0%}[/]" for f in keys[:MOST_FEATURES]]
        more = f"\n… and {len(keys) - MOST_FEATURES} more" if len(keys) > MOST_FEATURES else ""
        chosen = f"[bold]{escape(cluster.prototype.name)}[/]\nprobability {cluster.prototype.probability:.2f}"
        table.add_row(str(cluster.cluster), str(cluster.size), chosen, ("\n".join(words) or "no feature for certain") + more)
    return table


def case_table(case):
    """The features of a case beside its prototype, those that matter first."""
    weight = {c.feature: c.weight for c in case.reasons[0].contributions} if case.reasons else {}
    title = f"Beside the prototype, {case.prototype.name}"
    table = titled(title, ("Feature", "Matters", "Its value", "Prototype's", "Agrees"))
    if case.reasons:
        table.add_column(f"For cluster {case.cluster}, not {case.reasons[0].there}", justify="right")
    order = sorted(case.features, key=lambda f: (not f.key, -abs(weight.get(f.name, 0.0))))
    for f in order[:MOST_ROWS]:
        agrees = "" if f.agrees is None else "yes" if f.agrees else "[bold]no[/]"
        cells = [escape(f.name), "yes" if f.key else "", escape(show(f.value)), escape(show(f.prototype)), agrees]
        table.add_row(*cells, *([f"{weight[f.name]:+.2f}" if f.name in weight else ""] if case.reasons else []))
    return counted_out(table, len(order))


def pair_table(pair):
    """What two clusters have more often than the other."""
    columns = ("More often in", "Feature", "Value", f"Cluster {pair.first}", f"Cluster {pair.second}")
    table = titled(f"{pair.first_prototype.name} and {pair.second_prototype.name}", columns)
    for s, found in ((pair.first, pair.first_against_second), (pair.second, pair.second_against_first)):
        for d in found:
            here, there = (d.here, d.there) if s == pair.first else (d.there, d.here)
            table.add_row(f"cluster {s}", escape(d.feature), escape(show(d.value)), f"{here:.0%}", f"{there:.0%}")
    return table


def plain_table(title, columns, rows, most=None):
    """Any rows of words."""
    rows = list(rows)
    table = titled(title, columns, lines=False)
    for row in rows[:most]:
        table.add_row(*(escape(str(cell)) for cell in row))
    return counted_out(table, len(rows), most)


def titled(title, columns=(), lines=True):
    table = Table(title=escape(title), title_justify="left", show_lines=lines and not columns)
    for column in columns:
        table.add_column(escape(column))
    return table


def counted_out(table, n, most=MOST_ROWS):
    if most is not None and n > most:
        table.caption, table.caption_justify = f"… and {n - most} more", "left"
    return table
