/* A step of the controller that settings.h names, and how long its thread was at work. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <time.h>

#include "settings.h"

static TYPE self;
static double seconds, results[3]; /* objective, violation, iterations */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void begin(void) { INIT(&self); }

int step(const double *x, double *out) {
  static INPUT in;
  static OUTPUT found;
  double begun;
  int status;
  memcpy(&in, x, sizeof in);
  begun = now();
  status = STEP(&self, &in, &found);
  seconds = now() - begun;
  memcpy(out, &found, OUTPUTS * sizeof(double));
  results[0] = found.objective;
  results[1] = found.violation;
  results[2] = found.iterations;
  return status;
}

double taken(void) { return seconds; }

const double *told(void) { return results; }
