"""Broken samplers. Each is the package itself with a line or two changed; a test that does not reject it is worth nothing."""

import hashlib
import importlib
import importlib.util
import shutil
import sys
import tempfile
import time
from pathlib import Path

from numba import njit

import bayescase

SOURCE = Path(bayescase.__file__).parent
KEPT = Path(__file__).parents[2] / ".pytest_cache" / "mutants"

RNG, MODEL, HYPER, MOVES = "kernels/rng.py", "model.py", "sampling/hyper.py", "sampling/moves.py"
TRYING, JUMPS, SETTLE = "sampling/trying.py", "sampling/jumps.py", "kernels/cpu/jumps.py"
DRIVER, EQUATIONS = "kernels/driver.py", "kernels/equations.py"
CPU = ("rows", "relabel", "cells", "tables", "collapsed", "engine", "bags", "lanes_math", "redraw", "anew", "likely")
ROWS, RELABEL, CELLS, TABLES, COLLAPSED, ENGINE, BAGS, LANES, REDRAW, ANEW, LIKELY = (f"kernels/cpu/{name}.py" for name in CPU)

EARLY_PHI = """    update_p_omega_early = driver.update_p_omega(hyper, state, candidates, key)
    moved = rows.update_z(driver.tables, np.uint64(derive(key, ROW)), by_cell)
"""
REACHED = "reached = add(reached, load(ahead, LABELS + t * WIDTH))"
OWN_COLLAPSED = "z_weight(prior, n[s] + (s == a), g_sv[v, s], n_sv[v, s] + (s == a),"
FRESH = "        self.n_sj = np.add.reduceat(state.n_sv[:V], book.offset[: book.n_single], dtype=state.n_sv.dtype)\n"
STALE = """        fresh = state.n_sv.copy()
        self.stale, self.fresh = getattr(self, "fresh", fresh), fresh
        self.n_sj = np.add.reduceat(self.stale[:V], book.offset[: book.n_single], dtype=fresh.dtype)
"""

# name: [(file, what stands there, what is put there)]; every text must occur exactly `times` times
MUTANTS = {
    "p_k twice": [
        (RNG, "            r -= w[k]\n", "            r -= 2.0 * w[k]\n", 1),
        (RELABEL, "            r -= w[s]\n", "            r -= 2.0 * w[s]\n", 1),
        (CELLS, "r -= row_weight(0.0, n[s], phi[at + s])", "r -= 2.0 * row_weight(0.0, n[s], phi[at + s])", 1),
        (CELLS, REACHED, REACHED + "\n        reached = add(reached, load(ahead, LABELS + t * WIDTH))", 1),
        (CELLS, "r -= row_weight(a[s], 0.0, phi[at + s])", "r -= 2.0 * row_weight(a[s], 0.0, phi[at + s])", 1),
    ],
    "alpha/S twice": [
        (
            DRIVER,
            "self.tables.a[:] = hyper.alpha * hyper.beta",
            "self.tables.a[:] = hyper.alpha * hyper.beta / len(hyper.beta)",
            1,
        ),
        (COLLAPSED, "prior = hyper.alpha * hyper.beta[s]", "prior = hyper.alpha * hyper.beta[s] / S", 1),
    ],
    "cell in its own counts": [
        (COLLAPSED, "z_weight(prior, n[s], g_sv[v, s], n_sv[v, s],", OWN_COLLAPSED, 1),
        (CELLS, "row_weight(tables.a[own], n - 1.0, 1.0)", "row_weight(tables.a[own], n, 1.0)", 1),
        (CELLS, "row_weight(0.0, n[own] - 1, phi[at + own])", "row_weight(0.0, n[own], phi[at + own])", 1),
        (CELLS, "take(n, s) - 1", "take(n, s)", 1),
        (CELLS, "n0, m = n[s0], n[s0] + n[s1] - 1", "n0, m = n[s0], n[s0] + n[s1]", 1),
        (CELLS, " + np.int32(z[j] == s0)", "", 1),
        (CELLS, "v * lanes, n0 - own0", "v * lanes, n0", 1),
        (CELLS, "n[b] = m0, m - m0, 1", "n[b] = n0 - own0, m - 1 - n0 + own0, 1", 1),
        (CELLS, "n[s1] = n0, m + 1 - n0", "n[s1] = n0, m - n0", 1),
    ],
    "1 - q misprinted": [
        (MODEL, "return log(q) - log1p(-q) + e", "return log(q) + e", 1),
        (MODEL, "return e + log(q + (1.0 - q) * exp(-e))", "return e + log(q + exp(-e))", 1),
        (MODEL, "return log(q * exp(e) + 1.0 - q)", "return log(q * exp(e) + 1.0)", 1),
    ],
    "g without c": [(MODEL, "return lam * (1.0 + c * omega * k)", "return lam * (1.0 + omega * k)", 1)],
    "phi before p and omega": [
        (DRIVER, "    moved = rows.update_z(driver.tables, np.uint64(derive(key, ROW)), by_cell)\n", EARLY_PHI, 1),
        (
            DRIVER,
            "    return driver.update_p_omega(hyper, state, candidates, key, then=then, draw_p=draw_p), moved\n",
            "    return 0.0, moved\n",
            1,
        ),
    ],
    "stale evidence": [
        (DRIVER, FRESH, STALE, 1),
        (DRIVER, "book, self.rises, state.n_sv, n_sj,", "book, self.rises, self.stale, n_sj,", 1),
    ],
}
ROWS_ONLY = {"phi before p and omega"}  # the collapsed sampler has no φ

