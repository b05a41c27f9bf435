/// PyTorch's recorded results of a program, their comparison, and the timing of steps.
#pragma once

#include <plugrad/plugrad.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace programs {

/// The Euclidean norm of each gradient, in the order of the parameters: stacked, so that all are
/// read at once and the backward pass runs once.
inline std::vector<double> gradient_norms(const std::vector<plugrad::Tensor>& parameters) {
  std::vector<plugrad::Tensor> norms;
  for (const plugrad::Tensor& p : parameters) norms.push_back(p.grad().square().sum().sqrt());
  return plugrad::stack(norms).to_vector<double>();
}

/// The numbers that PyTorch gave: lines of a name and values.
class Recorded {
 public:
  explicit Recorded(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read " + path);
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string name;
      words >> name;
      for (double value; words >> value;) values_[name].push_back(value);
    }
  }

  /// Each value within `tolerance` of the recorded one, relative to the larger of it and `floor`.
  void compare(const std::string& what, const std::string& name, const std::vector<double>& ours,
               double tolerance, double floor = 1e-3) {
    const std::vector<double>& theirs = values_.at(name);
    double worst = ours.size() == theirs.size() ? 0.0 : HUGE_VAL;
    for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
      const double off = std::abs(ours[i] - theirs[i]) / std::max(std::abs(theirs[i]), floor);
      worst = off <= worst ? worst : std::isnan(off) ? HUGE_VAL : off;
    }
    const bool ok = worst <= tolerance;
    failures_ += !ok;
    std::cout << (ok ? "ok      " : "FAILED  ") << what << ": " << ours.size() << " of "
              << theirs.size() << " values, largest relative difference " << worst << ", allowed "
              << tolerance << "\n";
    for (size_t i = 0; !ok && i < std::min(ours.size(), theirs.size()); ++i)
      std::cout << "  [" << i << "] " << ours[i] << " recorded " << theirs[i] << "\n";
  }

  int failures() const { return failures_; }

 private:
  std::map<std::string, std::vector<double>> values_;
  int failures_ = 0;
};

/// Prints the seconds of the first step, which compiles, and the median of the second half.
class StepTimes {
 public:
  void step_done() {
    const auto now = std::chrono::steady_clock::now();
    seconds_.push_back(std::chrono::duration<double>(now - last_).count());
    last_ = now;
  }
  void print(const std::string& what) const {
    std::vector<double> late(seconds_.begin() + static_cast<std::ptrdiff_t>(seconds_.size() / 2),
                             seconds_.end());
    std::nth_element(late.begin(), late.begin() + static_cast<std::ptrdiff_t>(late.size() / 2),
                     late.end());
    std::cout << "        " << what << ": first step " << seconds_.front() << " s, later "
              << late[late.size() / 2] * 1e3 << " ms a step\n";
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::vector<double> seconds_;
};

}  // namespace programs
