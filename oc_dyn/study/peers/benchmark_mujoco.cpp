// Times MuJoCo's routines and generated C functions of the same robot in turn, and writes down what they compute.
//
//   benchmark_mujoco MODEL STATES FUNCTIONS MILLISECONDS ROUNDS RESULTS
//
// MODEL: MJCF. STATES: numbers of states, then of their q, their v, our q, our v; then by state their q, v, dv, tau and
// ours. FUNCTIONS: lines "label library symbol routine". Written to stdout, one row of a CSV table each: times of the
// routines, then of the functions with ratios to their routine. RESULTS: a row "label,routine,state,theirs,ours" for
// every function and the first states, numbers separated by blanks.
//
// A routine is called in two ways: the steps that its result needs, one after the other, and, named with "whole", the
// function of MuJoCo's interface that gives it among other things.

#include "timed.hpp"

#include <mujoco/mujoco.h>

#include <cstring>
#include <iomanip>
#include <iostream>
#include <map>

namespace {

const int kCompared = 8;  // states

using Numbers = std::vector<double>;

struct State {
  Numbers q, v, dv, tau, our_q, our_v, our_dv, our_tau;
};

struct Routine {
  std::function<void(const State&)> call;
  bool driven;  // its third argument is tau, not dv
};

std::vector<State> read_states(const std::string& path, const mjModel* m) {
  std::ifstream file(path);
  size_t count = 0, nq = 0, nv = 0, our_nq = 0, our_nv = 0;
  file >> count >> nq >> nv >> our_nq >> our_nv;
  if (!file || nq != static_cast<size_t>(m->nq) || nv != static_cast<size_t>(m->nv))
    throw std::runtime_error(path + ": not the states of this model");
  std::vector<State> out(count);
  for (State& s : out)
    for (const auto& [numbers, size] : std::initializer_list<std::pair<Numbers*, size_t>>{
             {&s.q, nq}, {&s.v, nv}, {&s.dv, nv}, {&s.tau, nv},
             {&s.our_q, our_nq}, {&s.our_v, our_nv}, {&s.our_dv, our_nv}, {&s.our_tau, our_nv}}) {
      numbers->resize(size);
      for (double& x : *numbers) file >> x;
    }
  if (!file) throw std::runtime_error(path + " ends early");
  return out;
}

void set(double* to, const Numbers& from) { std::memcpy(to, from.data(), from.size() * sizeof(double)); }

std::map<std::string, Routine> routines(const mjModel* m, mjData* d, Numbers& out) {
  std::map<std::string, Routine> r;
  const auto position = [=](const State& s) {
    set(d->qpos, s.q);
    mj_kinematics(m, d);
    mj_comPos(m, d);
  };
  const auto velocity = [=](const State& s) {
    position(s);
    set(d->qvel, s.v);
    mj_comVel(m, d);
  };
  r["inverse_dynamics"] = {[=, &out](const State& s) {
                             velocity(s);
                             set(d->qacc, s.dv);
                             mj_rne(m, d, 1, out.data());
                             for (int k = 0; k < m->nv; ++k) out[k] += m->dof_armature[k] * d->qacc[k];
                           },
                           false};
  r["inverse_dynamics_whole"] = {[=, &out](const State& s) {
                                   set(d->qpos, s.q);
                                   set(d->qvel, s.v);
                                   set(d->qacc, s.dv);
                                   mj_inverse(m, d);
                                   std::memcpy(out.data(), d->qfrc_inverse, m->nv * sizeof(double));
                                 },
                                 false};
  r["forward_dynamics"] = {[=, &out](const State& s) {
                             velocity(s);
                             mj_makeM(m, d);
                             mj_factorM(m, d);
                             mj_rne(m, d, 0, d->qfrc_bias);
                             for (int k = 0; k < m->nv; ++k) d->qfrc_smooth[k] = s.tau[k] - d->qfrc_bias[k];
                             mj_solveM(m, d, out.data(), d->qfrc_smooth, 1);
                           },
                           true};
  r["forward_dynamics_whole"] = {[=, &out](const State& s) {
                                   set(d->qpos, s.q);
                                   set(d->qvel, s.v);
                                   set(d->qfrc_applied, s.tau);
                                   mj_forward(m, d);
                                   std::memcpy(out.data(), d->qacc, m->nv * sizeof(double));
                                 },
                                 true};
  r["mass_matrix"] = {[=, &out](const State& s) {
                        position(s);
                        mj_makeM(m, d);
                        mj_fullM(m, d, out.data());
                      },
                      false};
  r["bias"] = {[=, &out](const State& s) {
                 velocity(s);
                 mj_rne(m, d, 0, out.data());
               },
               false};
  return r;
}

struct Item {
  std::string label, routine;
  std::function<void(int)> call;
};

std::string told(const double* x, size_t n) {
  std::ostringstream out;
  out << std::setprecision(17);
  for (size_t k = 0; k < n; ++k) out << (k ? " " : "") << x[k];
  return out.str();
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 7) throw std::runtime_error("usage: benchmark_mujoco MODEL STATES FUNCTIONS MILLISECONDS ROUNDS RESULTS");
  char error[1000] = "";
  mjModel* m = mj_loadXML(argv[1], nullptr, error, sizeof error);
  if (!m) throw std::runtime_error(error);
  mjData* d = mj_makeData(m);
  const std::vector<State> states = read_states(argv[2], m);
  Numbers result(m->nv * m->nv);
  const auto natives = routines(m, d, result);
  std::vector<Item> items;
  std::map<std::string, size_t> place;
  for (const auto& [name, routine] : natives) {
    const auto call = routine.call;
    place[name] = items.size();
    items.push_back({name, name, [call, &states](int k) { call(states[k]); }});
  }
  std::ofstream results(argv[6]);
  results << "label,routine,state,theirs,ours\n";
  std::vector<std::unique_ptr<Generated>> kept;
  for (const Line& line : read_lines(argv[3])) {
    if (!natives.count(line.algorithm)) throw std::runtime_error("no routine " + line.algorithm);
    const Routine& routine = natives.at(line.algorithm);
    kept.push_back(std::make_unique<Generated>(line.library, line.symbol));
    Generated* f = kept.back().get();
    for (const State& s : states) f->keep_state({s.our_q, s.our_v, routine.driven ? s.our_tau : s.our_dv});
    for (int k = 0; k < kCompared && k < static_cast<int>(states.size()); ++k) {
      f->call(k);
      const Eigen::MatrixXd ours = f->results().at(0);
      const size_t n = line.algorithm == "mass_matrix" ? result.size() : m->nv;
      std::fill(result.begin(), result.end(), std::nan(""));
      routine.call(states[k]);
      results << line.label << ',' << line.algorithm << ',' << k << ',' << told(result.data(), n) << ','
              << told(ours.data(), ours.size()) << '\n';
    }
    items.push_back({line.label, line.algorithm, [f](int k) { f->call(k); }});
  }
  results.close();
  if (!results) throw std::runtime_error(std::string("cannot write ") + argv[6]);
  std::vector<std::function<void(int)>> calls;
  for (const Item& item : items) calls.push_back(item.call);
  const Times t = alternate(calls, states.size(), std::stod(argv[4]) * 1e-3, std::stoi(argv[5]));
  std::cout << "label,routine,median_us,least_us,ratio,ratio_low,ratio_high,ratio_of_least\n";
  for (size_t i = 0; i < items.size(); ++i) {
    const size_t r = place[items[i].routine];
    const std::vector<double> ratio = ratios(t[i], t[r]);
    std::cout << items[i].label << ',' << items[i].routine << ',' << 1e6 * quantile(t[i], 0.5) << ','
              << 1e6 * quantile(t[i], 0) << ',' << quantile(ratio, 0.5) << ',' << quantile(ratio, 0.1) << ','
              << quantile(ratio, 0.9) << ',' << quantile(t[i], 0) / quantile(t[r], 0) << '\n';
  }
  mj_deleteData(d);
  mj_deleteModel(m);
} catch (const std::exception& error) {
  std::cerr << "benchmark_mujoco: " << error.what() << '\n';
  return 1;
}
