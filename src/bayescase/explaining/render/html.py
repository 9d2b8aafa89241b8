"""Explanations as HTML: tables and the cards of clusters, for reports and notebooks. Everything that is not ours is escaped."""

import html
from importlib.resources import files
from itertools import count

from ..explanation import ClusterExplanation, ModelExplanation, as_set, clean, counted, cut, show

MANY_CARDS = 12


def esc(value) -> str:
    return html.escape(clean(value))


def percent(share) -> str:
    return "–" if share is None else f"{share:.0%}"


def style() -> str:
    return f"<style>{files('bayescase').joinpath('data/report.css').read_text(encoding='utf-8')}</style>"


PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
{style}
</head>
<body class="bayescase page">
<a class="skip" href="#main">Skip to the content</a>
<header>
<h1>{title}</h1>
<p>{about}</p>
</header>
<nav aria-label="Contents"><ul>{links}</ul></nav>
<main id="main" tabindex="-1">{sections}</main>
<footer><p>{made}</p></footer>
</body>
</html>
"""


def document(title, about, parts, made) -> str:
    """A page of its own, of HTML: parts are (name, heading, content); `made` is the foot."""
    links = "".join(f'<li><a href="#{name}">{words}</a></li>' for name, words, _ in parts)
    sections = "".join(
        f'<section aria-labelledby="{name}"><h2 id="{name}">{words}</h2>{text}</section>' for name, words, text in parts
    )
    return PAGE.format(title=title, style=style(), about=about, links=links, sections=sections, made=made)


class Ready(str):
    """HTML that needs no escaping any more."""


def scroll(label, content) -> str:
    """What may be wider than the page: the keyboard can reach and scroll it."""
    return f'<div class="scroll" tabindex="0" role="group" aria-label="{esc(label)}">{content}</div>'


def table(caption, head, rows, numbers=(), keys=()) -> str:
    """The first cell of a row heads it. `numbers`: columns to align right; `keys`: rows in bold."""
    kind = [' class="n"' if k in numbers else "" for k in range(len(head))]
    top = "".join(f'<th scope="col"{of}>{esc(cell)}</th>' for cell, of in zip(head, kind, strict=True))
    body = []
    for r, row in enumerate(rows):
        mark = ' class="key"' if r in keys else ""
        first = f'<th scope="row"{kind[0]}>{shown(row[0])}</th>'
        rest = "".join(f"<td{of}>{shown(cell)}</td>" for cell, of in zip(row[1:], kind[1:], strict=True))
        body.append(f"<tr{mark}>{first}{rest}</tr>")
    parts = f"<caption>{esc(caption)}</caption><thead><tr>{top}</tr></thead><tbody>{''.join(body)}</tbody>"
    return scroll(f"Table: {cut(caption, 120)}", f"<table>{parts}</table>")


def shown(cell) -> str:
    if isinstance(cell, Ready):
        return cell
    words = cut(cell, 200)
    return f'<span class="long">{esc(words)}</span>' if len(words) > 30 else esc(words)


def card(cluster: ClusterExplanation, most=8) -> str:
    """What a cluster is, in a few lines: what its prototype has and lacks, or its values and how common they are."""
    return set_card(cluster) if as_set(cluster.features) else table_card(cluster, most)


def set_card(cluster):
    present = sorted((f for f in cluster.features if f.value), key=lambda f: (not f.key, f.name))
    absent = [f for f in cluster.key_features if not f.value and f.value is not None]
    unlike = [f for f in absent if f.unlike]
    text = tokens(present, 40, "tokens") if present else '<p class="soft">Nothing is present.</p>'
    if unlike:
        text += "<p>But, unlike the other clusters, no</p>" + tokens(unlike, 12, "tokens lacks")
    rest = len(absent) - len(unlike)
    if rest:
        words = f"What is absent here as in most other clusters matters, too ({counted(rest, 'feature')})."
        text += f'<p class="soft">{words}</p>'
    return text


def tokens(features, most, kind):
    items = []
    for f in features[:most]:
        boxed = f.key and f.value
        mark, words = (' class="key"', '<span class="hidden"> (matters)</span>') if boxed else ("", "")
        items.append(f"<li{mark}>{esc(cut(f.name, 60))}{words}</li>")
    if len(features) > most:
        items.append(f"<li>{len(features) - most} more</li>")
    return f'<ul class="{kind}">{"".join(items)}</ul>'


def table_card(cluster, most):
    keys = cluster.key_features[:most]
    others = sorted((f for f in cluster.features if not f.key), key=lambda f: -f.typical_share)[: most - len(keys)]
    rows = []
    for f in (*keys, *others):
        value = f.value if f.key else f.typical
        here, there = next((here, there) for v, here, there in f.distribution if v == value)
        bar = Ready(f'<span class="bar" aria-hidden="true"><span style="width:{here:.0%}"></span></span>{percent(here)}')
        rows.append((cut(f.name, 60), cut(show(value), 60), "yes" if f.key else "no", bar, percent(there)))
    left = len(cluster.features) - len(rows)
    words = f"Cluster {cluster.cluster}: the prototype’s value where the feature matters, else the most common one"
    words += f"; {counted(left, 'feature')} not shown" if left else ""
    return table(words, ("feature", "value", "matters", "share here", "elsewhere"), rows, (3, 4), range(len(keys)))


def called(cluster: ClusterExplanation) -> str:
    return f"Cluster {cluster.cluster}: {counted(cluster.size)} like {cut(cluster.prototype.name, 80)}"


NOTEBOOK = count()  # several models on one page must not share an id


def notebook(explanation: ModelExplanation, more: str = "") -> str:
    """A small card per cluster, and `more` (ready HTML) below."""
    shown = explanation.clusters[:MANY_CARDS]
    ids = [f"bayescase-{next(NOTEBOOK)}" for _ in shown]
    cards = "".join(
        f'<section class="card" aria-labelledby="{name}"><h4 id="{name}">{esc(called(c))}</h4>{card(c, 5)}</section>'
        for name, c in zip(ids, shown, strict=True)
    )
    left = len(explanation.clusters) - len(shown)
    note = f'<p class="soft">{left} smaller clusters are not shown.</p>' if left else ""
    sizes = ((explanation.n_cases, "case"), (explanation.n_features, "feature"), (len(explanation.clusters), "cluster"))
    about = f"{', '.join(counted(*size) for size in sizes)}. {explanation.verdict}"
    details = f"<details><summary>Parameters</summary>{more}</details>" if more else ""
    return f'{style()}<div class="bayescase notebook"><p>{esc(about)}</p><div class="cards">{cards}</div>{note}{details}</div>'