LAM_OF_ITEM = """hyper.lam * book.base[v]
            copied = g(plain, hyper.c, 1.0, 1.0)
            log_gamma = span(log_gammas, 2 * (v - book.offset[P]), 2)
"""
SUM1 = "np.repeat(np.arange(V), np.diff(k_ptr)), weights=k - lam[k_idx]"

# One function of one file: name: (file, where it is called from, the function, what stands there, what is put there[, the
# file that has the function, if it is another one, which imports from the first]).
# `break_function` puts it in the place of the right one for the length of a test.
BROKEN = {
    "K transposed": (TABLES, DRIVER, "make_rises", SUM1, "k_idx, weights=k - lam[k_idx]"),
    "K without fractions": (
        TABLES,
        DRIVER,
        "make_rises",
        "1.0, book.k_val[: len(k_idx)])",
        "1.0, np.ceil(book.k_val[: len(k_idx)]))",
    ),
    "beta forgotten, rows": (TABLES, DRIVER, "row_rises", "np.log(hyper.beta)[None]", "np.zeros((1, len(hyper.beta)))"),
    "beta forgotten, collapsed": (COLLAPSED, DRIVER, "update_z_collapsed", "log(hyper.beta[s])", "0.0"),
    "case in its own counts": (
        COLLAPSED,
        COLLAPSED,
        "move_case",
        "z_weight(1.0, 0.0, g_sv[v, s], n_sv[v, s], g_sum[j, s], n_sj[j, s])",
        "z_weight(1.0, 0.0, g_sv[v, s], n_sv[v, s] + (s == a), g_sum[j, s], n_sj[j, s] + (s == a))",
    ),
    "held rows move, rows": (ROWS, ENGINE, "update_z", "held = len(block.held) > 0 and block.held[i] >= 0", "held = False"),
    "held rows move, collapsed": (
        COLLAPSED,
        DRIVER,
        "update_z_collapsed",
        "is_held = len(block.held) > 0 and block.held[i] >= 0",
        "is_held = False",
    ),
    "candidates ruled out too soon": (ROWS, ENGINE, "score_p", "at + s0, weight, score)", "at + s0, weight - 2.0, score)"),
    "own label counted twice": (RELABEL, RELABEL, "relabel_whole", "s, own, S)", "s, np.int64(-1), S)"),
    "several labels: moves forgotten": (CELLS, CELLS, "move_cells", "slack[c] > moved - before", "slack[c] > 0"),
    "several labels: own cell counted": (CELLS, CELLS, "move_cells", "take(n, s) - 1", "take(n, s)"),
    "rejected draws kept": (
        LANES,
        LANES,
        "draw_log_gammas",
        "return log_gamma(shape, derive(key, np.int64(1)))\n    h =",
        "return log(shape)\n    h =",
    ),
    "held omega summed out": (
        TABLES,
        DRIVER,
        "update_evidence",
        "not (len(held) > 0 and held[s, j] >= 0)",
        "True",
    ),
    "reseat: case in its own counts": (
        COLLAPSED,
        DRIVER,
        "reseat",
        "z_weight(1.0, 0.0, g_sv[v, s], n_sv[v, s], g_sum[j, s], n_sj[j, s])",
        "z_weight(1.0, 0.0, g_sv[v, s], n_sv[v, s] + (s == a), g_sum[j, s], n_sj[j, s] + (s == a))",
    ),
    "reseat: case at its own table": (
        COLLAPSED,
        DRIVER,
        "reseat",
        "log(hyper.gamma / S + m[s])",
        "log(hyper.gamma / S + m[s] + (s == a))",
    ),
    "reseat without gamma": (COLLAPSED, DRIVER, "reseat", "log(hyper.gamma / S + m[s])", "log(1e-9 + m[s])"),
    "reseat: counts of rows not kept": (
        COLLAPSED,
        DRIVER,
        "reseat",
        "state.n_rows[b, size] += 1",
        "state.n_rows[a, size] += 1",
    ),
    "reseat with several tables": (HYPER, HYPER, "reseat_some", "chosen = (n > 0) & (own == 1)", "chosen = n > 0"),
    "reseat held rows": (HYPER, HYPER, "main_label", "same & (n > 0) & (held < 0)", "same & (n > 0)"),
    "t without its cells": (
        BAGS,
        DRIVER,
        "draw_t",
        "log_gamma(bags.n[b, s], derive(t_key, 1))",
        "log_gamma(1.0, derive(t_key, 1))",
    ),
    "items: base forgotten": (BAGS, DRIVER, "update_bag_evidence", LAM_OF_ITEM, LAM_OF_ITEM.replace(" * book.base[v]", "")),
    "t forgotten": (BAGS, DRIVER, "update_bag_evidence", "mul(wide_every(copied - plain)", "mul(wide_every(0.0)"),
    "a term of Stirling's series": (BAGS, BAGS, "lane_rises", "-1 / 360, 1 / 1260", "1 / 360, 1 / 1260"),
    "own evidence of an earlier sweep": (TABLES, DRIVER, "update_own_evidence", "if codes[s, j] >= 0:", "if codes[s, j] < -1:"),
    "own items of an earlier sweep": (
        BAGS,
        DRIVER,
        "update_own_items",
        "            if n <= FEW:\n                above = below = 1.0\n",
        "            if n >= 0:\n                continue\n            if n <= FEW:\n                above = below = 1.0\n",
    ),
    "own items: t forgotten": (
        BAGS,
        DRIVER,
        "update_own_items",
        "            e = (copied - plain) * bags.log_t[book.feature[v] - P, s]\n",
        "            e = 0.0\n",
    ),
    "items not copied": (
        BAGS,
        DRIVER,
        "draw_bag_gammas",
        "item_g(book, hyper, True, v + i) + counts",
        "item_g(book, hyper, False, v + i) + counts",
    ),
    "held items summed out": (
        BAGS,
        DRIVER,
        "update_bag_evidence",
        "held[s, d] * evidence[v, s]",
        "log_copy(q[s, d], evidence[v, s])",
    ),
    "base forgotten": (TABLES, DRIVER, "make_rises", "hyper.lam * book.base[:V]", "hyper.lam * np.ones(V)"),
    "items of a bag not counted": (COLLAPSED, DRIVER, "update_z_collapsed", "S if j >= book.n_single else 0", "0"),
    "pairs without their prior": (
        REDRAW,
        DRIVER,
        "draw_pairs",
        "w[k] = rise[(n_a + n - k) * lanes + a] + rise[(n_b + k) * lanes + b]",
        "w[k] = 0.0",
    ),
    "pairs chosen by their labels": (
        REDRAW,
        DRIVER,
        "draw_pairs",
        "        a, b = label[i, 0], label[i, 1]\n        if a != b:\n            row_key",
        "        a, b = np.int64(block.z[start]), np.int64(0)\n        if a != b:\n            row_key",
    ),
    "pairs: cells by the wrong number": (REDRAW, DRIVER, "draw_pairs", "chance[t, k - 1]", "chance[t, k]"),
    "alpha: other labels forgotten": (
        REDRAW,
        DRIVER,
        "weigh_pairs",
        "if a == b or (s != a and s != b):",
        "if a == b:",
    ),
    "alpha: labels as they are": (REDRAW, DRIVER, "weigh_pairs", "if a == b or (s != a and s != b):", "if True:"),
    "alpha: chances forgotten": (REDRAW, DRIVER, "log_pairs", "total += chance[k] * exp(", "total += exp("),
    "cases of bags: totals forgotten": (
        REDRAW,
        DRIVER,
        "move_cases",
        "    count_features(book, n_sv, n_sj)\n",
        "    n_sj[:] = 1.0 * len(n_sv)\n",
    ),
    "cases of bags without their prior": (
        REDRAW,
        DRIVER,
        "move_cases",
        "log_prior[s] = rise[at + s]",
        "log_prior[s] = 0.0",
    ),
    "cases: own cells counted": (LIKELY, DRIVER, "draw_cases", "- likely.scale[v]) * less", ") * less", ANEW),
    "cases without their prior": (
        LIKELY,
        DRIVER,
        "draw_cases",
        "product[s] * priors.of[prior + s]",
        "product[s]",
        ANEW,
    ),
    "cases: held ones move": (ANEW, DRIVER, "draw_cases", "if len(block.held) > 0 and block.held[i] >= 0:", "if False:"),
    "cases: mixtures without their prior": (
        LIKELY,
        DRIVER,
        "draw_cases",
        "prior_of_both(n, k, a, b, lanes, priors) *",
        "",
        ANEW,
    ),
    "cases: any state is in reach": (
        ANEW,
        DRIVER,
        "draw_cases",
        "if k == 1 or (k == 2 and (row.used[0] == a or row.used[1] == a)):",
        "if True:",
    ),
    "cases: no bound for mixtures": (ANEW, DRIVER, "draw_cases", "u * (whole + most) >= whole", "u * whole >= whole"),
    "cases: two labels of what cannot mix otherwise": (
        ANEW,
        DRIVER,
        "draw_cases",
        "uniform(two_key, MIX) >= OFTEN",
        "k <= 2",
    ),
    "cases: prior of two labels the wrong way": (
        ANEW,
        DRIVER,
        "draw_cases",
        "draw_number(n, m - n - n_b, n_b, a, b,",
        "draw_number(n, m - n - n_b, n_b, b, a,",
    ),
    "cases: second label by the cells": (
        ANEW,
        DRIVER,
        "draw_cases",
        "return categorical(w, S, uniform(key, PARTNER))\n\n\n@inlined\ndef leaving",
        "return np.int64(z[0])\n\n\n@inlined\ndef leaving",
    ),
    "moves: centres the wrong way": (
        MOVES,
        MOVES,
        "Tries",
        "np.log(ones * (n - ones)) - np.log(n * (n - 1))",
        "np.log(n * (n - 1)) - np.log(ones * (n - ones))",
    ),
    "moves: no way back": (MOVES, MOVES, "Tries", "ratio += self.undo(move)", "ratio += 0.0"),
    "moves: prior forgotten": (MOVES, MOVES, "Tries", " + self.log_prior(move)", ""),
    "moves: no second step": (MOVES, MOVES, "Tries", "if np.log1p(-self.rng.random()) > ratio:", "if False:"),
    "moves: rough evidence stays": (MOVES, MOVES, "Tries", "ratio += sum(self.rough[s] - rough[s] for s in labels)", "pass"),
    "moves: held cases move": (TRYING, TRYING, "one_label", "one[cases.data.z_held >= 0] = -2", "pass"),
    "jumps: no way back": (JUMPS, JUMPS, "Jumps", "ratio += way.go(", "way.go("),
    "jumps: the side is forgotten": (JUMPS, JUMPS, "Jumps", " + float(np.log(there[side ^ 1]) - np.log(chances[side]))", ""),
    "jumps: prior forgotten": (JUMPS, JUMPS, "Jumps", "ratio += change(", "change("),
    "jumps: tables forgotten": (
        JUMPS,
        JUMPS,
        "Jumps",
        "ratio += float(log_tables(m, self.hyper.gamma) - log_tables(self.m, self.hyper.gamma))",
        "pass",
    ),
    "jumps: mixtures by their likelihood alone": (
        SETTLE,
        JUMPS,
        "settle",
        "return total + log(product) + log_prior(of, labels, prior)",
        "return total + log(product)",
    ),
    "tables from l = 1": (HYPER, HYPER, "count_tables", "np.arange(width - 1)", "np.arange(1, width)"),
    "beta without gamma": (HYPER, HYPER, "update", "dirichlet(hyper.gamma / len(m) + m, rng)", "dirichlet(1e-3 + m, rng)"),
    "gamma not divided": (
        HYPER,
        HYPER,
        "update",
        "dirichlet(hyper.gamma / len(m) + m, rng)",
        "dirichlet(hyper.gamma + m, rng)",
    ),
    "slice without the prior": (HYPER, HYPER, "slice_log", " + _log_normal(x, *PRIORS[name]) if", " if"),
    "slice with another Jacobian": (
        HYPER,
        HYPER,
        "slice_log",
        "_log_normal(x, *PRIORS[name]) if",
        "_log_normal(x, *PRIORS[name]) + x if",
    ),
    "slice at the old height": (HYPER, HYPER, "slice_log", "height(x) - rng.exponential()", "height(x) - 1.0"),
    "slice that steps out one way": (HYPER, HYPER, "slice_log", "below = rng.integers(STEPS)", "below = 0"),
    "Beta without its prior": (
        HYPER,
        HYPER,
        "update",
        "rng.beta(1 + on, 1 + free - on)",
        "rng.beta(0.1 + on, 0.1 + free - on)",
    ),
    "bits of empty clusters stay": (HYPER, HYPER, "update", "if idle.any():", "if False:"),
    "alpha without n_i": (HYPER, HYPER, "log_z", " - (n_i * _rise(alpha, n)).sum()", ""),
    "alpha without beta": (HYPER, HYPER, "log_z", "(alpha * beta)[:, None]", "np.full((len(beta), 1), alpha)"),
    "lam and c without totals": (HYPER, HYPER, "Counts", "- _rise(lam * (self.sizes + c * self.k_sum), self.n_sj).sum()", ""),
    "c without K": (HYPER, HYPER, "Counts", "self.base * (1.0 + c * self.k)", "self.base * (1.0 + c * (self.k > 0))"),
}


