// Generated C functions, loaded, and times of calls that alternate.
#pragma once

#include <Eigen/Core>

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

struct Line {
  std::string label, library, symbol, algorithm;
};

inline std::vector<Line> read_lines(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<Line> out;
  std::string text;
  while (std::getline(file, text)) {
    std::istringstream words(text);
    Line line;
    if (words >> line.label >> line.library >> line.symbol >> line.algorithm) out.push_back(line);
    else if (!text.empty()) throw std::runtime_error(path + ": expected four words: " + text);
  }
  return out;
}

// A function of CasADi's C interface, with the memory it needs and the states it is called at.
class Generated {
public:
  Generated(const std::string& library, const std::string& symbol) {
    library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library_) throw std::runtime_error(dlerror());
    function_ = find<Function*>(symbol);
    long long sizes[4];
    const auto work = find<int (*)(long long*, long long*, long long*, long long*)>(symbol + "_work");
    work(sizes, sizes + 1, sizes + 2, sizes + 3);
    arguments_.resize(sizes[0] + 1);
    results_.resize(sizes[1] + 1);
    integers_.resize(sizes[2] + 1);
    numbers_.resize(sizes[3] + 1);
    inputs_ = find<long long (*)()>(symbol + "_n_in")();
    const long long outputs = find<long long (*)()>(symbol + "_n_out")();
    const auto sparsity = find<const long long* (*)(long long)>(symbol + "_sparsity_out");
    for (long long k = 0; k < outputs; ++k) {
      sparsities_.push_back(sparsity(k));
      values_.emplace_back(std::max(1LL, nonzeros(sparsities_.back())));
    }
    for (long long k = 0; k < outputs; ++k) results_[k] = values_[k].data();
  }

  // The first inputs of the function at a state; those that it has not are dropped.
  void keep_state(const std::vector<std::vector<double>>& ports) { states_.push_back(ports); }

  void call(int state) {
    for (int k = 0; k < inputs_; ++k) arguments_[k] = states_[state][k].data();
    function_(arguments_.data(), results_.data(), integers_.data(), numbers_.data(), 0);
  }

  std::vector<Eigen::MatrixXd> results() const {
    std::vector<Eigen::MatrixXd> out;
    for (size_t k = 0; k < values_.size(); ++k) out.push_back(dense(sparsities_[k], values_[k]));
    return out;
  }

private:
  using Function = int(const double**, double**, long long*, double*, int);

  template <class Pointer> Pointer find(const std::string& symbol) {
    void* found = dlsym(library_, symbol.c_str());
    if (!found) throw std::runtime_error("no symbol " + symbol);
    return reinterpret_cast<Pointer>(found);
  }

  // {rows, columns, 1} if dense, else {rows, columns, starts of columns, rows of nonzeros}
  static bool is_dense(const long long* s) { return s[2] == 1; }
  static long long nonzeros(const long long* s) { return is_dense(s) ? s[0] * s[1] : s[2 + s[1]]; }

  static Eigen::MatrixXd dense(const long long* s, const std::vector<double>& values) {
    if (is_dense(s)) return Eigen::Map<const Eigen::MatrixXd>(values.data(), s[0], s[1]);
    Eigen::MatrixXd out = Eigen::MatrixXd::Zero(s[0], s[1]);
    const long long *starts = s + 2, *rows = s + 3 + s[1];
    for (long long j = 0; j < s[1]; ++j)
      for (long long k = starts[j]; k < starts[j + 1]; ++k) out(rows[k], j) = values[k];
    return out;
  }

  void* library_;
  Function* function_;
  long long inputs_;
  std::vector<const double*> arguments_;
  std::vector<double*> results_;
  std::vector<long long> integers_;
  std::vector<double> numbers_;
  std::vector<const long long*> sparsities_;
  std::vector<std::vector<double>> values_;
  std::vector<std::vector<std::vector<double>>> states_;
};

using Times = std::vector<std::vector<double>>;

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double run(const std::function<void(int)>& call, int states, long calls) {
  const double start = seconds();
  for (long k = 0; k < calls; ++k) call(k % states);
  return seconds() - start;
}

// Seconds of a call by item and round: runs of `batch` seconds, all items one after the other in every round.
inline Times alternate(const std::vector<std::function<void(int)>>& items, int states, double batch, int rounds) {
  std::vector<long> calls;
  for (const auto& call : items) {
    run(call, states, 8);
    long n = 1;
    for (double t = 0; (t = run(call, states, n)) < batch;)
      n = std::max(2 * n, static_cast<long>(0.9 * n * batch / std::max(t, 1e-9)));
    calls.push_back(n);
  }
  Times times(items.size());
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < items.size(); ++i) {
      items[i](0);
      times[i].push_back(run(items[i], states, calls[i]) / calls[i]);
    }
  return times;
}

inline double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * (values.size() - 1) + 0.5)];
}

inline std::vector<double> ratios(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> out;
  for (size_t k = 0; k < a.size(); ++k) out.push_back(a[k] / b[k]);
  return out;
}
