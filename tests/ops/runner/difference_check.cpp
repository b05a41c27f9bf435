// Compares gradients with central differences.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/runner/check.h"
#include "ops/runner/inputs.h"
#include "ops/runner/work.h"

namespace plugrad::ops {
namespace {

using Values = std::vector<std::vector<double>>;

double loss_at(const Entry& entry, const Values& values) {
  const Tensor loss = loss_of(entry.row.function(inputs_of(entry, values, true)).tensors);
  return work_of({loss}) > kMostWork ? loss.item<double>() : evaluate(loss)[0];
}

// One of ±1, ±0.5, determined by the index alone.
double direction(size_t place, int round) {
  const size_t mixed = (place * 2654435761u + static_cast<size_t>(round) * 40503u) >> 7;
  return (mixed & 1 ? 1.0 : -1.0) * (mixed & 2 ? 1.0 : 0.5);
}

struct Sums {
  double slope = 0;      // of the loss along the direction
  double magnitude = 0;  // the same with absolute values: what an error is measured by
};

Sums along(const Tensor& flow, int round) {
  const std::vector<double> values =
      work_of({flow}) > kMostWork ? flow.to_vector<double>() : evaluate(flow);
  Sums sums;
  for (size_t i = 0; i < values.size(); ++i) {
    sums.slope += values[i] * direction(i, round);
    sums.magnitude += std::fabs(values[i]);
  }
  return sums;
}

}  // namespace

void check_differences(const Entry& entry) {
  constexpr double kStep = 1e-6;
  const Values values = input_values(entry);
  const In inputs = inputs_of(entry, values, true);
  const std::vector<Tensor> outputs = entry.row.function(inputs).tensors;
  const std::vector<size_t> places = differentiated(entry.row, outputs);
  const std::vector<Tensor> flows = gradients_of(outputs, inputs, places);
  for (size_t t = 0; t < places.size(); ++t)
    for (int round = 0; round < 2; ++round) {
      const Sums sums = along(flows[t], round);
      Values above = values, below = values;
      for (size_t i = 0; i < values[places[t]].size(); ++i) {
        above[places[t]][i] += kStep * direction(i, round);
        below[places[t]][i] -= kStep * direction(i, round);
      }
      const double slope = (loss_at(entry, above) - loss_at(entry, below)) / (2 * kStep);
      EXPECT_NEAR(slope, sums.slope, 1e-6 + 2e-5 * sums.magnitude)
          << "the gradient of input " << places[t] << " along direction " << round
          << "; differences give the first value";
    }
}

}  // namespace plugrad::ops