def break_function(monkeypatch, name):
    """Put a function of BROKEN in the place of the right one, until the test ends."""
    _, used_in, function, *_ = BROKEN[name]
    module = importlib.import_module("bayescase." + used_in.removesuffix(".py").replace("/", "."))
    monkeypatch.setattr(module, function, getattr(broken(name), function))


def broken(name):
    """The file of a mutant of BROKEN, as a module, or the one that imports it and has the function."""
    file, _, _, old, new, *imported_by = BROKEN[name]
    return broken_through(name, file, old, new, *imported_by)


def broken_through(name, file, old, new, *imported_by):
    """One file with a change in it; then one that imports from it, with no other change."""
    module = broken_module(name, file, old, new)
    for importer in imported_by:
        changed = module.__name__.rpartition(".")[2]
        module = broken_module(name, importer, f"from .{Path(file).stem} import", f"from .{changed} import")
        file = importer
    return module


def broken_module(name, file, old, new):
    """One file of the package with a change in it; all that it imports is the package's own."""
    parent, _, stem = ("bayescase/" + file.removesuffix(".py")).replace("/", ".").rpartition(".")
    module = f"{parent}.broken_{stem}_" + "".join(ch if ch.isalnum() else "_" for ch in name)
    if module not in sys.modules:
        text = (SOURCE / file).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{file} has changed: the mutant {name!r} finds {old!r} {text.count(old)} times"
        text = text.replace(old, new)
        folder = kept(text, lambda folder: (folder / f"broken_{stem}.py").write_text(text, encoding="utf-8"))
        path = folder / f"broken_{stem}.py"
        spec = importlib.util.spec_from_file_location(module, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[module] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[module])
        share_tuples(sys.modules[module], importlib.import_module(f"{parent}.{stem}"))
    return sys.modules[module]


