// --- rows with one label: kernels/cpu/relabel.py -------------------------------------------------------------------------------

// acc[k] += exp(w_s − w_own) over the labels s = S0 + k.
template <int S0, int ROW>
HD void weigh(const Cells &x, int own, const float *log_phi, const double *rise, double own_weight, float *acc) {
    double sum[WIDTH];
    chunk_sums<S0, ROW>(x, log_phi, sum);
#pragma unroll
    for (int k = 0; k < WIDTH && S0 + k < S; k++)
        acc[k] += S0 + k == own ? 0.0f : exp_lane((float)((sum[k] + rise[S0 + k]) - own_weight));
    if constexpr (S0 + WIDTH < S) weigh<S0 + WIDTH, ROW>(x, own, log_phi, rise, own_weight, acc);
}

// The label that owns r < Σ exp(w_s − w_own), one label after the other.
template <int ROW>
APART int pick_label(const Cells x, const float *log_phi, const double *rise, double own_weight, int own, double r) {
    int last = own;
    for (int s = 0; s < S; s++) {
        if (s == own) continue;
        const float e = exp_lane((float)((label_sum<ROW>(x, log_phi, s) + rise[s]) - own_weight));
        if (e > 0.0f) {
            last = s;
            r -= e;
            if (r < 0.0) return s;
        }
    }
    return last;
}

// A row whose own label is hopeless: everything anew, with the largest term as 1.
template <int ROW> APART int weigh_again(const Cells x, const float *log_phi, const double *rise, int own, double u) {
    double top = INFINITE, leave = 0.0;
    for (int s = 0; s < S; s++)
        if (s != own) top = fmax(top, label_sum<ROW>(x, log_phi, s) + rise[s]);
    for (int s = 0; s < S; s++)
        if (s != own) leave += (float)exp(label_sum<ROW>(x, log_phi, s) + rise[s] - top);
    double r = u * (leave + exp(label_sum<ROW>(x, log_phi, own) + rise[own] - top));
    if (!(r < leave)) return own;
    int last = own;
    for (int s = 0; s < S; s++) {
        const float e = s == own ? 0.0f : (float)exp(label_sum<ROW>(x, log_phi, s) + rise[s] - top);
        if (e > 0.0f) {
            last = s;
            r -= e;
            if (r < 0.0) return s;
        }
    }
    return last;
}

// --- rows that stay ----------------------------------------------------------------------------------------------------------------
// What a label lacks against the best one of a value is written as a byte, rounded down: four labels are summed by one addition.
// That bounds the weights of the other labels; with u at hand, most rows are seen to stay where they are without them.

const int MOST_UNITS = 5, PREFIX = 48, ALMOST_PREFIX = 64;  // PREFIX · MOST_UNITS < 256
const int COST_WORDS = (S + 3) / 4, COST_ROW = 4 * ((COST_WORDS + 3) / 4 + 1 - (COST_WORDS + 3) / 4 % 2);  // in words
const double LACK = 0.5;  // a unit, in nats

struct alignas(16) Words { unsigned at[4]; };

HD constexpr bool by_bytes() { return S <= 64 && SHARED_TABLE && !GAPS && !RAGGED; }

// What a value of at most 0 lacks, in units, rounded down.
HD unsigned in_units(float value, double unit) {
    const double units = -0.999 * (double)value / unit;
    return units < MOST_UNITS ? (unsigned)units : (unsigned)MOST_UNITS;
}

// What four labels from 4 · w on lack.
HD unsigned lack_word(const float *log_phi, int w) {
    unsigned word = 0;
    for (int k = 0; k < 4 && 4 * w + k < S; k++) word |= in_units(log_phi[4 * w + k], LACK) << (8 * k);
    return word;
}

