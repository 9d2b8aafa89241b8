// --- labels given φ: kernels/cpu/rows.py ------------------------------------------------------------------------------------------

// A table of V + 1 rows in shared memory, at a stride that keeps neighbouring rows in different banks.
HD void copy_table(float *to, const float *from, int n_rows) {
    for (int e = LOCAL_FIRST; e < n_rows * STRIDE; e += LOCAL_STEP) {
        const int row = e / STRIDE, s = e % STRIDE;
        to[e] = s < LANES ? from[row * LANES + s] : 0.0f;
    }
}

// Rows with one label: relabel moves of the whole row; if a cell leaves, the row is listed, as are rows with several labels.
KERNEL update_single(DATA_ARGS, TABLES_ARGS, i64 number, int n_values, short *one, const short *held, int by_cell, u64 key,
                     int *delta, int *n_rows, int *main, Moved *moved, unsigned *list) {
    DATA_HERE
    TABLES_HERE
    SHARED_MEMORY
    char *memory = shared_memory;
    const float *log_phi = tables.log_phi, *leave = tables.leave;
    const int *base = data.base;
    int *counts = n_rows;
    if (SHARED_TABLE) {
        copy_table((float *)memory, tables.log_phi, n_values + 1);
        log_phi = (const float *)memory;
        memory += (i64)(n_values + 1) * STRIDE * sizeof(float);
    }
    if (!RAGGED) {
        const int padded = (data.width + 3) / 4 * 4;
        for (int j = LOCAL_FIRST; j < padded; j += LOCAL_STEP) ((int *)memory)[j] = data.base[j];
        base = (const int *)memory;
        memory += padded * sizeof(int);
    }
    if (SHARED_LEAVE) {
        for (int e = LOCAL_FIRST; e < S * (n_values + 1); e += LOCAL_STEP) ((float *)memory)[e] = tables.leave[e];
        leave = (const float *)memory;
        memory += (i64)S * (n_values + 1) * sizeof(float);
    }
    if (SHARED_COUNTS) {
        counts = (int *)memory;
        for (int e = LOCAL_FIRST; e < S * (data.width + 1); e += LOCAL_STEP) counts[e] = 0;
        memory += (i64)S * (data.width + 1) * sizeof(int);
    }
    const int ROW = SHARED_TABLE ? STRIDE : LANES;
    const bool short_cut = by_bytes() && data.width <= ALMOST_PREFIX;
    unsigned *costs = (unsigned *)(shared_memory + (memory - shared_memory + 15) / 16 * 16);
    if (short_cut) {
        barrier();
        for (int e = LOCAL_FIRST; e < (n_values + 1) * COST_ROW; e += LOCAL_STEP)
            costs[e] = lack_word(log_phi + e / COST_ROW * ROW, e % COST_ROW);
    }
    barrier();
    u64 relabelled = 0, noted = 0;
    for (i64 i = FIRST; i < data.n; i += STEP) {
        int own = one[i];
        if (own < 0) {
            list[bump(&moved->listed, (u64)1)] = (unsigned)i;
            continue;
        }
        const int n = observed(data, i);
        if (n == 0) continue;
        if (!held || held[i] < 0) {
            const Cells x = cells_of(data, base, i);
            const u64 row_key = derive(key, (u64)(number + i));
            const double u = uniform(row_key, x.size), *rise = tables.rise + (i64)n * LANES;
            int b = own;
            if (!short_cut || !stays<ROW>(x, log_phi, costs, rise, own, u)) b = relabel_row<ROW>(x, log_phi, rise, own, u);
            if (b != own) {
                for (int j = 0; j < x.size; j++) {
                    const int v = x.row(j);
                    if (v == 0) continue;
                    bump(delta + (i64)(v - 1) * S + own, -1);
                    bump(delta + (i64)(v - 1) * S + b, 1);
                }
                one[i] = (short)(own = b);
                relabelled++;
            }
            if (by_cell) {
                const double others = row_weight(tables.a[own], n - 1.0, 1.0), u = uniform(row_key, 0);
                if (!(u * others >= (double)leave_sum(x, leave + (i64)own * (n_values + 1)))) {
                    list[bump(&moved->listed, (u64)1)] = (unsigned)i;
                    continue;
                }
            }
        }
        noted++;
        bump(counts + own * (data.width + 1) + n, 1);
        if (!SHARED_COUNTS) bump(main + own, 1);
    }
    relabelled = warp_sum(relabelled), noted = warp_sum(noted);
    if (relabelled) bump(&moved->rows, relabelled);
    if (noted) bump(&moved->purity, noted << 32);
    if (SHARED_COUNTS) {
        barrier();
        for (int e = LOCAL_FIRST; e < S * (data.width + 1); e += LOCAL_STEP)
            if (counts[e]) {
                bump(n_rows + e, counts[e]);
                bump(main + e / (data.width + 1), counts[e]);
            }
    }
}