def share_tuples(mutant, original):
    """numba takes tuples of equal names for one type, then finds they are not: the mutant uses those of the package."""
    for name, value in list(vars(mutant).items()):
        if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
            setattr(mutant, name, getattr(original, name))


def kept(change, make):
    """A folder that `make` has filled, for this change of the present sources: what is compiled there serves all processes."""
    found = hashlib.sha256(change.encode())
    for source in sorted(SOURCE.rglob("*.py")):
        found.update(source.read_bytes())
    folder = KEPT / found.hexdigest()[:16]
    if not folder.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        for old in KEPT.iterdir():
            if old.stat().st_mtime < time.time() - 86400:
                shutil.rmtree(old, ignore_errors=True)
        new = Path(tempfile.mkdtemp(dir=KEPT, prefix="new-"))
        make(new)
        try:
            new.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(new)
    return folder


def copy_broken(to, name):
    shutil.copytree(SOURCE, to, ignore=shutil.ignore_patterns("__pycache__"))
    for file, old, new, times in MUTANTS[name]:
        text = (to / file).read_text(encoding="utf-8")
        assert text.count(old) == times, f"{file} has changed: the mutant {name!r} finds {old!r} {text.count(old)} times"
        (to / file).write_text(text.replace(old, new), encoding="utf-8")


def package(name=None, part="kernels"):
    """The module `part` of the package, or of a mutant of it."""
    if name is None:
        return importlib.import_module(f"bayescase.{part}")
    mutant = "mutant_" + "".join(ch if ch.isalnum() else "_" for ch in name)
    if mutant not in sys.modules:
        folder = kept(repr((mutant, MUTANTS[name])), lambda folder: copy_broken(folder / mutant, name))
        sys.path.insert(0, str(folder))
        try:
            importlib.import_module(f"{mutant}.kernels")
        finally:
            sys.path.remove(str(folder))
        for module in [name for name in sys.modules if name.startswith(f"{mutant}.")]:
            share_tuples(sys.modules[module], importlib.import_module(module.replace(mutant, "bayescase", 1)))
    return importlib.import_module(f"{mutant}.{part}")


def outside(function):
    """A function that only kernels call, as one that Python can call."""
    return njit(lambda *args: function(*args))
