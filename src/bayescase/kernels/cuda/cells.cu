// The rows of a chain on a GPU: candidates scored, labels drawn given φ, memberships averaged. See kernels/cpu for the same in
// Python; names, random numbers and the order of every sum are those of that code, so that both draw the same integers.
// cells.cu, single.cu, several.cu and sweep.cu, one after the other, are one text. A C++ compiler takes it as a program of one
// thread, and tests without a GPU run it so.
//
// Given by whoever compiles: S labels, LANES (S in sixteens), STRIDE of a table in shared memory, RAGGED rows of any length,
// GAPS if cells are missing, CODE_BITS of a packed code, LABEL of a cell, SHARED_TABLE, SHARED_LEAVE, SHARED_COUNTS, SHARED_PAIRS,
// SHARED_ROWS if these fit into shared memory, and EXP, the coefficients of `exp_lanes`. Compile without fused multiply-add.

typedef unsigned long long u64;
typedef long long i64;

#ifdef __CUDACC__
#define HD __host__ __device__ __forceinline__
#define APART __host__ __device__ __noinline__  // rare: a copy in every place would crowd the instruction cache
#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define CROWDED_KERNEL extern "C" __global__ void __launch_bounds__(256, 8)  // as many blocks at a time as there can be
#define FIRST ((i64)blockIdx.x * blockDim.x + threadIdx.x)
#define STEP ((i64)gridDim.x * blockDim.x)
#define LOCAL_FIRST ((int)threadIdx.x)
#define LOCAL_STEP ((int)blockDim.x)
#define LANE ((int)threadIdx.x & 31)
#define WARP_SIZE 32
#define BLOCK ((int)blockIdx.x)
#define BLOCKS ((int)gridDim.x)
#define SHARED_MEMORY extern __shared__ __align__(16) char shared_memory[];
#define INFINITE (-__longlong_as_double(0x7ff0000000000000LL))
__device__ __forceinline__ void barrier() { __syncthreads(); }
__device__ __forceinline__ void rejoin() { __syncwarp(); }
__device__ __forceinline__ int lowest(unsigned bits) { return __ffs(bits) - 1; }
__device__ __forceinline__ int lowest(u64 bits) { return __ffsll((i64)bits) - 1; }
__device__ __forceinline__ unsigned votes(bool mine) { return __ballot_sync(0xffffffffu, mine); }
__device__ __forceinline__ int before_me(unsigned votes) { return __popc(votes & ((1u << (threadIdx.x & 31)) - 1)); }
__device__ __forceinline__ int count_of(u64 bits) { return __popcll(bits); }
__device__ __forceinline__ int from_lane(int value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }
template <typename T> __device__ __forceinline__ T bump(T *at, T by) { return atomicAdd(at, by); }
__device__ __forceinline__ bool take_lock(int *lock) { return atomicCAS(lock, 0, 1) == 0; }
__device__ __forceinline__ void give_lock(int *lock) { __threadfence_block(); atomicExch(lock, 0); }
__device__ __forceinline__ void publish() { __threadfence(); }
__device__ __forceinline__ u64 warp_sum(u64 value) {
    for (int k = 16; k > 0; k /= 2) value += __shfl_xor_sync(0xffffffffu, value, k);
    return (threadIdx.x & 31) == 0 ? value : 0;
}
#else
#include <cmath>
using namespace std;
#define HD inline
#define APART inline
#define KERNEL extern "C" void
#define CROWDED_KERNEL KERNEL
#define FIRST ((i64)0)
#define STEP ((i64)1)
#define LOCAL_FIRST 0
#define LOCAL_STEP 1
#define LANE 0
#define WARP_SIZE 1
#define BLOCK 0
#define BLOCKS 1
#define SHARED_MEMORY alignas(16) static thread_local char shared_memory[1 << 22];
#define INFINITE (-HUGE_VAL)
static void barrier() {}
static void rejoin() {}
static int lowest(unsigned bits) { return __builtin_ctz(bits); }
static int lowest(u64 bits) { return __builtin_ctzll(bits); }
static unsigned votes(bool mine) { return mine; }
static int before_me(unsigned) { return 0; }
static int count_of(u64 bits) { return __builtin_popcountll(bits); }
static int from_lane(int value, int) { return value; }
template <typename T> static T bump(T *at, T by) { T before = *at; *at += by; return before; }
static bool take_lock(int *) { return true; }
static void give_lock(int *) {}
static void publish() {}
static u64 warp_sum(u64 value) { return value; }
#endif

