"""The driver: draws p, ω and φ from tables of counts, and asks engines for the rest. The two samplers are its two sweeps.

A sweep ends with p and ω, so that the log joint and the kept draw belong to one state. In the row sweep φ comes after p and ω
and before z: it is integrated out where p and ω are drawn, so it must be drawn anew before it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ..state import Cells, Data, Hyper, State
from .contract import Candidates, Moved, Rows
from .cpu.anew import draw_cases, make_anew
from .cpu.bags import (
    add_bag_values,
    add_up_items,
    chunks_of,
    draw_bag_gammas,
    draw_t,
    fill_bag_phi,
    forget_items,
    list_copied,
    make_bag_tables,
    prior_lanes,
    update_bag_evidence,
    update_bag_omega,
    update_own_items,
)
from .cpu.collapsed import make_weights, reseat, update_z_collapsed
from .cpu.engine import Block, CpuRows, make_block
from .cpu.means import add_values
from .cpu.omega import guess_omega, no_bits, update_omega
from .cpu.redraw import choose_pairs, draw_pairs, log_pairs, make_pairs, make_weighed, move_cases, weigh_pairs
from .cpu.tables import (
    Copies,
    EvidenceTables,
    Rises,
    Scratch,
    Subspaces,
    add_up_evidence,
    alone,
    draw_uncopied,
    lanes_for,
    make_rises,
    make_tables,
    rise_table,
    row_rises,
    update_copied_phi,
    update_evidence,
    update_own_evidence,
    update_phi,
)
from .cpu.threads import Threads
from .rng import derive

DrawAlpha: TypeAlias = Callable[[Callable[[float], float]], float]  # a draw, given the log likelihood
PHI, ROW, PROTOTYPE, SUBSPACE, BAG, CASE, PAIR = range(7)  # purposes: one stream of random numbers each


class Early:
    """Gamma draws for φ that were made before their turn, and what they were made from."""

    hyper: Hyper | None = None
    key = np.uint64(0)

    def __init__(self, log_gamma: np.ndarray, n_sv: np.ndarray):
        self.log_gamma, self.n_sv = log_gamma, n_sv  # (ΣV · lanes,) float32 and (ΣV, S)

    def fits(self, hyper: Hyper, n_sv: np.ndarray, key: np.uint64) -> bool:
        return bool(key == self.key) and hyper is self.hyper and np.array_equal(n_sv, self.n_sv)


class Driver:
    """The tables of one chain at a time, and what of them depends on the hyperparameters alone."""

    def __init__(self, data: Data, n_i: np.ndarray, hyper: Hyper, threads: Threads, rises: Rises | None = None):
        book = data.book
        self.book, self.omega_held, self.n_i, self.threads = book, data.omega_held, n_i, threads
        S, P, V = len(hyper.beta), book.n_single, int(book.offset[-1])
        # The sums over log φ are made before z is drawn, those over `adds` after it: one memory serves both.
        by_lanes = alone((V + 1) * lanes_for(S), dtype=np.float32)
        self.tables = make_tables(book, S, len(n_i) - 1, by_lanes)
        self.copies = Copies(by_lanes, np.zeros((P, S)))
        self.evidence, self.part = np.zeros((V, S)), np.zeros(P)
        self.value = np.zeros((int(np.diff(book.offset[: P + 1]).max(initial=1)), S))
        self.features = threads.parts(P, S * int(book.offset[P]))
        self.chunks, self.bags = chunks_of(book), make_bag_tables(book, S)
        self.chunk_parts, self.clusters = threads.parts(len(self.chunks)), threads.parts(S)
        self.rises, self.hyper = rises, None
        self.early: Early | None = None
        self.bits, self.n_sj = no_bits(S, P), np.zeros((P, S), np.int32)
        self.joint: float | None = None
        self.use(hyper)

    def use(self, hyper: Hyper) -> None:
        """Make what depends on the hyperparameters, unless they are those of the last call."""
        if hyper is self.hyper:
            return
        if self.hyper is not None or self.rises is None:  # else they came from a driver with the same hyperparameters
            self.rises = make_rises(self.book, hyper, int(self.n_i.sum()))
        if len(self.chunks) and (self.hyper is None or hyper.q is not self.hyper.q):
            self.bags = self.bags._replace(q=prior_lanes(self.book, hyper.q))
        if self.hyper is None or (hyper.lam, hyper.c) != (self.hyper.lam, self.hyper.c):
            self.bags.log_gamma[:] = np.nan
        self.hyper = hyper
        width = len(self.n_i) - 1
        self.tables.a[:] = hyper.alpha * hyper.beta
        self.tables.rise.reshape(width + 1, -1)[:, : len(hyper.beta)] = row_rises(hyper, width)
        # Σ_i log Γ(α + n_i) / Γ(α); at α = 0 the prior of a row has no such term
        rise = rise_table(np.array([hyper.alpha]), width + 1)[:, 0] if hyper.alpha > 0.0 else np.zeros(width + 1)
        self.row_const = float((rise * self.n_i).sum())
        self.omega_const = float(np.log1p(-hyper.q[:, : self.book.n_single]).sum())

    def draw_early(self, hyper: Hyper, n_sv: np.ndarray, key: np.uint64) -> None:
        """What of `update_phi` with the key `key` needs neither p nor ω. It is used if nothing changes until then."""
        if self.early is None:
            self.early = Early(np.zeros(len(self.tables.phi) - lanes_for(n_sv.shape[1]), np.float32), np.empty_like(n_sv))
        early, book = self.early, self.book
        early.n_sv[:], early.key, early.hyper = n_sv, key, hyper
        self.threads.each(
            self.features,
            lambda scratch, lo, hi: draw_uncopied(book, hyper, early.n_sv, key, early.log_gamma, scratch.phi, lo, hi),
        )

    def update_phi(self, hyper: Hyper, state: State, key: np.uint64) -> None:
        """φ | p, ω, z."""
        book, tables, bags, chunks, early = self.book, self.tables, self.bags, self.chunks, self.early
        if early is not None and early.fits(hyper, state.n_sv, key):
            log_gamma = early.log_gamma
            self.threads.each(
                self.features,
                lambda scratch, lo, hi: update_copied_phi(book, hyper, state, key, tables, log_gamma, scratch.phi, lo, hi),
            )
        else:
            self.threads.each(
                self.features, lambda scratch, lo, hi: update_phi(book, hyper, state, key, tables, scratch.phi, lo, hi)
            )
        if not len(chunks):
            return
        copied = list_copied(book, state.u, state.omega)
        self.threads.each(
            self.chunk_parts,
            lambda scratch, lo, hi: draw_bag_gammas(book, hyper, state, copied, key, bags, chunks, scratch.phi, lo, hi),
        )
        total = np.add.reduceat(bags.sums, np.searchsorted(chunks[:, 0], np.arange(book.n_bags)))
        log_total = np.log(total).astype(np.float32).reshape(-1)
        self.threads.each(
            self.chunk_parts,
            lambda scratch, lo, hi: fill_bag_phi(book, log_total, tables, bags, chunks, scratch.phi.log_phi, lo, hi),
        )

    def update_p_omega(
        self,
        hyper: Hyper,
        state: State,
        candidates: Candidates,
        key: np.uint64,
        blocked: bool = True,
        then: np.uint64 | None = None,
        draw_p: bool = True,
    ) -> float:
        """p then ω. blocked: p with ω summed out; else p given ω, as the paper has it. Returns the log joint.

        draw_p: else only ω is drawn. When that is must not depend on the state.

        The items of a bag are always summed out: given ω, a prototype could change only to one with the same items.
        then: the key of the sweep that is likely to come next.
        """
        self.use(hyper)
        subspaces = Subspaces(state.omega, self.omega_held, hyper.q, blocked)
        book, omega_key, prob = self.book, np.uint64(derive(key, SUBSPACE)), state.omega_prob
        self.draw_t(hyper, state, key)

        def meanwhile() -> None:
            if book.n_single:
                guess_omega(book.n_single, state.u, self.evidence, subspaces, omega_key, self.bits)
                if then is not None:
                    self.draw_early(hyper, state.n_sv, np.uint64(derive(then, PHI)))
            self.joint = self.log_joint(state)

        self.joint = None
        if draw_p:
            self.update_evidence(hyper, state, subspaces)
            best = candidates.score(self.copies, np.uint64(derive(key, PROTOTYPE)), meanwhile)
        else:
            self.update_own_evidence(hyper, state)
        joint = self.log_joint(state) if self.joint is None else self.joint
        if draw_p:
            if len(self.chunks):
                forget_items(book, state.u, state.omega, prob)
            state.p[:], state.u[:] = best.row, best.codes
        evidence = update_omega(book.n_single, state.u, self.evidence, subspaces, omega_key, prob, self.bits)
        joint = joint + evidence + self.omega_const + candidates.weights_of(state.p).sum()
        if len(self.chunks):
            n_sv, u, bags = state.n_sv, state.u, self.bags

            def work(_: Scratch, lo: int, hi: int) -> None:
                if not draw_p:
                    update_own_items(book, hyper, n_sv, u, self.evidence, bags, lo, hi)
                update_bag_omega(book, hyper, u, self.evidence, subspaces, omega_key, bags, prob, lo, hi)

            self.threads.each(self.clusters, work)
            joint += bags.part.sum() + bags.copied.sum()
        return float(joint)

    def log_joint(self, state: State) -> float:
        """What of the log joint needs neither p nor ω."""
        add_up_evidence(self.book, self.rises, state.n_sv, self.n_sj, self.part, 0, self.book.n_single)
        rise = self.tables.rise.reshape(state.n_rows.shape[1], -1)[:, : len(state.p)]
        rows = (state.n_rows * rise.T).sum() - self.row_const
        return float(rows + self.part.sum())

    def draw_t(self, hyper: Hyper, state: State, key: np.uint64) -> None:
        """Counts of z by feature, and t of the bags."""
        book = self.book
        V = book.offset[book.n_single]
        self.n_sj = np.add.reduceat(state.n_sv[:V], book.offset[: book.n_single], dtype=state.n_sv.dtype)
        if len(self.chunks):
            draw_t(book, hyper, state.n_sv, state.u, state.omega, np.uint64(derive(key, BAG)), self.bags)

    def update_own_evidence(self, hyper: Hyper, state: State) -> None:
        """What ω is drawn by if the prototypes stay, given z."""
        book, n_sv, bags, chunks = self.book, state.n_sv, self.bags, self.chunks
        self.threads.each(
            self.features,
            lambda _, lo, hi: update_own_evidence(book, self.rises, n_sv, self.n_sj, state.u, self.evidence, lo, hi),
        )
        if not len(chunks):
            return
        self.threads.each(self.chunk_parts, lambda _, lo, hi: add_up_items(book, hyper, n_sv, bags, chunks, lo, hi))

    def update_evidence(self, hyper: Hyper, state: State, subspaces: Subspaces) -> None:
        """What candidates are scored by, given z."""
        book, bags, chunks, n_sj = self.book, self.bags, self.chunks, self.n_sj
        tables = EvidenceTables(self.evidence, self.copies)
        self.threads.each(
            self.features,
            lambda scratch, lo, hi: update_evidence(
                book, self.rises, state.n_sv, n_sj, subspaces, tables, scratch.phi.g, lo, hi
            ),
        )
        if not len(chunks):
            return
        self.threads.each(
            self.chunk_parts,
            lambda scratch, lo, hi: update_bag_evidence(
                book, hyper, state.n_sv, subspaces, self.evidence, self.copies.adds, bags, chunks, lo, hi
            ),
        )

    def add_values(
        self, hyper: Hyper, state: State, to: np.ndarray, weight: float, mean: np.ndarray, table: np.ndarray
    ) -> None:
        """mean += weight (E[φ | z, p, ω] − mean), label s counted as to[s]; E[φ] also to `table`, if it has rows."""
        add_values(self.book, hyper, state, to, weight, self.value, mean, table)
        if len(self.chunks):
            n_sb = np.add.reduceat(state.n_sv, self.book.offset[:-1])[self.book.n_single :]
            add_bag_values(self.book, hyper, state, n_sb, to, weight, mean, table)

    def reseat(self, hyper: Hyper, state: State, rows: Rows, which: np.ndarray, u: np.ndarray, m: np.ndarray) -> None:
        """Some rows of one label each, as a whole, with φ and β integrated out; m_s, the tables of label s, follows."""
        cells, z, _ = rows.take(which)
        block = make_block(cells, 0, z)
        weights = make_weights(self.book, len(state.p))
        self.threads.each([(0, len(which))], lambda scratch, *_: reseat(block, self.book, hyper, state, u, m, scratch, weights))
        rows.put(which, z)

    def redraw(
        self,
        hyper: Hyper,
        state: State,
        cells: Cells,
        z: np.ndarray,
        held: np.ndarray,
        key: np.uint64,
        draw_alpha: DrawAlpha | None = None,
        mix: bool = True,
    ) -> Hyper:
        """Cases anew: z changes, and the caller counts. Returns the hyperparameters.

        Of tables from all states with one or two labels, φ integrated out (`draw_cases`); of bags those with one label, as a
        whole. Then two labels of each case jointly, given φ: of bags, and if α is learned, which `draw_alpha` draws before
        them, given log p(z | α) with them summed out. Without `mix` cases with one label move as a whole, and that is all.
        """
        self.use(hyper)
        block = make_block(cells, 0 if self.book.n_bags else self.book.n_single, z, held)
        book, rise, lanes = self.book, self.tables.rise, lanes_for(len(state.p))
        case_key, weights = np.uint64(derive(key, CASE)), make_weights(book, len(state.p))
        S, width = len(state.p), len(self.n_i) - 1
        if book.n_bags:
            self.threads.each(
                [(0, block.size)],
                lambda scratch, *_: move_cases(
                    block, book, hyper, state, rise, lanes, case_key, scratch.row, scratch.weight, weights
                ),
            )
        else:
            pairs, anew = make_pairs(S, width), make_anew(state.n_sv, weights, lanes, width)
            may_mix = mix and hyper.alpha > 0.0
            self.threads.each(
                [(0, block.size)],
                lambda scratch, *_: draw_cases(
                    block, book, hyper, state, rise, lanes, case_key, may_mix, scratch.row, scratch.weight, weights, pairs, anew
                ),
            )
            if draw_alpha is None:
                return hyper
        if hyper.alpha == 0.0 or not mix:
            return hyper
        self.update_phi(hyper, state, np.uint64(derive(key, PHI)))
        pair_key = np.uint64(derive(key, PAIR))
        parts, label = self.threads.parts(block.size), np.zeros((block.size, 2), dtype=np.int64)
        if draw_alpha is not None:  # which labels they are must not depend on it
            rise = np.zeros_like(rise)
            rise.reshape(width + 1, -1)[:, :S] = row_rises(hyper._replace(alpha=1.0), width)
        self.threads.each(
            parts,
            lambda scratch, lo, hi: choose_pairs(
                block, self.tables, rise, pair_key, scratch.sums, make_pairs(S, width).weight, label, lo, hi
            ),
        )
        if draw_alpha is not None:
            hyper = hyper._replace(alpha=draw_alpha(self.weigh(hyper, block, label, pair_key)))
            self.use(hyper)
        self.threads.each(
            parts, lambda _, lo, hi: draw_pairs(block, self.tables, label, pair_key, make_pairs(S, width), lo, hi)
        )
        return hyper

    def weigh(self, hyper: Hyper, block: Block, label: np.ndarray, key: np.uint64) -> Callable[[float], float]:
        """log p(z | α) up to a constant, the two labels of each row summed out."""
        weighed, out, threads = make_weighed(block.size, len(block.x)), np.zeros(block.size), self.threads
        S, width, parts = len(hyper.beta), len(self.n_i) - 1, threads.parts(block.size)
        n_rows = np.zeros((S, width + 1), dtype=np.int64)  # by labels that stay

        def work(scratch: Scratch, lo: int, hi: int) -> None:
            scratch.tally.clear()
            pairs, to = make_pairs(S, width), scratch.tally.n_rows
            weigh_pairs(block, self.tables, label, key, scratch.row, pairs, weighed, to, lo, hi)

        threads.each(parts, work, lambda scratch: np.add(n_rows, scratch.tally.n_rows, out=n_rows))

        def log_z(alpha: float) -> float:
            rise = row_rises(hyper._replace(alpha=alpha), width)
            threads.each(parts, lambda _, lo, hi: log_pairs(block, label, weighed, rise, out, lo, hi))
            whole = rise_table(np.array([alpha]), width + 1)[:, 0]
            return float((n_rows * rise.T).sum() + out.sum() - (whole * self.n_i).sum())

        return log_z


def sweep_rows(
    driver: Driver,
    rows: Rows,
    candidates: Candidates,
    hyper: Hyper,
    state: State,
    key: np.uint64,
    cells: bool = True,
    then: np.uint64 | None = None,
    draw_p: bool = True,
) -> tuple[float, Moved]:
    """φ | p, ω, z; then the rows of z | φ; then p, ω | z in one block. Returns (log joint, what moved).

    draw_p: else ω | p, z.
    then: the key of the next sweep, if it is likely to go on from here. Engines that wait draw some of its numbers early.
    """
    driver.use(hyper)
    driver.update_phi(hyper, state, np.uint64(derive(key, PHI)))
    by_cell = cells and hyper.alpha > 0.0  # at α = 0 a case has one label, and moves as a whole
    moved = rows.update_z(driver.tables, np.uint64(derive(key, ROW)), by_cell)
    np.add(state.n_sv, moved.delta, out=state.n_sv)
    state.n_rows[:] = moved.n_rows
    return driver.update_p_omega(hyper, state, candidates, key, then=then, draw_p=draw_p), moved


def sweep_collapsed(
    driver: Driver,
    rows: CpuRows,
    candidates: Candidates,
    hyper: Hyper,
    state: State,
    key: np.uint64,
    cells: bool = True,
    then: np.uint64 | None = None,
    draw_p: bool = True,
) -> tuple[float, Moved]:
    """The paper's sampler: z cell by cell with φ integrated out, then p | ω and ω | p. Returns (log joint, what moved)."""
    n_sj = np.add.reduceat(state.n_sv, driver.book.offset[:-1])
    moved = Moved.none(len(state.n_sv), len(state.p), state.n_rows.shape[1] - 1)
    rows.labels()  # every cell has its own here
    row_key = np.uint64(derive(key, ROW))

    def work(scratch: Scratch, *_: int) -> None:
        scratch.tally.clear()
        weights = make_weights(driver.book, len(state.p))
        update_z_collapsed(rows.block, driver.book, hyper, state, n_sj, row_key, scratch, weights)

    driver.threads.each([(0, rows.block.size)], work, lambda scratch: moved.add(scratch.tally))
    rows.put_labels(rows.z)
    state.n_rows[:] = moved.n_rows
    return driver.update_p_omega(hyper, state, candidates, key, blocked=False, draw_p=draw_p), moved


sweeps: dict[str, Callable[..., tuple[float, Moved]]] = {"rows": sweep_rows, "collapsed": sweep_collapsed}
