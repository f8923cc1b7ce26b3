/* The speed of C for the three rules of the paper: what the jitted simulator is measured against.
 *
 * One file, no library but libm. cs-ucb-plain and cs-etc-plain are the paper's loops as written; cs-ucb and cs-etc are
 * incremental, as fast as we know how to write them: arms lie in cost order, only the pulled arm's bound is recomputed (ln T
 * is a constant), and while the choice does not move a round touches that arm alone; a move costs one pass over the arms.
 * CS-TS draws Beta variates as ratios of Marsaglia-Tsang gammas over a ziggurat normal. All use xoshiro256++ and Bernoulli
 * rewards.
 *
 * usage: floor POLICY ALPHA HORIZON RUNS < arms     (K, then K lines "mean cost", in cost order)
 * prints: nanoseconds per round, then the mean number of pulls of every arm
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct { uint64_t s[4]; } rng_t;

static inline uint64_t rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static inline uint64_t next(rng_t *r) {
    uint64_t *s = r->s, result = rotl(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0]; s[3] ^= s[1]; s[1] ^= s[2]; s[0] ^= s[3]; s[2] ^= t; s[3] = rotl(s[3], 45);
    return result;
}

static inline double uniform(rng_t *r) { return (double)(int64_t)(next(r) >> 11) * 0x1.0p-53; }

static void seed_rng(rng_t *r, uint64_t seed) { /* splitmix64 */
    for (int i = 0; i < 4; i++) {
        uint64_t z = (seed += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        r->s[i] = z ^ (z >> 31);
    }
}

/* Ziggurat normal, 128 blocks of equal area [Marsaglia2000] in the layout of [Doornik2005]. */
#define BLOCKS 128
#define TAIL 3.442619855899
#define AREA 9.91256303526217e-3
static double edge[BLOCKS + 1], ratio[BLOCKS];

static void make_ziggurat(void) {
    double f = exp(-0.5 * TAIL * TAIL);
    edge[0] = AREA / f;
    edge[1] = TAIL;
    edge[BLOCKS] = 0;
    for (int i = 2; i < BLOCKS; i++) {
        edge[i] = sqrt(-2 * log(AREA / edge[i - 1] + f));
        f = exp(-0.5 * edge[i] * edge[i]);
    }
    for (int i = 0; i < BLOCKS; i++) ratio[i] = edge[i + 1] / edge[i];
}

static inline double normal(rng_t *r) {
    for (;;) {
        uint64_t bits = next(r);
        int block = (int)(bits & (BLOCKS - 1));
        double u = (double)((int64_t)bits >> 11) * 0x1.0p-52;
        if (fabs(u) < ratio[block]) return u * edge[block];
        if (block == 0) {
            double x, y;
            do {
                x = -log(1 - uniform(r)) / TAIL;
                y = -log(1 - uniform(r));
            } while (y + y < x * x);
            return u < 0 ? -TAIL - x : TAIL + x;
        }
        double x = u * edge[block];
        double f0 = exp(-0.5 * (edge[block] * edge[block] - x * x));
        double f1 = exp(-0.5 * (edge[block + 1] * edge[block + 1] - x * x));
        if (f1 + uniform(r) * (f0 - f1) < 1.0) return x;
    }
}

static inline double gamma_variate(double shape, rng_t *r) { /* [Marsaglia2000b], shape >= 1 */
    double d = shape - 1.0 / 3.0, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = normal(r), v = 1 + c * x;
        if (v <= 0) continue;
        v = v * v * v;
        double u = uniform(r), x2 = x * x;
        if (u < 1 - 0.0331 * x2 * x2) return d * v;
        if (log(u) < 0.5 * x2 + d * (1 - v + log(v))) return d * v;
    }
}

static int K;
static double *mean, *cost, *sum, *score, *lower;
static int64_t *pulls;

static inline void pull(int arm, rng_t *world) {
    pulls[arm]++;
    sum[arm] += uniform(world) < mean[arm];
}

static inline int first_at_least(double floor) {
    int arm = 0;
    while (score[arm] < floor) arm++;
    return arm;
}

static inline double largest(const double *x, int from, int to, int without) {
    double top = -INFINITY;
    for (int i = from; i < to; i++) {
        double v = i == without ? -INFINITY : x[i];
        top = v > top ? v : top;
    }
    return top;
}

/* While the choice does not move, two numbers decide everything: the best of the other arms, and of the cheaper ones. */
static void cs_ucb(double alpha, int64_t horizon, rng_t *world) {
    double level = 2 * log((double)horizon);
    for (int a = 0; a < K; a++) {
        pull(a, world);
        score[a] = fmin(sum[a] + sqrt(level), 1.0);
    }
    int arm = 0;
    double others = largest(score, 0, K, arm), cheaper = -INFINITY;
    for (int64_t t = K; t < horizon; t++) {
        double top = score[arm] > others ? score[arm] : others, floor = (1 - alpha) * top;
        if (!(cheaper < floor && score[arm] >= floor)) {
            arm = first_at_least(floor);
            others = largest(score, 0, K, arm);
            cheaper = largest(score, 0, arm, -1);
        }
        pull(arm, world);
        double n = (double)pulls[arm], s = sum[arm] / n + sqrt(level / n);
        score[arm] = s < 1.0 ? s : 1.0;
    }
}

