// Layers, optimisers and schedules against PyTorch in float64: the rows of vectors.h.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "plugrad/nn.h"
#include "plugrad/optim.h"

using namespace plugrad;

namespace {

Tensor wave(const Shape& shape, double first, double step = 0.7) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(std::sin(first + step * static_cast<double>(i)));
  return Tensor::from(values, shape);
}

Tensor mask() {
  return Tensor::from<bool>({true, false, true, true, true, false, false, true, true}, Shape{3, 3});
}

/// The layer with waves as its weights, in the order of the state dictionary.
template <class Layer>
Layer with_waves(Layer layer) {
  double first = 0;
  for (auto& [name, tensor] : nn::state_dict(layer)) {
    Tensor weight = tensor;
    weight.assign(wave(tensor.shape(), first += 0.2).cast(tensor.dtype()));
  }
  return layer;
}

struct LayerRow {
  const char* text;
  Shape shape;
  std::function<Tensor(const Tensor&)> call;
  std::vector<double> value, gradient;
};
struct OptimiserRow {
  const char* text;
  std::function<void(const std::vector<Tensor>&)> run;
  std::vector<double> end;
};
struct ScheduleRow {
  const char* text;
  optim::Schedule schedule;
  std::vector<double> rates;
};

template <class Optimiser>
void five_steps(Optimiser optimiser, const std::vector<Tensor>& p) {
  const DType dtype = p[0].dtype();
  for (int step = 0; step < 5; ++step) {
    optimiser.zero_grad();
    const Tensor y = wave({4, 3}, 0.5).cast(dtype).matmul(p[0]) + p[1];
    (y - wave({4, 2}, 0.9).cast(dtype)).square().mean().backward();
    optimiser.step();
  }
}

#include "vectors.h"

void expect_vector_near(const Tensor& tensor, const std::vector<double>& expected,
                        double tolerance) {
  const std::vector<double> values = tensor.to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i])))
        << "at " << i;
}

}  // namespace

TEST(Vectors, LayersComputeWhatPyTorchDoes) {
  for (const LayerRow& row : kLayers) {
    SCOPED_TRACE(row.text);
    Tensor x = wave(row.shape, 0.1).cast(DType::F32).realize();
    x.requires_grad_();
    const Tensor y = row.call(x);
    expect_vector_near(y, row.value, 3e-6);
    std::vector<double> seed;
    for (int64_t i = 0; i < y.numel(); ++i)
      seed.push_back(std::cos(0.3 + 0.5 * static_cast<double>(i)));
    (y * Tensor::from(seed, y.shape()).cast(DType::F32)).sum().backward();
    expect_vector_near(x.grad(), row.gradient, 1e-5);
  }
}

TEST(Vectors, OptimisersTakeTheStepsOfPyTorch) {
  for (DType dtype : {DType::F64, DType::F32}) {
    for (const OptimiserRow& row : kOptimisers) {
      SCOPED_TRACE(row.text + std::string(" ") + std::string(name_of(dtype)));
      std::vector<Tensor> p = {wave({3, 2}, 0.2).cast(dtype).contiguous().realize(),
                               wave({2}, 0.4).cast(dtype).contiguous().realize()};
      for (Tensor& parameter : p) parameter.requires_grad_();
      row.run(p);
      // Muon steps by singular vectors, which amplifies roundings of f32.
      const double tolerance = dtype == DType::F64 ? 1e-12 : 3e-5;
      expect_vector_near(cat({p[0].flatten(), p[1]}).detach(), row.end, tolerance);
    }
  }
}

TEST(Vectors, SchedulesHaveTheRatesOfPyTorch) {
  for (const ScheduleRow& row : kSchedules) {
    SCOPED_TRACE(row.text);
    for (size_t step = 0; step < row.rates.size(); ++step)
      EXPECT_NEAR(row.schedule(static_cast<int64_t>(step)), row.rates[step], 1e-14) << step;
  }
  optim::ReduceOnPlateau plateau(0.5, {.factor = 0.5, .patience = 2, .cooldown = 1, .min_lr = 0.1});
  for (size_t i = 0; i < kPlateauValues.size(); ++i) {
    plateau.check(kPlateauValues[i]);
    EXPECT_NEAR(plateau.rate(), kPlateauRates[i], 1e-14) << i;
  }
}
