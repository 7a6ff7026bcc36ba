// Times Pinocchio's algorithms and generated C functions of the same robot in turn, and compares what they compute.
//
//   benchmark MODEL FUNCTIONS MILLISECONDS ROUNDS
//
// MODEL: a text as robots.model_text writes it: joints with their inertias, then where our coordinates are in theirs.
// FUNCTIONS: lines "label library symbol algorithm". Written to stdout, one row of a CSV table each: times of the
// algorithms, then of the functions with ratios to their algorithm and the largest relative difference.

#include "model.hpp"
#include "timed.hpp"

#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/joint-configuration.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>
#include <pinocchio/algorithm/rnea-second-order-derivatives.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#include <functional>
#include <iostream>
#include <map>

namespace pin = pinocchio;
using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

namespace {

const int kStates = 64;

struct State {
  Vector q, v, third;  // third: accelerations, or torques
};

// One algorithm: its call, and its results as matrices; entry (i, j, k) of a tensor at row i + nv j, column k.
struct Algorithm {
  std::function<void(const State&)> call;
  std::function<std::vector<Matrix>()> results;
};

Matrix full(const Matrix& upper) {
  Matrix M = upper.triangularView<Eigen::Upper>();
  M.triangularView<Eigen::StrictlyLower>() = M.transpose().triangularView<Eigen::StrictlyLower>();
  return M;
}

template <class Tensor> Matrix pages(const Tensor& t) {
  return Eigen::Map<const Matrix>(t.data(), t.dimension(0) * t.dimension(1), t.dimension(2));
}

std::map<std::string, Algorithm> algorithms(const pin::Model& m, pin::Data& d) {
  std::map<std::string, Algorithm> out;
  out["rnea"] = {[&](const State& s) { pin::rnea(m, d, s.q, s.v, s.third); },
                 [&] { return std::vector<Matrix>{d.tau}; }};
  for (bool world : {false, true}) {
    const auto convention = world ? pin::Convention::WORLD : pin::Convention::LOCAL;
    const std::string suffix = world ? "_world" : "";
    out["aba" + suffix] = {[&, convention](const State& s) { pin::aba(m, d, s.q, s.v, s.third, convention); },
                           [&] { return std::vector<Matrix>{d.ddq}; }};
    out["crba" + suffix] = {[&, convention](const State& s) { pin::crba(m, d, s.q, convention); },
                            [&] { return std::vector<Matrix>{full(d.M)}; }};
  }
  out["rnea_derivatives"] = {[&](const State& s) { pin::computeRNEADerivatives(m, d, s.q, s.v, s.third); },
                             [&] { return std::vector<Matrix>{d.dtau_dq, d.dtau_dv, full(d.M)}; }};
  out["aba_derivatives"] = {[&](const State& s) { pin::computeABADerivatives(m, d, s.q, s.v, s.third); },
                            [&] { return std::vector<Matrix>{d.ddq_dq, d.ddq_dv, full(d.Minv)}; }};
  out["rnea_second_derivatives"] = {
      [&](const State& s) { pin::ComputeRNEASecondOrderDerivatives(m, d, s.q, s.v, s.third); },
      [&] {
        return std::vector<Matrix>{pages(d.d2tau_dqdq), pages(d.d2tau_dvdv), pages(d.d2tau_dqdv), pages(d.d2tau_dadq)};
      }};
  return out;
}

// Our matrix in their order: rows are coordinates, or pairs (i, j) of them at i + nv j; so are columns, if any.
Matrix reordered(const Matrix& ours, const std::vector<int>& place) {
  const int nv = place.size(), tensor = ours.rows() == nv ? 1 : nv;
  Matrix theirs(ours.rows(), ours.cols());
  for (int k = 0; k < ours.cols(); ++k)
    for (int j = 0; j < tensor; ++j)
      for (int i = 0; i < nv; ++i)
        theirs(place[i] + (tensor > 1 ? nv * place[j] : 0), ours.cols() > 1 ? place[k] : 0) = ours(i + nv * j, k);
  return theirs;
}

double difference(const std::vector<Matrix>& ours, const std::vector<Matrix>& theirs, const std::vector<int>& place) {
  double worst = 0;
  if (ours.size() != theirs.size()) throw std::runtime_error("numbers of results differ");
  for (size_t r = 0; r < ours.size(); ++r) {
    if (ours[r].rows() != theirs[r].rows() || ours[r].cols() != theirs[r].cols())
      throw std::runtime_error("shapes of results differ");
    const double off = (reordered(ours[r], place) - theirs[r]).cwiseAbs().maxCoeff();
    worst = std::max(worst, off / std::max(theirs[r].cwiseAbs().maxCoeff(), 1e-300));
    if (std::isnan(off)) return off;
  }
  return worst;
}

std::vector<State> states(const pin::Model& m, bool torques) {
  std::vector<State> out;
  std::srand(1);
  for (int k = 0; k < kStates; ++k) {
    State s{pin::randomConfiguration(m), Vector::Random(m.nv), Vector::Random(m.nv)};
    if (torques) s.third *= 10;
    out.push_back(s);
  }
  return out;
}

struct Item {
  std::string label, algorithm;
  std::function<void(int)> call;
  double error;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 5) throw std::runtime_error("usage: benchmark MODEL FUNCTIONS MILLISECONDS ROUNDS");
  const Robot robot = read_robot(argv[1]);
  const pin::Model& m = robot.model;
  pin::Data d(m);
  const auto natives = algorithms(m, d);
  const std::vector<State> moving = states(m, false), driven = states(m, true);
  std::vector<Item> items;
  std::map<std::string, size_t> place;
  for (const auto& [name, algorithm] : natives) {
    const auto& given = name.compare(0, 3, "aba") == 0 ? driven : moving;
    const auto call = algorithm.call;
    place[name] = items.size();
    items.push_back({name, name, [call, &given](int k) { call(given[k]); }, 0});
  }
  std::vector<std::unique_ptr<Generated>> kept;
  for (const Line& line : read_lines(argv[2])) {
    if (!natives.count(line.algorithm)) throw std::runtime_error("no algorithm " + line.algorithm);
    const auto& given = line.algorithm.compare(0, 3, "aba") == 0 ? driven : moving;
    kept.push_back(std::make_unique<Generated>(line.library, line.symbol));
    Generated* f = kept.back().get();
    for (const State& s : given) f->keep_state({robot.our_q(s.q), robot.our_v(s.v), robot.our_v(s.third)});
    double error = 0;
    for (int k = 0; k < 8; ++k) {
      f->call(k);
      natives.at(line.algorithm).call(given[k]);
      error = std::max(error, difference(f->results(), natives.at(line.algorithm).results(), robot.v_place));
    }
    items.push_back({line.label, line.algorithm, [f](int k) { f->call(k); }, error});
  }
  std::vector<std::function<void(int)>> calls;
  for (const Item& item : items) calls.push_back(item.call);
  const Times t = alternate(calls, kStates, std::stod(argv[3]) * 1e-3, std::stoi(argv[4]));
  std::cout << "label,algorithm,median_us,least_us,ratio,ratio_low,ratio_high,ratio_of_least,error\n";
  for (size_t i = 0; i < items.size(); ++i) {
    const size_t r = place[items[i].algorithm];
    const std::vector<double> ratio = ratios(t[i], t[r]);
    std::cout << items[i].label << ',' << items[i].algorithm << ',' << 1e6 * quantile(t[i], 0.5) << ','
              << 1e6 * quantile(t[i], 0) << ',' << quantile(ratio, 0.5) << ',' << quantile(ratio, 0.1) << ','
              << quantile(ratio, 0.9) << ',' << quantile(t[i], 0) / quantile(t[r], 0) << ',' << items[i].error << '\n';
  }
} catch (const std::exception& error) {
  std::cerr << "benchmark: " << error.what() << '\n';
  return 1;
}