const int WIDTH = 16, TILE = 32;
const double GUMBEL_MAX = 36.8, TOO_LARGE = 1e37;
const int CODES = 32 / CODE_BITS;  // in a word
const unsigned MASK = (unsigned)((1ull << CODE_BITS) - 1);

struct alignas(16) Quad { float at[4]; };
struct alignas(16) Bases { int at[4]; };
struct Moved { u64 cells, rows, purity, listed; };

// --- random numbers: kernels/rng.py ------------------------------------------------------------------------------------------

HD u64 derive(u64 key, u64 i) {
    u64 h = key + (i + 1) * 0x9E3779B97F4A7C15ull;
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ull;
    h = (h ^ (h >> 27)) * 0x94D049BB133111EBull;
    return h ^ (h >> 31);
}

HD double uniform(u64 key, u64 i) { return (double)(derive(key, i) >> 11) * (1.0 / 9007199254740992.0); }

// --- leaf formulas: model.py, kernels/cpu/lanes_math.py ------------------------------------------------------------------------

HD double row_weight(double a, double n_is, double phi) { return (a + n_is) * phi; }

HD float exp_lane(float x) {
    const float c[7] = EXP;
    const bool low = x < -87.0f;
    x = x > 88.0f ? 88.0f : low ? 0.0f : x;
    const float n = (x * 1.4426950408889634f + 12582912.0f) - 12582912.0f;
    const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    union { float value; int bits; } power;
    power.value = c[6];
#pragma unroll
    for (int k = 5; k >= 0; k--) power.value = power.value * r + c[k];
    power.bits += (int)n << 23;
    return low ? 0.0f : power.value;
}

HD float total(const float *v) {  // of sixteen lanes, halves added to halves
    float eight[8], four[4];
#pragma unroll
    for (int k = 0; k < 8; k++) eight[k] = v[k] + v[k + 8];
#pragma unroll
    for (int k = 0; k < 4; k++) four[k] = eight[k] + eight[k + 4];
    return (four[0] + four[2]) + (four[1] + four[3]);
}

// --- the cells of a row ----------------------------------------------------------------------------------------------------------

#if RAGGED
typedef int Packed;  // a global code, -1 if missing
#else
typedef unsigned Packed;  // CODES codes of a row, feature by feature
#endif

struct Data {
    const Packed *x;  // ragged: all codes; else word w of row i at w · n + i
    const i64 *first;  // ragged: first cell of each row
    const int *base;  // of each feature, four at a time: its row of a table is base + code; of padding 0
    const int *observed;  // cells of each row that are not missing; unless every row has `width` of them
    i64 n;
    int width;
};

struct Cells {
    const Packed *x;
    const int *base;
    i64 step;
    int size;

    // Row of a table that cell j is at; 0 if it is missing.
    HD int row(int j) const {
#if RAGGED
        return x[j] + 1;
#else
        const unsigned code = (x[(j / CODES) * step] >> (j % CODES * CODE_BITS)) & MASK;
        return place(base[j], code);
#endif
    }

    HD static int place(int base, unsigned code) { return GAPS && code == 0 ? 0 : base + (int)code; }