// The listed rows, each by a warp: relabel moves of those with several labels, and cell moves.
CROWDED_KERNEL update_listed(DATA_ARGS, TABLES_ARGS, i64 number, int n_values, LABEL *z, short *one, const short *held, int by_cell,
                     u64 key, int *delta, int *n_rows, int *main, Moved *moved, const unsigned *list, char *memory) {
    DATA_HERE
    TABLES_HERE
    SHARED_MEMORY
    const i64 warp = FIRST / WARP_SIZE, listed = (i64)moved->listed;
    char *mine = SHARED_ROWS ? shared_memory + LOCAL_FIRST / WARP_SIZE * Row::bytes(data.width) : memory + warp * Row::bytes(data.width);
    Row row(mine, data.width);
    u64 cells = 0, rows = 0, purity = 0;
    for (i64 l = warp; l < listed; l += STEP / WARP_SIZE) {
        const i64 i = list[l];
        const int own = one[i], n_i = observed(data, i);
        row.key = derive(key, (u64)(number + i));
        row.take(data, z, i, own);
        if (own >= 0) {
            move_one_label(row, own, n_i, tables, n_values);
        } else {
            row.find_labels(n_i);
            if (!held || held[i] < 0) {
                if (row.k < S) rows += relabel_groups(row, tables);
                if (by_cell) move_cells(row, 0, tables);
            }
        }
        row.give_back(data, z, i, delta);
        if (row.moved) row.sort_used();
        u64 most = 0;
        int b = 0;
        for (int t = 0; t < row.k; t++)
            if ((u64)row.n[row.used[t]] > most) {
                b = row.used[t];
                most = (u64)row.n[b];
            }
        for (int t = LANE; t < row.k; t += WARP_SIZE) bump(n_rows + (i64)row.used[t] * (data.width + 1) + row.n[row.used[t]], 1);
        if (LANE == 0) {
            if (row.moved) one[i] = row.k == 1 ? row.used[0] : (short)-1;
            bump(main + b, 1);
        }
        cells += (u64)row.moved;
        purity += (most << 32) / (u64)n_i;
    }
    if (LANE == 0 && listed) {
        bump(&moved->cells, cells);
        bump(&moved->rows, rows);
        bump(&moved->purity, purity);
    }
}

// --- candidates -------------------------------------------------------------------------------------------------------------------

struct Weights {
    const double *top;  // (P, S) what a missing value takes from the score
    const double *log_weight;  // of row m and cluster s at m · by_row + s · by_cluster
    i64 by_row;
    int by_cluster;
    HD double of(i64 m, int s) const { return log_weight[m * by_row + s * by_cluster]; }
};

struct Best {
    volatile double *score;
    volatile i64 *row;
    int *lock;

    // Can candidate m, of log weight w, be the best of cluster s? Gumbel noise is at most −log(1 − u).
    HD bool hopeful(double w, int s, u64 row_key) const {
        const float more = (float)(9007199254740992ull - (derive(row_key, (u64)s) >> 11)) * 1.1102230246251565e-16f;
        return (float)(score[s] - w) < 0.01f - logf(more);
    }

    APART void consider(double w, i64 m, int s, u64 row_key) const {
        offer(w - log(-log(uniform(row_key, (u64)s))), m, s);
    }

    APART void offer(double w, i64 m, int s) const {
        if (!(w >= score[s])) return;
        for (bool done = false; !done;) {
            if (take_lock(lock + s)) {
                if (w > score[s] || (w == score[s] && m < row[s])) {
                    score[s] = w;
                    row[s] = m;
                }
                give_lock(lock + s);
                done = true;
            }
        }
    }
};

HD double missing(const Cells &x, const double *top, int s, double w) {
    if (GAPS)
        for (int j = 0; j < x.size; j++)
            if (x.row(j) == 0) w -= top[(i64)j * S + s];
    return w;
}

