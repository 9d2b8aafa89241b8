// --- rows with several labels ------------------------------------------------------------------------------------------------------
// A warp has one row. All its lanes run the same code; they share loops over cells and over labels, and what one lane finds the
// others read from the row's memory, after `rejoin`.

struct Tables {
    const float *phi, *log_phi, *smooth, *leave;
    const double *a, *rise;
};

#define TABLES_ARGS const float *phi_, const float *log_phi_, const float *smooth_, const float *leave_, const double *a_, const double *rise_
#define TABLES_HERE const Tables tables{phi_, log_phi_, smooth_, leave_, a_, rise_};

struct Row {
    int *row;  // of a table, of each cell; 0 if it is missing
    short *label, *before;  // of each cell: now, and when the row was taken up
    double *ratio;  // of each cell: the probability to stay, of rows with one label
    int *cut;  // of each cell, in the same memory: twice the bound of `move_cells_two`, plus 1 if a fresh label may be drawn
    double *sum;  // of each label
    float *e, *acc;  // of each lane, of sixteen
    int *n;  // of each label
    short *used, *was, *to;  // of each label
    u64 key;
    int size, k, moved;

    // Bytes that a row of at most `width` cells needs.
    HD static i64 bytes(int width) { return (i64)((width + 3) / 4 * 4) * 16 + LANES * 24 + WIDTH * 4; }

    HD Row(char *memory, int width) {
        const int cells = (width + 3) / 4 * 4;
        ratio = (double *)memory;
        cut = (int *)memory;
        sum = ratio + cells;
        row = (int *)(sum + LANES);
        e = (float *)(row + cells);
        acc = e + LANES;
        n = (int *)(acc + WIDTH);
        label = (short *)(n + LANES);
        before = label + cells;
        used = before + cells;
        was = used + LANES;
        to = was + LANES;
    }

    // The cells of row i; `own` is its only label, -1 if there are several.
    HD void take(const Data &data, const LABEL *z, i64 i, int own) {
        const Cells x = cells_of(data, data.base, i);
        const LABEL *labels = z + first_cell(data, i);
        size = x.size;
        moved = 0;
        rejoin();
        for (int j = LANE; j < size; j += WARP_SIZE) {
            row[j] = x.row(j);
            label[j] = before[j] = (short)(own >= 0 ? own : (int)labels[j]);
        }
        for (int s = LANE; s < LANES; s += WARP_SIZE) n[s] = 0;
        rejoin();
    }

    // n_is, and the labels in use by first appearance.
    HD void find_labels(int observed) {
        for (int j = LANE; j < size; j += WARP_SIZE)
            if (row[j] > 0) bump(n + label[j], 1);
        rejoin();
        k = 0;
        for (int j = 0, seen = 0; seen < observed;) {  // the next cell with a label that is not yet known
            const int c = j + LANE;
            bool news = c < size && row[c] > 0;
            for (int t = 0; t < k && news; t++) news = used[t] != label[c];
            const unsigned found = votes(news);
            if (found == 0) {
                j += WARP_SIZE;
                continue;
            }
            j += lowest(found);
            seen += n[label[j]];
            put(used + k++, label[j]);
        }
    }

    // Rows of the cells with a label, to `cut`. Returns how many there are.
    HD int gather(int of) {
        int found = 0;
        rejoin();
        for (int j = 0; j < size; j += WARP_SIZE) {
            const int c = j + LANE;
            const bool mine = c < size && row[c] > 0 && label[c] == of;
            const unsigned those = votes(mine);
            if (mine) cut[found + before_me(those)] = row[c];
            found += count_of(those);
        }
        rejoin();
        return found;
    }

    template <typename T> HD void put(T *at, T value) {
        if (LANE == 0) *at = value;
        rejoin();
    }

    HD void drop_empty() {
        int kept = 0;
        for (int t = 0; t < k; t++)
            if (n[used[t]] > 0) {
                const short s = used[t];
                rejoin();
                put(used + kept++, s);
            }
        k = kept;
    }

    HD void sort_used() {
        k = 0;
        for (int s0 = 0; s0 < LANES; s0 += WARP_SIZE) {
            const int s = s0 + LANE;
            const bool mine = s < LANES && n[s] > 0;
            const unsigned those = votes(mine);
            if (mine) used[k + before_me(those)] = (short)s;
            k += count_of(those);
        }
        rejoin();
    }

