/* Backward planning from s in the paper's maze with dense tables: every planning step touches every pair.
 *
 *     cc -O3 -march=native -ffast-math -o dense_maze dense_maze.c -lm && ./dense_maze [SEEDS]
 *
 * The same agent as bc.agent("backward", frame="previous") in bc.worlds.maze(): Q-learning, a softmax model of the pair
 * before each state, 100 episodes, rates that fall linearly. Prints steps per episode and, last, steps per second. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS = 6, COLUMNS = 8, STATES = ROWS * COLUMNS, ACTIONS = 4, PAIRS = STATES * ACTIONS };
enum { EPISODES = 100, MOST_STEPS = 400 };

static const char CELLS[] =
    "......XG"
    "..X...X."
    "S.X...X."
    "..X....."
    "....X..."
    "........";
static const double DISCOUNT = 0.99;

typedef struct {
    double value[PAIRS];           /* q(s, a) */
    double logit[STATES][PAIRS];   /* which pair led to a state */
    double reward[STATES];         /* on the way into a state */
    double probability[PAIRS];     /* room for one row */
} Agent;

static uint64_t generator;

static double uniform(void) { /* splitmix64 */
    uint64_t z = (generator += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static int step(int s, int a) {
    static const int down[] = {-1, 0, 1, 0}, right[] = {0, 1, 0, -1};
    int row = s / COLUMNS + down[a], column = s % COLUMNS + right[a];
    if (row < 0 || row >= ROWS || column < 0 || column >= COLUMNS) return s;
    int there = row * COLUMNS + column;
    return CELLS[there] == 'X' ? s : there;
}

static double best_value(const Agent *agent, int s) {
    double best = agent->value[s * ACTIONS];
    for (int a = 1; a < ACTIONS; a++) best = fmax(best, agent->value[s * ACTIONS + a]);
    return best;
}

static int choose(const Agent *agent, int s, double epsilon) {
    if (uniform() < epsilon) return (int)(ACTIONS * uniform());
    double best = best_value(agent, s);
    int tied[ACTIONS], n = 0;
    for (int a = 0; a < ACTIONS; a++)
        if (agent->value[s * ACTIONS + a] == best) tied[n++] = a;
    return tied[(int)(n * uniform())];
}

static void softmax(Agent *agent, int s) {
    const double *row = agent->logit[s];
    double top = row[0], sum = 0;
    for (int i = 1; i < PAIRS; i++) top = fmax(top, row[i]);
    for (int i = 0; i < PAIRS; i++) sum += agent->probability[i] = exp(row[i] - top);
    for (int i = 0; i < PAIRS; i++) agent->probability[i] /= sum;
}

static void learn_model(Agent *agent, int pair, double r, int s2, double alpha) {
    softmax(agent, s2);
    for (int i = 0; i < PAIRS; i++) agent->logit[s2][i] -= alpha * agent->probability[i];
    agent->logit[s2][pair] += alpha;
    agent->reward[s2] += alpha * (r - agent->reward[s2]);
}

static void plan_from(Agent *agent, int s, double alpha) {
    double target = agent->reward[s] + DISCOUNT * best_value(agent, s);
    softmax(agent, s);
    for (int i = 0; i < PAIRS; i++) agent->value[i] += alpha * agent->probability[i] * (target - agent->value[i]);
}

static long episode(Agent *agent, double rate) {
    int s = (int)(strchr(CELLS, 'S') - CELLS), goal = (int)(strchr(CELLS, 'G') - CELLS);
    for (long t = 0; t < MOST_STEPS; t++) {
        int a = choose(agent, s, 0.5 * rate), s2 = step(s, a), pair = s * ACTIONS + a;
        double r = s2 == goal, target = s2 == goal ? r : r + DISCOUNT * best_value(agent, s2);
        learn_model(agent, pair, r, s2, rate);
        agent->value[pair] += rate * (target - agent->value[pair]);
        if (t > 0) plan_from(agent, s, rate); /* nothing is known of what led to the first state */
        if (s2 == goal) return t + 1;
        s = s2;
    }
    return MOST_STEPS;
}

int main(int argc, char **argv) {
    int seeds = argc > 1 ? atoi(argv[1]) : 20;
    long steps = 0;
    struct timespec begin, end;
    static Agent agent;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int seed = 0; seed < seeds; seed++) {
        generator = (uint64_t)seed << 32;
        memset(&agent, 0, sizeof agent);
        for (int e = 0; e < EPISODES; e++) steps += episode(&agent, (double)(EPISODES - e) / EPISODES);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    printf("steps per episode %.2f, steps per second %.0f\n", (double)steps / seeds / EPISODES, (double)steps / seconds);
    return 0;
}
