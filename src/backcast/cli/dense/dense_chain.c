/* Learning and planning in a leveled random chain with dense tables: every planning step touches every state.
 *
 *     cc -O3 -march=native -ffast-math -o dense_chain dense_chain.c -lm && ./dense_chain backward 500 50 5
 *
 * The same agents as bc.agent("backward") and bc.agent("forward") in bc.worlds.chain(levels, seed=None): TD, a softmax
 * model over all states, 4,000 episodes, rates that fall linearly. Prints the mean RMSVE and, last, steps per second. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EPISODES = 4000, SEEDS = 3, MOST_LEVELS = 15 };
static const double DISCOUNT = 0.9;

typedef struct {
    int levels, first[MOST_LEVELS + 1], states;
    double *transition, *cumulative, *reward; /* [s * states + s'] */
    double *start, *value;                    /* cumulative over the first level; true values */
} World;

typedef struct {
    double *logit, *reward, *value, *probability; /* reward [s' * states + s] */
} Agent;

static uint64_t generator;

static double uniform(void) { /* splitmix64 */
    uint64_t z = (generator += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static double normal(void) { return sqrt(-2 * log(1 - uniform())) * cos(2 * acos(-1.0) * uniform()); }

static double *zeros(size_t n) {
    double *made = calloc(n, sizeof(double));
    if (made == NULL) exit(1);
    return made;
}

static void draw(World *world) {
    int n = world->states, last = world->levels - 1;
    const int *first = world->first;
    memset(world->value, 0, sizeof(double) * (size_t)n);
    for (int level = 0; level < last; level++)
        for (int s = first[level]; s < first[level + 1]; s++) {
            double sum = 0, up_to = 0, *row = world->transition + (size_t)s * n;
            for (int t = first[level + 1]; t < first[level + 2]; t++) sum += row[t] = uniform();
            for (int t = first[level + 1]; t < first[level + 2]; t++) {
                up_to += row[t] /= sum;
                world->cumulative[(size_t)s * n + t] = up_to;
                world->reward[(size_t)s * n + t] = level + 1 == last ? 10 + 10 * normal() : 0;
            }
        }
    double sum = 0;
    for (int s = 0; s < first[1]; s++) world->start[s] = sum += uniform();
    for (int s = 0; s < first[1]; s++) world->start[s] /= sum;
    for (int level = last - 1; level >= 0; level--)
        for (int s = first[level]; s < first[level + 1]; s++)
            for (int t = first[level + 1]; t < first[level + 2]; t++) {
                size_t at = (size_t)s * n + t;
                world->value[s] += world->transition[at] * (world->reward[at] + DISCOUNT * world->value[t]);
            }
}

static int pick(const double *cumulative, int from, int to) {
    double u = uniform();
    while (from < to - 1 && cumulative[from] < u) from++;
    return from;
}

static void softmax(const double *row, double *probability, int n) {
    double top = row[0], sum = 0;
    for (int i = 1; i < n; i++) top = fmax(top, row[i]);
    for (int i = 0; i < n; i++) sum += probability[i] = exp(row[i] - top);
    for (int i = 0; i < n; i++) probability[i] /= sum;
}

static void learn_and_plan(Agent *agent, const World *world, int backward, int s, int t, double r, double rate) {
    int n = world->states, inner = world->first[world->levels - 1];
    double *v = agent->value, *p = agent->probability, onward = t >= inner ? 0 : DISCOUNT;
    double *row = agent->logit + (size_t)(backward ? t : s) * n, *led = agent->reward + (size_t)t * n;
    softmax(row, p, n);
    for (int i = 0; i < n; i++) row[i] -= rate * p[i];
    row[backward ? s : t] += rate;
    led[s] += rate * (r - led[s]);
    v[s] += rate * (r + onward * v[t] - v[s]);
    softmax(row, p, n);
    if (backward) { /* from s': every state that may have led there */
        double ahead = onward * v[t];
        for (int i = 0; i < n; i++) v[i] += rate * p[i] * (led[i] + ahead - v[i]);
    } else { /* from s: over every state that may follow */
        double target = 0;
        for (int i = 0; i < n; i++) target += p[i] * (agent->reward[(size_t)i * n + s] + (i >= inner ? 0 : DISCOUNT) * v[i]);
        v[s] += rate * (target - v[s]);
    }
}

static double error(const Agent *agent, const World *world) {
    double sum = 0;
    for (int s = 0; s < world->states; s++) sum += pow(agent->value[s] - world->value[s], 2);
    return sqrt(sum / world->states);
}

int main(int argc, char **argv) {
    World world = {.levels = argc - 2};
    if (world.levels < 2 || world.levels > MOST_LEVELS) {
        fprintf(stderr, "usage: dense_chain backward|forward LEVEL LEVEL [LEVEL...]\n");
        return 2;
    }
    int backward = strcmp(argv[1], "backward") == 0;
    for (int level = 0; level < world.levels; level++) world.first[level + 1] = world.first[level] + atoi(argv[level + 2]);
    size_t n = (size_t)(world.states = world.first[world.levels]);
    world.transition = zeros(n * n), world.cumulative = zeros(n * n), world.reward = zeros(n * n);
    world.start = zeros(n), world.value = zeros(n);
    Agent agent = {zeros(n * n), zeros(n * n), zeros(n), zeros(n)};
    double errors = 0, seconds = 0;
    long steps = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        generator = (uint64_t)seed << 32;
        draw(&world);
        memset(agent.logit, 0, n * n * sizeof(double)), memset(agent.reward, 0, n * n * sizeof(double));
        memset(agent.value, 0, n * sizeof(double));
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (int e = 0; e < EPISODES; e++) {
            int s = pick(world.start, 0, world.first[1]);
            for (int level = 0; level + 1 < world.levels; level++, steps++) {
                int t = pick(world.cumulative + (size_t)s * n, world.first[level + 1], world.first[level + 2]);
                double r = world.reward[(size_t)s * n + t];
                learn_and_plan(&agent, &world, backward, s, t, r, (double)(EPISODES - e) / EPISODES);
                s = t;
            }
            errors += error(&agent, &world);
        }
        clock_gettime(CLOCK_MONOTONIC, &end);
        seconds += (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    }
    printf("mean RMSVE %.4f, steps per second %.0f\n", errors / EPISODES / SEEDS, (double)steps / seconds);
    return 0;
}
