/* A step of the controller that settings.h names, and how long its thread was at work. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <time.h>

#include "settings.h"

static TYPE self;
static double seconds[2], results[3]; /* of a step, of its feedback; objective, violation, iterations */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void begin(void) { INIT(&self); }

static int done(int status, const OUTPUT *found, double *out) {
  memcpy(out, found, OUTPUTS * sizeof(double));
  results[0] = found->objective;
  results[1] = found->violation;
  results[2] = found->iterations;
  return status;
}

int step(const double *x, double *out) {
  static INPUT in;
  static OUTPUT found;
  double begun;
  int status;
  memcpy(&in, x, sizeof in);
  begun = now();
  status = STEP(&self, &in, &found);
  seconds[0] = now() - begun;
  return done(status, &found, out);
}

#ifdef PREPARE
int phases(const double *x, double *out) { /* a step in two parts */
  static INPUT in;
  static OUTPUT found;
  double begun;
  int status;
  memcpy(&in, x, sizeof in);
  begun = now();
  PREPARE(&self, &in);
  seconds[0] = now() - begun;
  begun = now();
  status = FEEDBACK(&self, &in, &found);
  seconds[1] = now() - begun;
  seconds[0] += seconds[1];
  return done(status, &found, out);
}
#endif

const double *taken(void) { return seconds; }

const double *told(void) { return results; }