template <int S0, int ROW>
HD void score_row(const Cells &x, const float *adds, const Weights &weights, const Best &best, i64 m, u64 row_key) {
    double sum[WIDTH];
    chunk_sums<S0, ROW>(x, adds, sum);
    if (GAPS)
        for (int j = 0; j < x.size; j++)
            if (x.row(j) == 0)
#pragma unroll
                for (int k = 0; k < WIDTH && S0 + k < S; k++) sum[k] -= weights.top[(i64)j * S + S0 + k];
    const double common = weights.by_cluster ? 0.0 : weights.of(m, 0);
    unsigned near = 0;
#pragma unroll
    for (int k = 0; k < WIDTH && S0 + k < S; k++) {
        sum[k] += weights.by_cluster ? weights.of(m, S0 + k) : common;
        near |= (unsigned)(sum[k] + GUMBEL_MAX > best.score[S0 + k]) << k;
    }
    while (near) {  // few clusters of few candidates
        const int k = lowest(near);
        near &= near - 1;
        double w = sum[0];
#pragma unroll
        for (int c = 1; c < WIDTH && S0 + c < S; c++) w = c == k ? sum[c] : w;
        if (best.hopeful(w, S0 + k, row_key)) best.consider(w, m, S0 + k, row_key);
    }
    rejoin();
    if constexpr (S0 + WIDTH < S) score_row<S0 + WIDTH, ROW>(x, adds, weights, best, m, row_key);
}

// --- candidates that can be given up ---------------------------------------------------------------------------------------------
// A value adds nothing above 0 to the log weight of a candidate. What it lacks is written as a byte, rounded down, in units such
// that a candidate with more than ENOUGH of them cannot be the best, whatever its noise: four clusters are summed by one addition.

const int ENOUGH = 20;

// What row v of the table lacks, four clusters from 4 · w on.
HD unsigned cost_word(const float *adds, const volatile double *score, double most, int w) {
    unsigned word = 0;
    for (int k = 0; k < 4 && 4 * w + k < S; k++) {
        const double unit = fmax((GUMBEL_MAX + 1.0 + most - score[4 * w + k]) / ENOUGH, 1e-3);
        word |= in_units(adds[4 * w + k], unit) << (8 * k);
    }
    return word;
}

// Bit s: can this candidate be the best of cluster s?
HD u64 worth_a_look(const Cells &x, const unsigned *costs) {
    unsigned sum[COST_WORDS] = {};
    cost_sums(x, costs, sum);
    u64 found = 0;
#pragma unroll
    for (int s = 0; s < S; s++) found |= (u64)((sum[s / 4] >> (s % 4 * 8) & 255) <= ENOUGH) << s;
    return found;
}

template <int ROW>
HD void score_few(const Cells &x, const float *adds, const unsigned *costs, const Weights &weights, const Best &best, i64 m, u64 row_key) {
    u64 few = worth_a_look(x, costs);
    if (votes(count_of(few) > S / 3)) return score_row<0, ROW>(x, adds, weights, best, m, row_key);
    while (few) {
        const int s = lowest(few);
        few &= few - 1;
        const double w = label_sum<ROW>(x, adds, s) + weights.of(m, s);
        if (w + GUMBEL_MAX > best.score[s] && best.hopeful(w, s, row_key)) best.consider(w, m, s, row_key);
    }
    rejoin();
}

