"""Broken samplers. Each is the package itself with a line or two changed; a test that does not reject it is worth nothing."""

import atexit
import importlib
import shutil
import sys
import tempfile
from pathlib import Path

import bayescase

RNG, CPU, ROWS, TABLES, MODEL = "kernels/rng.py", "kernels/cpu.py", "kernels/rows.py", "kernels/tables.py", "model.py"

EARLY_PHI = """    update_p_omega(data, hyper, state, work, key, blocked=True)
    a = hyper.alpha * hyper.beta
"""
OWN_COLLAPSED = "z_weight(prior, n[s] + (s == a), g_sv[v, s], n_sv[v, s] + (s == a),"
STALE = """    fresh = state.n_sv.copy()
    n_sv = getattr(work, "stale", fresh)
    work.stale = fresh
    n_sj = np.add.reduceat(n_sv, starts)
"""

# name: [(file, what stands there, what is put there)]; every text must occur exactly `times` times
MUTANTS = {
    "p_k twice": [
        (RNG, "            r -= w[k]\n", "            r -= 2.0 * w[k]\n", 1),
        (ROWS, "r -= row_weight(0.0, n[b], phi[b, v])", "r -= 2.0 * row_weight(0.0, n[b], phi[b, v])", 1),
        (ROWS, "r -= row_weight(a[s], 0.0, phi[s, v])", "r -= 2.0 * row_weight(a[s], 0.0, phi[s, v])", 1),
    ],
    "alpha/S twice": [
        (CPU, "    a = hyper.alpha * hyper.beta\n", "    a = hyper.alpha * hyper.beta / len(hyper.beta)\n", 1),
        (TABLES, "row_weight(hyper.alpha * hyper.beta[s], 0.0,", "row_weight(hyper.alpha * hyper.beta[s] / S, 0.0,", 1),
        (TABLES, "leave_mass(hyper.alpha * hyper.beta[s],", "leave_mass(hyper.alpha * hyper.beta[s] / S,", 1),
        (CPU, "prior = hyper.alpha * hyper.beta[s]", "prior = hyper.alpha * hyper.beta[s] / S", 1),
    ],
    "cell in its own counts": [
        (CPU, "z_weight(prior, n[s], g_sv[v, s], n_sv[v, s],", OWN_COLLAPSED, 1),
        (ROWS, "n[used[0]] - 1.0, a[used[0]], u)", "n[used[0]], a[used[0]], u)", 1),
        (ROWS, "phi, s, smooth, P - 1.0, a, u)", "phi, s, smooth, P, a, u)", 1),
        (ROWS, "row_weight(0.0, n[used[t]], phi", "row_weight(0.0, n[used[t]] + (used[t] == own), phi", 1),
        (ROWS, "row_weight(0.0, n[b], phi[b, v])", "row_weight(0.0, n[b] + (b == own), phi[b, v])", 1),
        (ROWS, "m = int(n[s0]), int(n[s0] + n[s1]) - 1", "m = int(n[s0]), int(n[s0] + n[s1])", 1),
        (ROWS, "m0 = n0 - own0", "m0 = n0", 1),
        (ROWS, "n0 = m0 + new0", "n0 = n0 - own0 + new0", 1),
        (ROWS, "n[b] = m0, m - m0, 1.0", "n[b] = n0 - own0, m - 1 - n0 + own0, 1.0", 1),
        (ROWS, "n[s1] = n0, m + 1 - n0", "n[s1] = n0, m - n0", 1),
    ],
    "1 - q misprinted": [
        (MODEL, "return log(q) - log1p(-q) + e", "return log(q) + e", 1),
        (MODEL, "return e + log(q + (1.0 - q) * exp(-e))", "return e + log(q + exp(-e))", 1),
        (MODEL, "return log(q * exp(e) + 1.0 - q)", "return log(q * exp(e) + 1.0)", 1),
    ],
    "g without c": [(MODEL, "return lam * (1.0 + c * omega * k)", "return lam * (1.0 + omega * k)", 1)],
    "phi before p and omega": [
        (CPU, "    a = hyper.alpha * hyper.beta\n", EARLY_PHI, 1),
        (
            CPU,
            "    return update_p_omega(data, hyper, state, work, key, blocked=True), np.append",
            "    return 0.0, np.append",
            1,
        ),
    ],
    "stale evidence": [
        (CPU, "    n_sj = np.add.reduceat(state.n_sv, starts)\n", STALE, 1),
        (
            CPU,
            "data, work.rises, state.n_sv, n_sj, hyper.q, state.omega, blocked",
            "data, work.rises, n_sv, n_sj, hyper.q, state.omega, blocked",
            1,
        ),
    ],
}
ROWS_ONLY = {"phi before p and omega"}  # the collapsed sampler has no φ


def kernels(name=None, part="cpu"):
    """The module `kernels.<part>` of the package, or of a mutant of it."""
    if name is None:
        return importlib.import_module(f"bayescase.kernels.{part}")
    package = "mutant_" + "".join(ch if ch.isalnum() else "_" for ch in name)
    if package not in sys.modules:
        folder = Path(tempfile.mkdtemp(prefix="bayescase-mutant-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        source = Path(bayescase.__file__).parent
        shutil.copytree(source, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
        for file, old, new, times in MUTANTS[name]:
            path = folder / package / file
            text = path.read_text(encoding="utf-8")
            assert text.count(old) == times, f"{file} has changed: the mutant {name!r} finds {old!r} {text.count(old)} times"
            path.write_text(text.replace(old, new), encoding="utf-8")
        sys.path.insert(0, str(folder))
        try:
            tables = importlib.import_module(f"{package}.kernels.tables")
            importlib.import_module(f"{package}.kernels.cpu")
        finally:
            sys.path.remove(str(folder))
        for shared in ("Rises", "Tables", "Scratch"):  # numba takes tuples of equal names for one type, then finds they are not
            setattr(tables, shared, getattr(kernels(part="tables"), shared))
    return importlib.import_module(f"{package}.kernels.{part}")