    // Labels to z, and the change of counts.
    HD void give_back(const Data &data, LABEL *z, i64 i, int *delta) const {
        LABEL *labels = z + first_cell(data, i);
        rejoin();
        for (int j = LANE; j < size; j += WARP_SIZE) {
            labels[j] = (LABEL)label[j];
            if (row[j] == 0 || label[j] == before[j]) continue;
            bump(delta + (i64)(row[j] - 1) * S + before[j], -1);
            bump(delta + (i64)(row[j] - 1) * S + label[j], 1);
        }
    }
};

// Σ_j log φ_s(x_j) over all cells: as `label_sum`.
HD double sum_all(const Row &row, const float *log_phi, int s) {
    const bool two = in_pairs(s);
    double sum = 0.0;
    for (int j0 = 0; j0 < row.size; j0 += tile_of()) {
        float a = 0.0f, b = 0.0f;
        const int end = j0 + tile_of() < row.size ? j0 + tile_of() : row.size;
        int j = j0;
#pragma unroll 4
        for (; j + 1 < end; j += 2) {
            const float even = log_phi[(i64)row.row[j] * LANES + s], odd = log_phi[(i64)row.row[j + 1] * LANES + s];
            a += even;
            if (two) b += odd; else a += odd;
        }
        if (j < end) a += log_phi[(i64)row.row[j] * LANES + s];
        sum += (double)(two ? a + b : a);
    }
    return sum;
}

// The same over the n cells that were gathered: float32 within a tile of these.
HD double sum_part(const Row &row, const float *log_phi, int n, int s) {
    double sum = 0.0;
    for (int j0 = 0; j0 < n; j0 += TILE) {
        float a = 0.0f;
        for (int j = j0; j < n && j < j0 + TILE; j++) a += log_phi[(i64)row.cut[j] * LANES + s];
        sum += (double)a;
    }
    return sum;
}

// The label that owns r < Σ e, never the own one.
HD int pick(const float *e, int own, double r) {
    int last = own;
    for (int s = 0; s < S; s++)
        if (e[s] > 0.0f && s != own) {
            last = s;
            r -= e[s];
            if (r < 0.0) return s;
        }
    return last;
}

// The label that a group takes, whose log weights are in row.sum: its own or one that the row does not use.
HD int relabel_group(Row &row, const double *rise, int own, double u) {
    const double own_weight = row.sum[own] + rise[own];
    for (int s = LANE; s < LANES; s += WARP_SIZE)
        row.e[s] = s < S && row.n[s] == 0 ? exp_lane((float)((row.sum[s] + rise[s]) - own_weight)) : 0.0f;
    rejoin();
    for (int k = LANE; k < WIDTH; k += WARP_SIZE) {
        float acc = row.e[k];
        for (int s = k + WIDTH; s < LANES; s += WIDTH) acc += row.e[s];
        row.acc[k] = acc;
    }
    rejoin();
    double leave = (double)total(row.acc), stay = 1.0;
    if (leave > TOO_LARGE) {  // everything anew, with the largest term as 1
        double top = INFINITE;
        for (int s = 0; s < S; s++)
            if (row.n[s] == 0) top = fmax(top, row.sum[s] + rise[s]);
        rejoin();
        for (int s = LANE; s < S; s += WARP_SIZE) row.e[s] = row.n[s] == 0 ? (float)exp(row.sum[s] + rise[s] - top) : 0.0f;
        rejoin();
        leave = 0.0;
        for (int s = 0; s < S; s++) leave += row.e[s];
        stay = exp(row.sum[own] + rise[own] - top);
    }
    const double r = u * (leave + stay);
    return r < leave ? pick(row.e, own, r) : own;
}

