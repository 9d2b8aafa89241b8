// --- new cases given φ: kernels/cpu/newcases.py ----------------------------------------------------------------------------------

// mean[i] += E[π_i | x_i, φ], by Gibbs sampling with π integrated out; exact at α = 0. A warp has one row.
CROWDED_KERNEL fold_in(DATA_ARGS, TABLES_ARGS, double alpha, const double *beta, int burn, int keep, u64 seed, double *mean,
                       char *memory) {
    DATA_HERE
    TABLES_HERE
    SHARED_MEMORY
    const i64 warp = FIRST / WARP_SIZE;
    char *mine = SHARED_ROWS ? shared_memory + LOCAL_FIRST / WARP_SIZE * Row::bytes(data.width) : memory + warp * Row::bytes(data.width);
    Row row(mine, data.width);
    for (i64 i = warp; i < data.n; i += STEP / WARP_SIZE) {
        const int n_i = observed(data, i);
        double *own_mean = mean + i * S;
        row.take(data, (const LABEL *)0, i, 0);
        for (int s = LANE; s < S; s += WARP_SIZE) row.sum[s] = sum_all(row, tables.log_phi, s) + tables.rise[(i64)n_i * LANES + s];
        rejoin();
        double top = INFINITE, total = 0.0;
        for (int s = 0; s < S; s++) top = fmax(top, row.sum[s]);
        rejoin();
        for (int s = LANE; s < S; s += WARP_SIZE) row.sum[s] = exp(row.sum[s] - top);
        rejoin();
        for (int s = 0; s < S; s++) total += row.sum[s];
        if (alpha == 0.0 || n_i == 0) {
            for (int s = LANE; s < S; s += WARP_SIZE) own_mean[s] += n_i ? row.sum[s] / total : beta[s];
            continue;
        }
        u64 key = (u64)row.size;
        for (int j = 0; j < row.size; j++) key = derive(key, (u64)row.row[j]);
        key = derive(seed, key);
        double r = uniform(key, 0) * total;
        int start = 0;
        for (int s = 0; s < S && r >= 0.0; s++)
            if (row.sum[s] > 0.0) {
                r -= row.sum[s];
                start = s;
            }
        rejoin();
        for (int j = LANE; j < row.size; j += WARP_SIZE) row.label[j] = (short)start;
        for (int t = 0; t < burn + keep; t++) {
            row.key = derive(key, (u64)(t + 1));
            rejoin();
            for (int s = LANE; s < LANES; s += WARP_SIZE) row.n[s] = 0;
            rejoin();
            row.find_labels(n_i);
            if (row.k < S) relabel_groups(row, tables);
            move_cells(row, 0, tables);
            if (t < burn) continue;
            for (int s = LANE; s < S; s += WARP_SIZE) own_mean[s] += (tables.a[s] + row.n[s]) / (alpha + n_i) / keep;
        }
    }
}
