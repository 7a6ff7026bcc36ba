/* A controller or law under numbers that sensors should not give; settings.h says of which. It prints a line of what it
 * saw. A twin gets the good numbers alone. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings.h"

static uint64_t state = SEED;

static double uniform(void) { /* [0, 1): xorshift64* */
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return (double)((state * UINT64_C(2685821657736338717)) >> 11) / 9007199254740992.0;
}

static int below(int n) { return (int)(n * uniform()); }

static void good(long k, double *x) {
  int i;
  for (i = 0; i < INPUTS; ++i) x[i] = middle[i] + swing[i] * sin(rate[i] * (double)k);
}

/* Numbers of a burst: one that is none or huge, all of them, a jump, a place that is held, or nothing (zeros). */
static void spoil(double *x, const double *held) {
  static const double none[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300, 1e13};
  int i = measured[below(MEASURED)], k;
  switch (below(6)) {
    case 0: case 1: x[i] = none[below(6)]; break;
    case 2: for (k = 0; k < MEASURED; ++k) x[measured[k]] = none[below(6)]; break;
    case 3: x[i] += pow(10.0, below(10)) * (2 * uniform() - 1); break;
    case 4: for (k = 0; k < MEASURED; ++k) x[measured[k]] = held[measured[k]]; break;
    default: for (k = 0; k < MEASURED; ++k) x[measured[k]] = 0;
  }
}

static int call(TYPE *self, const double *x, double *out) {
  static INPUT in;
  static OUTPUT found;
  int status;
  memcpy(&in, x, sizeof in);
  status = STEP(self, &in, &found);
  memcpy(out, &found, OUTPUTS * sizeof(double));
  return status;
}

int main(void) {
  static TYPE self, twin;
  static double x[INPUTS], held[INPUTS], out[OUTPUTS], wanted[OUTPUTS];
  long k, counts[STATUSES] = {0}, outside = 0, broken = 0, unknown = 0, bursts = 0, late = 0, twins = 0;
  long since = 0, back = 0, worst_back = 0;
  int i, status, left = 0, lost = 0;
  double away = 0;
  if (sizeof(INPUT) != sizeof x) return 2;
  INIT(&self);
  INIT(&twin);
  good(0, held);
  for (k = 0; k < STEPS; ++k) {
    good(k, x);
    if (call(&twin, x, wanted)) ++twins;
    if (left) --left;
    else if (uniform() < BURSTS) left = 1 + below(LONGEST), ++bursts;
    if (left) spoil(x, held);
    else memcpy(held, x, sizeof held);
    status = call(&self, x, out);
    if (status < 0 || status >= STATUSES) ++unknown;
    else ++counts[status];
    for (i = 0; i < OUTPUTS; ++i)
      if (!(out[i] >= lower[i] && out[i] <= upper[i])) ++outside;
    for (i = 0; i < (int)(sizeof self.memory / sizeof self.memory[0]); ++i)
      if (!isfinite(self.memory[i])) ++broken;
    if (left) {
      since = 0;
      lost = 1;
      continue;
    }
    ++since;
    if (lost && !status) { /* back after so many good samples */
      back = since;
      if (back > worst_back) worst_back = back;
      lost = 0;
    }
    if (since >= BACK) {
      if (status) ++late;
      for (i = 0; i < OUTPUTS; ++i) away = fmax(away, fabs(out[i] - wanted[i]) / (upper[i] - lower[i]));
    }
  }
  printf("{\"steps\": %ld, \"bursts\": %ld, \"outside\": %ld, \"broken\": %ld, \"unknown\": %ld, ", (long)STEPS, bursts,
         outside, broken, unknown);
  printf("\"late\": %ld, \"slowest\": %ld, \"away\": %.9g, \"twins\": %ld, \"statuses\": [", late, worst_back, away, twins);
  for (i = 0; i < STATUSES; ++i) printf("%s%ld", i ? ", " : "", counts[i]);
  printf("]}\n");
  return 0;
}