// Each group of cells that share a label draws a new one. Returns whether any did.
HD int relabel_groups(Row &row, const Tables &tables) {
    int largest = 0, moved = 0;
    for (int t = 1; t < row.k; t++)
        if (row.n[row.used[t]] > row.n[row.used[largest]]) largest = t;
    rejoin();
    for (int t = LANE; t < row.k; t += WARP_SIZE) row.was[t] = row.used[t];
    rejoin();
    for (int t = 0; t < row.k; t++) {
        const int own = row.used[t], n = row.n[own];
        if (t == largest) {
            for (int s = LANE; s < S; s += WARP_SIZE) row.sum[s] = sum_all(row, tables.log_phi, s);
            for (int other = 0; other < row.k; other++) {
                if (other == largest) continue;
                const int cells = row.gather(row.was[other]);
                for (int s = LANE; s < S; s += WARP_SIZE) row.sum[s] -= sum_part(row, tables.log_phi, cells, s);
            }
        } else {
            const int cells = row.gather(row.was[t]);
            for (int s = LANE; s < S; s += WARP_SIZE) row.sum[s] = sum_part(row, tables.log_phi, cells, s);
        }
        rejoin();
        const double u = uniform(row.key, (u64)row.size + t);
        const int b = relabel_group(row, tables.rise + (i64)n * LANES, own, u);
        rejoin();
        if (LANE == 0) {
            row.to[own] = (short)b;
            row.n[own] = 0;
            row.n[b] = n;
            row.used[t] = (short)b;
        }
        rejoin();
        moved |= b != own;
    }
    if (moved) {
        for (int j = LANE; j < row.size; j += WARP_SIZE)
            if (row.row[j] > 0) row.label[j] = row.to[row.label[j]];
        rejoin();
    }
    return moved;
}

// --- single cells: kernels/cpu/cells.py ----------------------------------------------------------------------------------------------

HD int fresh_label(double r, int own, const float *phi, const double *a) {
    for (int s = 0; s < S; s++)
        if (s != own) {
            r -= row_weight(a[s], 0.0, phi[s]);
            if (r < 0.0) return s;
        }
    return own;
}

// The label that a cell draws: z_ij ∝ (a_s + n_is) φ_s(x_ij), labels in use and then the others.
HD int draw_label(const Row &row, int j, const Tables &tables) {
    const int v = row.row[j], own = row.label[j];
    const float *phi = tables.phi + (i64)v * LANES;
    const double smooth = tables.smooth[v];
    double others = 0.0;
    for (int t = 0; t < row.k; t++) {
        const int s = row.used[t];
        others += s != own ? row_weight(0.0, row.n[s], phi[s]) : 0.0;
    }
    double r = (double)(float)uniform(row.key, j) * (smooth + others + row_weight(0.0, row.n[own] - 1, phi[own]));
    if (r < smooth) return fresh_label(r, own, phi, tables.a);
    int b = own;
    if (r < smooth + others) {
        r -= smooth;
        for (int t = 0; t < row.k; t++) {
            const int s = row.used[t];
            if (s != own && row.n[s] > 0) {
                b = s;
                r -= row_weight(0.0, row.n[s], phi[s]);
                if (r < 0.0) break;
            }
        }
    }
    return b;
}

// One cell goes from label own to b.
HD void move_label(Row &row, int j, int own, int b) {
    const int there = row.n[b], left = row.n[own] - 1;
    int place = row.k;
    for (int t = 0; t < row.k; t++)
        if (row.used[t] == own) place = t;
    const short last = there == 0 ? (short)b : row.used[row.k - 1];
    rejoin();
    if (LANE == 0) {
        if (there == 0) row.used[row.k] = (short)b;
        if (left == 0) row.used[place] = last;
        row.n[own] = left;
        row.n[b] = there + 1;
        row.label[j] = (short)b;
    }
    rejoin();
    row.k += (there == 0) - (left == 0);
    row.moved++;
}

// The next cell from j on that takes another label does so. Until then no draw depends on another: each lane draws for a cell
// of its own. Returns the cell after it.
HD int move_next_cell(Row &row, int j, const Tables &tables) {
    for (; j < row.size; j += WARP_SIZE) {
        const int c = j + LANE;
        const bool there = c < row.size && row.row[c] > 0;
        const int mine = there ? draw_label(row, c, tables) : 0;
        const unsigned moves = votes(there && mine != row.label[c]);
        if (moves == 0) continue;
        const int first = lowest(moves), own = row.label[j + first], b = from_lane(mine, first);
        move_label(row, j + first, own, b);
        return j + first + 1;
    }
    return j;
}

// The next cell from j on that takes the other of two labels, s0 and its like, or perhaps a fresh one; n0 cells have s0.
HD int next_change(const Row &row, int j, int s0, int n0) {
    for (; j < row.size; j += WARP_SIZE) {
        const int c = j + LANE;
        bool changes = false;
        if (c < row.size && row.row[c] > 0) {
            const int own0 = row.label[c] == s0;
            changes = (row.cut[c] & 1) || (n0 - own0 > row.cut[c] >> 1) != own0;
        }
        const unsigned those = votes(changes);
        if (those) return j + lowest(those);
    }
    return j;
}