// The best candidate of each cluster, by log weight plus evidence plus Gumbel noise. `guess` are good ones, to begin with:
// n_guess for each cluster.
KERNEL score(DATA_ARGS, const double *top, const double *log_weight, i64 by_row, int by_cluster, double most, const float *all_adds,
             i64 number, int n_values, const i64 *guess, int n_guess, u64 key,
             double *block_score, i64 *block_row, double *score, i64 *row, unsigned *finished) {
    DATA_HERE
    const Weights weights{top, log_weight, by_row, by_cluster};
    SHARED_MEMORY
    char *memory = shared_memory;
    const Best best{(double *)memory, (i64 *)(memory + S * 8), (int *)(memory + S * 16)};
    memory += (S * 20 + 15) / 16 * 16;
    const int *base = data.base;
    const float *adds = all_adds;
    if (SHARED_TABLE) {
        copy_table((float *)memory, all_adds, n_values + 1);
        adds = (const float *)memory;
        memory += (i64)(n_values + 1) * STRIDE * sizeof(float);
    }
    if (!RAGGED) {
        const int padded = (data.width + 3) / 4 * 4;
        for (int j = LOCAL_FIRST; j < padded; j += LOCAL_STEP) ((int *)memory)[j] = data.base[j];
        base = (const int *)memory;
        memory += (padded * sizeof(int) + 15) / 16 * 16;
    }
    barrier();
    const int ROW = SHARED_TABLE ? STRIDE : LANES;
    for (int s = LOCAL_FIRST; s < S; s += LOCAL_STEP) {
        best.score[s] = INFINITE;
        best.row[s] = guess[s];
        best.lock[s] = 0;
    }
    barrier();
    for (int e = LOCAL_FIRST; e < n_guess * S; e += LOCAL_STEP) {
        const int s = e % S;
        const i64 m = guess[e];
        const Cells x = cells_of(data, base, m);
        const double w = missing(x, weights.top, s, label_sum<ROW>(x, adds, s)) + weights.of(m, s);
        best.consider(w, m, s, derive(key, (u64)(number + m)));
    }
    barrier();
    unsigned *costs = (unsigned *)memory;
    const bool by_costs = by_bytes() && (S > WIDTH || data.width <= ALMOST_PREFIX);  // few clusters of many cells: sums are as fast
    if (by_costs) {
        for (int e = LOCAL_FIRST; e < (n_values + 1) * COST_ROW; e += LOCAL_STEP)
            costs[e] = cost_word(adds + e / COST_ROW * STRIDE, best.score, most, e % COST_ROW);
        barrier();
    }
    for (i64 at = FIRST; at - LANE < data.n; at += STEP) {  // all lanes of a warp: they rejoin
        const i64 m = at < data.n ? at : data.n - 1;
        const Cells x = cells_of(data, base, m);
        const u64 row_key = derive(key, (u64)(number + m));
        if (by_costs) score_few<ROW>(x, adds, costs, weights, best, m, row_key);
        else score_row<0, ROW>(x, adds, weights, best, m, row_key);
    }
    barrier();
    for (int s = LOCAL_FIRST; s < S; s += LOCAL_STEP) {
        block_score[BLOCK * S + s] = best.score[s];
        block_row[BLOCK * S + s] = best.row[s];
    }
    publish();
    barrier();
    if (LOCAL_FIRST == 0) best.lock[0] = bump(finished, 1u) == (unsigned)BLOCKS - 1;
    barrier();
    if (!best.lock[0]) return;
    publish();
    barrier();
    for (int s = LOCAL_FIRST; s < S; s += LOCAL_STEP) best.lock[s] = 0;
    barrier();
    for (int e = LOCAL_FIRST; e < BLOCKS * S; e += LOCAL_STEP)
        best.offer(*(volatile double *)(block_score + e), *(volatile i64 *)(block_row + e), e % S);
    barrier();
    for (int s = LOCAL_FIRST; s < S; s += LOCAL_STEP) {
        score[s] = best.score[s];
        row[s] = best.row[s];
    }
    if (LOCAL_FIRST == 0) *finished = 0;
}

// --- counts and means: kernels/cpu/means.py ---------------------------------------------------------------------------------------

KERNEL find_single(DATA_ARGS, const LABEL *z, short *one) {
    DATA_HERE
    for (i64 i = FIRST; i < data.n; i += STEP) {
        const Cells x = cells_of(data, data.base, i);
        const LABEL *labels = z + first_cell(data, i);
        int own = 0;
        bool seen = false, mixed = false;
        for (int j = 0; j < x.size; j++)
            if (x.row(j) > 0) {
                mixed |= seen && labels[j] != own;
                own = labels[j];
                seen = true;
            }
        one[i] = mixed ? (short)-1 : (short)own;
    }
}

KERNEL spell_out(DATA_ARGS, LABEL *z, const short *one) {
    DATA_HERE
    for (i64 i = FIRST; i < data.n; i += STEP) {
        if (one[i] < 0) continue;
        const Cells x = cells_of(data, data.base, i);
        LABEL *labels = z + first_cell(data, i);
        for (int j = 0; j < x.size; j++) labels[j] = (LABEL)one[i];
    }
}

KERNEL recount(DATA_ARGS, const LABEL *z, const short *one, int *n_sv, int *n_rows) {
    DATA_HERE
    for (i64 i = FIRST; i < data.n; i += STEP) {
        const Cells x = cells_of(data, data.base, i);
        const LABEL *labels = z + first_cell(data, i);
        int n[S];
        for (int s = 0; s < S; s++) n[s] = 0;
        for (int j = 0; j < x.size; j++) {
            const int v = x.row(j), s = one[i] < 0 ? (int)labels[j] : (int)one[i];
            if (v == 0) continue;
            bump(n_sv + (i64)(v - 1) * S + s, 1);
            n[s]++;
        }
        for (int s = 0; s < S; s++)
            if (n[s] > 0) bump(n_rows + (i64)s * (data.width + 1) + n[s], 1);
    }
}

HD int label_count(const Data &data, const LABEL *z, int own, i64 i, int s, int observed) {
    if (own >= 0) return own == s ? observed : 0;
    const Cells x = cells_of(data, data.base, i);
    const LABEL *labels = z + first_cell(data, i);
    int n = 0;
    for (int j = 0; j < x.size; j++) n += labels[j] == s && (!(GAPS || RAGGED) || x.row(j) > 0);
    return n;
}