    // Rows of four cells from j on, a multiple of four.
    HD void rows(int j, int *at) const {
#if !RAGGED
        const Bases b = *(const Bases *)(base + j);
#pragma unroll
        for (int w = 0; w < 4 / CODES; w++) {
            const unsigned word = x[(j / CODES + w) * step];
#pragma unroll
            for (int q = 0; q < CODES; q++)
                at[w * CODES + q] = place(b.at[w * CODES + q], (word >> (q * CODE_BITS)) & MASK);
        }
#endif
    }
};

#define DATA_ARGS const Packed *x_, const i64 *first_, const int *base_, const int *observed_, i64 n_, int width_
#define DATA_HERE const Data data{x_, first_, base_, observed_, n_, width_};

HD Cells cells_of(const Data &data, const int *base, i64 i) {
#if RAGGED
    return Cells{data.x + data.first[i], base, 1, (int)(data.first[i + 1] - data.first[i])};
#else
    return Cells{data.x + i, base, data.n, data.width};
#endif
}

HD i64 first_cell(const Data &data, i64 i) { return RAGGED ? data.first[i] : i * data.width; }

HD int observed(const Data &data, i64 i) { return GAPS || RAGGED ? data.observed[i] : data.width; }

// --- sums over cells: kernels/cpu/sums.py ------------------------------------------------------------------------------------------

HD constexpr int tile_of() { return RAGGED || LANES <= 2 * WIDTH ? TILE : TILE / 2; }
HD constexpr bool in_pairs(int s) { return !RAGGED && s >= LANES / (4 * WIDTH) * (4 * WIDTH); }

template <int S0> HD void add_row(float *sum, const float *from) {
#pragma unroll
    for (int q = 0; q < WIDTH && S0 + q < S; q += 4) {
        const Quad part = *(const Quad *)(from + q);
#pragma unroll
        for (int k = q; k < q + 4 && S0 + k < S; k++) sum[k] += part.at[k - q];
    }
}

// sum[k] = Σ_j table[x_j, S0 + k]: float32 within a tile of cells, float64 across tiles.
template <int S0, int ROW> HD void chunk_sums(const Cells &x, const float *table, double *sum) {
#pragma unroll
    for (int k = 0; k < WIDTH; k++) sum[k] = 0.0;
    for (int j0 = 0; j0 < x.size; j0 += tile_of()) {
        float a[WIDTH] = {}, b[WIDTH] = {};
        const int end = j0 + tile_of() < x.size ? j0 + tile_of() : x.size;
#if RAGGED
        for (int j = j0; j < end; j++) add_row<S0>(a, table + (i64)x.row(j) * ROW + S0);
#else
#pragma unroll 2
        for (int j = j0; j < end; j += 4) {
            int at[4];
            x.rows(j, at);
#pragma unroll
            for (int q = 0; q < 4; q++) add_row<S0>(in_pairs(S0) && q % 2 ? b : a, table + at[q] * ROW + S0);
        }
#endif
#pragma unroll
        for (int k = 0; k < WIDTH; k++) sum[k] += (double)(in_pairs(S0) ? a[k] + b[k] : a[k]);
    }
}

// The same for one label.
template <int ROW> HD double label_sum(const Cells &x, const float *table, int s) {
    const bool two = in_pairs(s);
    double sum = 0.0;
    for (int j0 = 0; j0 < x.size; j0 += tile_of()) {
        float a = 0.0f, b = 0.0f;
        const int end = j0 + tile_of() < x.size ? j0 + tile_of() : x.size;
#if RAGGED
        for (int j = j0; j < end; j++) a += table[(i64)x.row(j) * ROW + s];
#else
        for (int j = j0; j < end; j += 4) {
            int at[4];
            x.rows(j, at);
            float part[4];
#pragma unroll
            for (int q = 0; q < 4; q++) part[q] = table[at[q] * ROW + s];
            a += part[0];
            if (two) b += part[1]; else a += part[1];
            a += part[2];
            if (two) b += part[3]; else a += part[3];
        }
#endif
        sum += (double)(two ? a + b : a);
    }
    return sum;
}