// sum, four labels to a word, over the first cells of a row.
HD void cost_sums(const Cells &x, const unsigned *costs, unsigned *sum) {
    const int end = x.size < PREFIX ? x.size : PREFIX;
#pragma unroll 2
    for (int j = 0; j < end; j += 4) {
        int at[4];
        x.rows(j, at);
#pragma unroll
        for (int q = 0; q < 4; q++)
#pragma unroll
            for (int w = 0; w < COST_WORDS; w += 4) {
                const Words part = *(const Words *)(costs + at[q] * COST_ROW + w);
#pragma unroll
                for (int k = 0; k < 4 && w + k < COST_WORDS; k++) sum[w + k] += part.at[k];
            }
    }
}

// Is Σ exp(w_s − w_own) < u for certain? Then the row stays: u (1 + Σ) is not below Σ.
template <int ROW>
HD bool stays(const Cells &x, const float *log_phi, const unsigned *costs, const double *rise, int own, double u) {
    unsigned sum[COST_WORDS] = {};
    cost_sums(x, costs, sum);
    const double own_weight = label_sum<ROW>(x, log_phi, own) + rise[own];
    const float bound = (float)own_weight + logf((float)u) - logf((float)S) - 0.2f;  // more than rounding may add
    bool low = true;
#pragma unroll
    for (int s = 0; s < S; s++)
        low &= s == own || (float)rise[s] - (float)LACK * (float)(sum[s / 4] >> (s % 4 * 8) & 255) < bound;
    return low;
}

// The label that a row with one label takes: ∝ Π φ, times the prior of its size.
template <int ROW> HD int relabel_row(const Cells &x, const float *log_phi, const double *rise, int own, double u) {
    float acc[WIDTH] = {};
    double own_weight = 0.0;
    if constexpr (S <= WIDTH) {  // all sums are at hand at once
        double sum[WIDTH];
        chunk_sums<0, ROW>(x, log_phi, sum);
#pragma unroll
        for (int s = 0; s < S; s++) own_weight = s == own ? sum[s] + rise[s] : own_weight;
#pragma unroll
        for (int s = 0; s < S; s++) acc[s] = s == own ? 0.0f : exp_lane((float)((sum[s] + rise[s]) - own_weight));
    } else {
        own_weight = label_sum<ROW>(x, log_phi, own) + rise[own];
        weigh<0, ROW>(x, own, log_phi, rise, own_weight, acc);
    }
    const double leave = (double)total(acc);
    if (leave > TOO_LARGE) return weigh_again<ROW>(x, log_phi, rise, own, u);
    double r = u * (leave + 1.0);
    if (!(r < leave)) return own;
    if constexpr (S > WIDTH) return pick_label<ROW>(x, log_phi, rise, own_weight, own, r);
    int b = own, last = own;
#pragma unroll
    for (int s = 0; s < (S <= WIDTH ? S : 0); s++)
        if (acc[s] > 0.0f && b == own) {
            last = s;
            r -= acc[s];
            if (r < 0.0) b = s;
        }
    return b != own ? b : last;
}

// Σ_j ν_j with ν = Σ_{t ≠ own} a_t φ_t(x_j) / φ_own(x_j); a cell leaves with probability ν / (n + ν).
HD float leave_sum(const Cells &x, const float *leave) {
    float a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;
#if RAGGED
    int j = 0;
    for (; j < x.size - 3; j += 4) {
        a += leave[x.row(j)];
        b += leave[x.row(j + 1)];
        c += leave[x.row(j + 2)];
        d += leave[x.row(j + 3)];
    }
    for (; j < x.size; j++) a += leave[x.row(j)];
#else
    const int whole = x.size / 4 * 4;
#pragma unroll 4
    for (int j = 0; j < whole; j += 4) {
        int at[4];
        x.rows(j, at);
        a += leave[at[0]];
        b += leave[at[1]];
        c += leave[at[2]];
        d += leave[at[3]];
    }
    for (int j = whole; j < x.size; j++) a += leave[x.row(j)];
#endif
    return a + b + c + d;
}