// mean += weight (E[π | z] − mean), with E[π_is | z] = (a_s + n_is) / (α + n_i); label from[r] counts as r.
KERNEL add_memberships(DATA_ARGS, const LABEL *z, const short *one, double alpha, const double *a, const double *beta,
                       const int *from, double weight, float *mean) {
    DATA_HERE
    for (i64 e = FIRST; e < data.n * S; e += STEP) {
        const i64 i = e / S;
        const int s = from[e % S], n_i = observed(data, i);
        const double n = label_count(data, z, one[i], i, s, n_i);
        const double pi = n_i ? (a[s] + n) / (alpha + n_i) : beta[s];
        mean[e] = (float)(mean[e] + weight * (pi - mean[e]));
    }
}

// pairs[s, r] += Σ_i mean[i, r] n_is / n_i in units of 2⁻¹⁶, an integer: it adds up in any order. Rows with one label.
KERNEL overlap(DATA_ARGS, const LABEL *z, const short *one, const float *mean, u64 *pairs) {
    DATA_HERE
    SHARED_MEMORY
    unsigned *local = (unsigned *)shared_memory;
    const i64 rows = 1 << 13;  // at a time: no sum passes 2³²
    for (i64 i0 = (i64)BLOCK * rows; i0 < data.n; i0 += (i64)BLOCKS * rows) {
        const i64 end = i0 + rows < data.n ? i0 + rows : data.n;
        if (SHARED_PAIRS)
            for (int e = LOCAL_FIRST; e < S * S; e += LOCAL_STEP) local[e] = 0;
        barrier();
        for (i64 e = i0 * S + LOCAL_FIRST; e < end * S; e += LOCAL_STEP) {
            const i64 i = e / S;
            const unsigned share = (unsigned)((double)mean[e] * 65536.0 + 0.5);
            if (one[i] < 0 || share == 0 || observed(data, i) == 0) continue;
            if (SHARED_PAIRS) bump(local + one[i] * S + (int)(e % S), share);
            else bump(pairs + one[i] * S + (int)(e % S), (u64)share);
        }
        barrier();
        if (SHARED_PAIRS)
            for (int e = LOCAL_FIRST; e < S * S; e += LOCAL_STEP)
                if (local[e]) bump(pairs + e, (u64)local[e]);
        barrier();
    }
}

KERNEL list_mixed(i64 n, const short *one, u64 *listed, unsigned *list) {
    for (i64 i = FIRST; i < n; i += STEP)
        if (one[i] < 0) list[bump(listed, (u64)1)] = (unsigned)i;
}

// The same for the listed rows, which have several labels: a warp each.
KERNEL overlap_mixed(DATA_ARGS, const LABEL *z, const float *mean, const u64 *listed, const unsigned *list, u64 *pairs) {
    DATA_HERE
    SHARED_MEMORY
    int *n = (int *)shared_memory + LOCAL_FIRST / WARP_SIZE * LANES;
    unsigned *local = (unsigned *)shared_memory + (LOCAL_STEP + WARP_SIZE - 1) / WARP_SIZE * LANES;
    const bool near = SHARED_PAIRS && *listed / BLOCKS < 60000;  // no sum passes 2³²
    if (near)
        for (int e = LOCAL_FIRST; e < S * S; e += LOCAL_STEP) local[e] = 0;
    barrier();
    for (i64 l = FIRST / WARP_SIZE; l < (i64)*listed; l += STEP / WARP_SIZE) {
        const i64 i = list[l];
        const Cells x = cells_of(data, data.base, i);
        const LABEL *labels = z + first_cell(data, i);
        rejoin();
        for (int s = LANE; s < S; s += WARP_SIZE) n[s] = 0;
        rejoin();
        for (int j = LANE; j < x.size; j += WARP_SIZE)
            if (!(GAPS || RAGGED) || x.row(j) > 0) bump(n + labels[j], 1);
        rejoin();
        for (int r = LANE; r < S; r += WARP_SIZE) {
            const double unit = (double)mean[i * S + r] * 65536.0 / observed(data, i);
            for (int s = 0; s < S; s++) {
                const unsigned share = n[s] ? (unsigned)(unit * n[s] + 0.5) : 0;
                if (share == 0) continue;
                if (near) bump(local + s * S + r, share);
                else bump(pairs + s * S + r, (u64)share);
            }
        }
    }
    barrier();
    if (near)
        for (int e = LOCAL_FIRST; e < S * S; e += LOCAL_STEP)
            if (local[e]) bump(pairs + e, (u64)local[e]);
}
