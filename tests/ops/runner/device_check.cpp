// Compares the device with the evaluator.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/runner/check.h"
#include "ops/runner/inputs.h"
#include "ops/runner/work.h"

namespace plugrad::ops {
namespace {

bool near(double got, double want, Bound bound) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::fabs(got - want) <= bound.absolute + bound.relative * std::fabs(want);
}

void compare(const Tensor& tensor, const std::vector<double>& want, Bound bound,
             const std::string& what) {
  const std::vector<double> got = tensor.to_vector<double>();
  if (!is_float(tensor.dtype())) bound = {0, 0};
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_TRUE(near(got[i], want[i], bound)) << what << ", element " << i << ": the device gives "
                                              << got[i] << ", the evaluator " << want[i];
}

}  // namespace

void check_against_evaluator(const Entry& entry) {
  const Case& row = entry.row;
  const In inputs = inputs_of(entry, input_values(entry), false);
  std::vector<Tensor> tensors = row.function(inputs).tensors;
  const size_t outputs = tensors.size();
  const auto flows = gradients_of(tensors, inputs, differentiated(row, tensors));
  tensors.insert(tensors.end(), flows.begin(), flows.end());
  std::vector<std::vector<double>> wanted;
  if (work_of(tensors) > kMostWork) GTEST_SKIP() << "too large for the evaluator";
  for (const Tensor& tensor : tensors) wanted.push_back(evaluate(tensor));
  Tensor::realize(tensors);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool forward = i < outputs;
    compare(tensors[i], wanted[i], forward ? row.checks.forward : *row.checks.backward,
            forward ? "output " + std::to_string(i) : "gradient " + std::to_string(i - outputs));
  }
}

}  // namespace plugrad::ops