static void cs_etc(double alpha, int64_t horizon, rng_t *world) {
    int64_t tau = (int64_t)ceil(pow((double)horizon / K, 2.0 / 3.0));
    if (tau > horizon / K) tau = horizon / K;
    double level = 2 * log((double)horizon);
    for (int64_t j = 0; j < tau; j++) for (int a = 0; a < K; a++) pull(a, world);
    for (int a = 0; a < K; a++) {
        double n = (double)pulls[a], w = sqrt(level / n), m = sum[a] / n;
        score[a] = fmin(m + w, 1.0);
        lower[a] = fmax(m - w, 0.0);
    }
    int arm = 0;
    double others = largest(lower, 0, K, arm), cheaper = -INFINITY;
    for (int64_t t = tau * K; t < horizon; t++) {
        double top = lower[arm] > others ? lower[arm] : others, floor = (1 - alpha) * top;
        if (!(cheaper < floor && score[arm] >= floor)) {
            arm = first_at_least(floor);
            others = largest(lower, 0, K, arm);
            cheaper = largest(score, 0, arm, -1);
        }
        pull(arm, world);
        double n = (double)pulls[arm], w = sqrt(level / n), m = sum[arm] / n;
        score[arm] = m + w < 1.0 ? m + w : 1.0;
        lower[arm] = m - w > 0.0 ? m - w : 0.0;
    }
}

/* As the paper writes them: every bound of every arm in every round. */
static void cs_ucb_plain(double alpha, int64_t horizon, rng_t *world) {
    double level = 2 * log((double)horizon);
    for (int a = 0; a < K; a++) pull(a, world);
    for (int64_t t = K; t < horizon; t++) {
        double top = -1;
        for (int a = 0; a < K; a++) {
            double n = (double)pulls[a], s = sum[a] / n + sqrt(level / n);
            score[a] = s < 1.0 ? s : 1.0;
            top = score[a] > top ? score[a] : top;
        }
        pull(first_at_least((1 - alpha) * top), world);
    }
}

static void cs_etc_plain(double alpha, int64_t horizon, rng_t *world) {
    int64_t tau = (int64_t)ceil(pow((double)horizon / K, 2.0 / 3.0));
    if (tau > horizon / K) tau = horizon / K;
    double level = 2 * log((double)horizon);
    for (int64_t t = 0; t < tau * K; t++) pull((int)(t % K), world);
    for (int64_t t = tau * K; t < horizon; t++) {
        double top = 0;
        for (int a = 0; a < K; a++) {
            double n = (double)pulls[a], w = sqrt(level / n), m = sum[a] / n;
            score[a] = m + w < 1.0 ? m + w : 1.0;
            top = m - w > top ? m - w : top;
        }
        pull(first_at_least((1 - alpha) * top), world);
    }
}

static void cs_ts(double alpha, int64_t horizon, rng_t *world, rng_t *own) {
    for (int a = 0; a < K; a++) pull(a, world);
    for (int64_t t = K; t < horizon; t++) {
        double top = -1;
        for (int a = 0; a < K; a++) {
            double x = gamma_variate(1 + sum[a], own), y = gamma_variate(1 + (double)pulls[a] - sum[a], own);
            score[a] = x / (x + y);
            if (score[a] > top) top = score[a];
        }
        pull(first_at_least((1 - alpha) * top), world);
    }
}

int main(int argc, char **argv) {
    if (argc != 5) { fprintf(stderr, "usage: floor POLICY ALPHA HORIZON RUNS < arms\n"); return 2; }
    double alpha = atof(argv[2]);
    int64_t horizon = atoll(argv[3]), runs = atoll(argv[4]);
    if (scanf("%d", &K) != 1) return 2;
    mean = calloc(K, 8); cost = calloc(K, 8); sum = calloc(K, 8); score = calloc(K, 8); lower = calloc(K, 8);
    pulls = calloc(K, 8);
    double *total = calloc(K, 8);
    for (int a = 0; a < K; a++) if (scanf("%lf %lf", &mean[a], &cost[a]) != 2) return 2;
    make_ziggurat();
    struct timespec from, to;
    double seconds = 0;
    for (int64_t run = 0; run < runs; run++) {
        rng_t world, own;
        seed_rng(&world, 2 * (uint64_t)run);
        seed_rng(&own, 2 * (uint64_t)run + 1);
        memset(pulls, 0, (size_t)K * 8);
        memset(sum, 0, (size_t)K * 8);
        clock_gettime(CLOCK_MONOTONIC, &from);
        if (!strcmp(argv[1], "cs-ucb")) cs_ucb(alpha, horizon, &world);
        else if (!strcmp(argv[1], "cs-etc")) cs_etc(alpha, horizon, &world);
        else if (!strcmp(argv[1], "cs-ucb-plain")) cs_ucb_plain(alpha, horizon, &world);
        else if (!strcmp(argv[1], "cs-etc-plain")) cs_etc_plain(alpha, horizon, &world);
        else if (!strcmp(argv[1], "cs-ts")) cs_ts(alpha, horizon, &world, &own);
        else return 2;
        clock_gettime(CLOCK_MONOTONIC, &to);
        seconds += (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
        for (int a = 0; a < K; a++) total[a] += (double)pulls[a];
    }
    printf("%.3f", seconds * 1e9 / (double)(horizon * runs));
    for (int a = 0; a < K; a++) printf(" %.4f", total[a] / (double)runs);
    printf("\n");
    return 0;
}