// The cells from j on of a row with two labels, until one takes another label. Returns the next cell.
HD int move_cells_two(Row &row, int j, const Tables &tables) {
    const int s0 = row.used[0], s1 = row.used[1], m = row.n[s0] + row.n[s1] - 1;
    const float others = (float)m;
    rejoin();
    for (int c = j + LANE; c < row.size; c += WARP_SIZE) {
        const float *phi = tables.phi + (i64)row.row[c] * LANES;
        const float u = (float)uniform(row.key, c), phi0 = phi[s0], phi1 = phi[s1], sigma = tables.smooth[row.row[c]];
        const float bound = (u * (sigma + others * phi1) - sigma) / ((1.0f - u) * phi0 + u * phi1);
        const int rare = u * (sigma + others * fminf(phi0, phi1)) < sigma;  // perhaps r < σ, a fresh label
        row.cut[c] = 2 * (int)floorf(fminf(fmaxf(bound, -1.0f), others)) + rare;
    }
    rejoin();
    int n0 = row.n[s0];
    for (;; j++) {
        j = next_change(row, j, s0, n0);
        if (j >= row.size) break;
        const int v = row.row[j], own0 = row.label[j] == s0, m0 = n0 - own0;
        int new0 = m0 > row.cut[j] >> 1;
        if (row.cut[j] & 1) {
            const float *phi = tables.phi + (i64)v * LANES;
            const float u = (float)uniform(row.key, j);
            const double sigma = tables.smooth[v];
            const double r = (double)u * (sigma + row_weight(0.0, m0, phi[s0]) + row_weight(0.0, m - m0, phi[s1]));
            if (r < sigma) {
                const int b = fresh_label(r, own0 ? s0 : s1, phi, tables.a);
                if (b != s0 && b != s1) {
                    rejoin();
                    if (LANE == 0) {
                        row.label[j] = (short)b;
                        row.n[s0] = m0;
                        row.n[s1] = m - m0;
                        row.n[b] = 1;
                        row.used[2] = (short)b;
                    }
                    rejoin();
                    row.k = 3;
                    row.drop_empty();
                    row.moved++;
                    return j + 1;
                }
                new0 = b == s0;
            }
        }
        n0 = m0 + new0;
        if (own0 != new0) {
            row.moved++;
            rejoin();  // all have read it
            if (LANE == 0) row.label[j] = (short)(own0 ? s1 : s0);
            rejoin();
        }
    }
    rejoin();
    if (LANE == 0) {
        row.n[s0] = n0;
        row.n[s1] = m + 1 - n0;
    }
    rejoin();
    row.drop_empty();
    return row.size;
}

HD void move_cells(Row &row, int j, const Tables &tables) {
    while (j < row.size) {
        if (row.k == 2) {
            j = move_cells_two(row, j, tables);
        } else {
            j = move_next_cell(row, j, tables);
        }
    }
}

// Cell moves of a row whose n cells have one label, one of which probably leaves it.
HD void move_one_label(Row &row, int own, int n, const Tables &tables, int n_values) {
    const double others = row_weight(tables.a[own], n - 1.0, 1.0), u = uniform(row.key, 0);
    const float *leave = tables.leave + (i64)own * (n_values + 1);
    for (int j = LANE; j < row.size; j += WARP_SIZE) row.ratio[j] = others / (others + (double)leave[row.row[j]]);
    row.k = 1;
    if (LANE == 0) {
        row.used[0] = (short)own;
        row.n[own] = n;
    }
    rejoin();
    double stayed = 1.0;
    int j = 0;
    for (; j < row.size; j++) {
        stayed *= row.ratio[j];
        if (u < 1.0 - stayed) break;
    }
    if (j == row.size) return;
    const float *phi = tables.phi + (i64)row.row[j] * LANES;
    for (int s = LANE; s < S; s += WARP_SIZE) row.e[s] = s == own ? 0.0f : (float)row_weight(tables.a[s], 0.0, phi[s]);
    rejoin();
    double total = 0.0;
    for (int s = 0; s < S; s++)
        if (s != own) total += row.e[s];
    const int b = pick(row.e, own, uniform(row.key, 2 * (u64)row.size + 1 + j) * total);
    rejoin();
    if (LANE == 0) {
        row.label[j] = (short)b;
        row.n[own] = n - 1;
        row.n[b] = 1;
        row.used[0] = (short)(n == 1 ? b : own);
        row.used[1] = (short)b;
    }
    rejoin();
    row.k = n == 1 ? 1 : 2;
    row.moved = 1;
    move_cells(row, j + 1, tables);
}
