// Functions written as ONNX files: what they compute when they are loaded again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/settings.h"
#include "engine/session.h"
#include "plugrad/onnx.h"
#include "plugrad/plugrad.h"
#include "unit/base/temporary_directory.h"

namespace plugrad::onnx {
namespace {

class OnnxSave : public testing::Test {
 protected:
  using Tensors = std::vector<Tensor>;
  /// Writes the function, loads it, and expects that both compute the same.
  void round_trip(const TensorFunction& function, const Tensors& inputs, double tolerance = 1e-5,
                  const SaveOptions& options = {}) {
    const std::string path = directory_ / "m.onnx";
    save(function, inputs, path, options);
    const Tensors wanted = function(inputs), got = Model::load(path)(inputs);
    ASSERT_EQ(wanted.size(), got.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(wanted[i].shape(), got[i].shape());
      ASSERT_EQ(wanted[i].dtype(), got[i].dtype());
      const auto a = wanted[i].cast(DType::F64).to_vector<double>();
      const auto b = got[i].cast(DType::F64).to_vector<double>();
      ASSERT_EQ(a.size(), b.size());
      for (size_t k = 0; k < a.size(); ++k) {
        const bool is_equal = a[k] == b[k] ? std::signbit(a[k]) == std::signbit(b[k])
                                           : std::isnan(a[k]) && std::isnan(b[k]);
        if (is_equal) continue;
        ASSERT_TRUE(std::isfinite(a[k])) << i << " " << k << ": " << b[k] << " instead of " << a[k];
        ASSERT_NEAR(a[k], b[k], tolerance * (1 + std::abs(a[k]))) << i << " " << k;
      }
    }
  }
  std::string error_of(const TensorFunction& function, const Tensors& inputs) {
    try {
      save(function, inputs, directory_ / "m.onnx");
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  TemporaryDirectory directory_;
};

Tensor numbers(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(std::sin(0.37F * static_cast<float>(i)));
  return Tensor::from(values, shape);
}

TEST_F(OnnxSave, a_linear_layer_keeps_the_names_of_its_parameters) {
  const nn::Linear layer(5, 3);
  round_trip([&](const auto& x) { return std::vector{relu(layer(x[0]))}; }, {numbers({2, 5})}, 1e-5,
             {.input_names = {"x"}, .output_names = {"y"}, .parameters = nn::state_dict(layer)});
  const std::string path = directory_ / "m.onnx";
  EXPECT_EQ(to_string(Model::load(path).inputs().at(0)), "x: float (2, 5)");
  EXPECT_EQ(to_string(Model::load(path).outputs().at(0)), "y: float (2, 3)");
  std::ifstream file(path);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(bytes, testing::AllOf(testing::HasSubstr("weight"), testing::HasSubstr("bias")));
}

TEST_F(OnnxSave, convolutions_and_pools) {
  const Tensor w = numbers({6, 2, 3, 3}), b = numbers({6}), back = numbers({4, 3, 3, 3});
  const Tensor is_image = Tensor::full({2, 4, 9, 8}, true);
  const Pads border({{0, 0}, {0, 0}, {1, 0}, {1, 1}});
  round_trip(
      [&](const auto& x) {
        const Tensor y = x[0].conv2d(
            w, b, {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 2});
        return std::vector{y,
                           y.max_pool2d(2),
                           y.avg_pool2d({2, 3}, {.stride = 1, .padding = 1}),
                           y.max_pool2d(3, {.stride = 2, .padding = 1, .ceil_mode = true}),
                           is_image.pad(border).where(x[0].pad(border), 0.5).max_pool2d(2),
                           (y <= 0).where(0, y + 1.0),
                           relu(y),
                           y.exp(),
                           relu(y).log(),
                           conv_transpose2d(x[0], back, {}, {.stride = 2, .padding = 1})};
      },
      {numbers({2, 4, 9, 8})});
}

TEST_F(OnnxSave, products_of_batches_and_reads_by_index) {
  const Tensor table = numbers({7, 4});
  round_trip(
      [&](const auto& x) {
        const Tensor rows = table.index_select(0, x[1].flatten());
        return std::vector{matmul(x[0], x[0].transpose()),
                           einsum("bij,bkj->kbi", {x[0], x[0]}),
                           einsum("kj,bij->bik", {table, x[0]}),
                           rows,
                           table.gather(0, x[1].reshape({3, 2})),
                           x[0].softmax(-1),
                           x[0].layernorm()};
      },
      {numbers({2, 3, 4}), Tensor::from<int64_t>({0, 6, 2, -1, 3, 3}, {2, 3})});
}

TEST_F(OnnxSave, integers_divide_and_shift_at_their_limits) {
  constexpr int32_t least = std::numeric_limits<int32_t>::min();
  const Tensor x = Tensor::from<int32_t>({least, least, -7, 7, 7, -7, 0, 5});
  const Tensor y = Tensor::from<int32_t>({-1, 0, 2, -2, 0, -3, 5, 31});
  const TensorFunction function = [](const auto& in) {
    const Tensor &a = in[0], &b = in[1];
    return std::vector{a.floor_div(b), a % b, a << 3, a >> 2, a & b,
                       a.maximum(b),   a < b, -a,     a * b,  a.max()};
  };
  round_trip(function, {x, y}, 0);
  for (const DType dtype : {DType::I8, DType::U8, DType::U16, DType::U32, DType::I64, DType::U64})
    round_trip(function, {x.cast(dtype), y.cast(dtype)}, 0);
}

TEST_F(OnnxSave, floats_keep_nan_infinity_and_the_sign_of_zero) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const Tensor x = Tensor::from<double>({nan, inf, -inf, 0.0, -0.0, -0.5, 2.5, 1e-8});
  for (const DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64})
    round_trip(
        [](const auto& in) {
          const Tensor& v = in[0];
          return std::vector{v.trunc(), 1.0 / v,         v.maximum(0.0), v.exp(),
                             v.sqrt(),  1.0 / v.trunc(), v.sum(),        v == v};
        },
        {x.cast(dtype)},
        dtype == DType::BF16  ? 1e-2
        : dtype == DType::F16 ? 1e-3
                              : 1e-6);
}

TEST_F(OnnxSave, remainders_of_floats_are_exact) {
  const Tensor x = Tensor::from<float>({1e7F, 65504, -3e9F, 0.7F});
  const Tensor y = Tensor::from<float>({0.3F, 1e-3F, 7.1F, -0.2F});
  round_trip([](const auto& in) { return std::vector{in[0].fmod(in[1])}; }, {x, y}, 0);
}

TEST_F(OnnxSave, movement_of_empty_and_whole_tensors) {
  round_trip(
      [](const auto& x) {
        return std::vector{x[0].flip({1}),
                           x[0].pad({{1, 2}, {0, 1}}, 3.0),
                           x[0].roll({1}, {1}),
                           x[0].shrink({{1, 1}, {0, 3}}),
                           x[0].sum(),
                           x[0].max({1}),
                           x[0].shrink({{1, 1}, {0, 3}}).sum({0}),
                           Tensor::arange(3) + x[0],
                           x[0].reshape({3, 2}).permute({1, 0}),
                           x[0].cumsum(1)};
      },
      {numbers({2, 3})});
}

TEST_F(OnnxSave, loops_with_one_recorded_step) {
  const nn::LSTM lstm(3, 5, {.layers = 2, .bidirectional = true});
  round_trip(
      [&](const auto& x) {
        const auto [output, state] = lstm(x[0], {}, x[1]);
        return std::vector{output, state.h, state.c};
      },
      {numbers({4, 2, 3}), Tensor::from<int64_t>({4, 2})});
  const Tensor kept = numbers({3, 3});
  const auto step = [&](const auto& state, const auto& x) {
    const Tensor now = matmul(state[0], kept) + x[0].cast(DType::F32);
    return ScanResult{{now, state[1] + 1}, {now.sum(), now * 2}};
  };
  for (const bool reverse : {false, true})
    round_trip(
        [&](const auto& x) {
          const ScanResult all = scan(step, {x[0], Tensor(int64_t{3})}, {x[1]}, reverse);
          return std::vector{all.state[0], all.state[1], all.outputs[0], all.outputs[1]};
        },
        {numbers({2, 3}), numbers({5, 1, 3}).cast(DType::F16)});
}

// The graph that a call of the loaded loop records does not grow with the steps.
TEST_F(OnnxSave, long_loops_are_recorded_as_loops) {
  const SettingScope no_plans([this](Settings& s) { s.cache_dir = directory_ / "cache"; });
  const auto planned_nodes = [&](int64_t steps) {
    const auto sums = [](const auto& x) {
      const auto step = [](const auto& state, const auto& now) {
        return ScanResult{{(state[0] + now[0]).tanh()}, {state[0] * now[0]}};
      };
      const ScanResult all = scan(step, {x[0]}, {x[1]});
      return std::vector{all.state[0], all.outputs[0]};
    };
    const Tensors inputs = {numbers({2}), numbers({steps, 2})};
    const std::string path = directory_ / "m.onnx";
    save(sums, inputs, path);
    const auto planned = [] { return engine::Session::current().statistics().planned_nodes; };
    const uint64_t before = planned();
    for (const Tensor& result : Model::load(path)(inputs)) result.to_bytes();
    return planned() - before;
  };
  EXPECT_GT(planned_nodes(20), 0u);
  EXPECT_EQ(planned_nodes(21), planned_nodes(300));
}

TEST_F(OnnxSave, repeated_sums_and_empty_tensors) {
  round_trip(
      [](const auto& x) {
        const Tensor repeated = x[0].expand({4, 2, 3});
        const Tensor nothing = x[0].shrink({{0, 0}, {0, 3}});
        return std::vector{(repeated * repeated).sum({2}),
                           nothing.max({0}),
                           nothing.sum(),
                           cat({nothing, x[0]}, 0),
                           nothing.expand({2, 0, 3}),
                           x[0].cast(DType::F16).pad({{1, 0}, {0, 2}}, 2.0),
                           x[0].cast(DType::BF16).reshape({2, 1, 3}).expand({2, 4, 3})};
      },
      {numbers({2, 3})});
}

TEST_F(OnnxSave, half_floats_are_gathered_and_integers_added_exactly) {
  const Tensor table = numbers({5, 3}).cast(DType::F16);
  round_trip([&](const auto& x) { return std::vector{table.index_select(0, x[0]), x[0].sum()}; },
             {Tensor::from<int64_t>({4, 0, 3})}, 0);
  const TensorFunction sum = [](const auto& x) { return std::vector{x[0].sum({0})}; };
  const Tensor large = Tensor::from<int64_t>({INT64_MAX, 1, -3, 0, INT64_MAX - 7, 9}, {2, 3});
  const std::string path = directory_ / "m.onnx";
  save(sum, {large}, path);
  EXPECT_THAT(Model::load(path)({large})[0].to_vector<int64_t>(),
              testing::ElementsAre(INT64_MAX, INT64_MAX - 6, 6));
  round_trip([](const auto& x) { return std::vector{x[0].prod({1}), x[0].prod()}; }, {large}, 0);
}

TEST_F(OnnxSave, bits_of_floats_are_computed) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const Tensor x = Tensor::from<double>({0.0, -0.0, 1.0, -1.5, inf, -inf, 65504, 6e-8, -1e-40, 3e38,
                                         5e-324, 2.2250738585072014e-308, -1e300, 0.1});
  const std::pair<DType, DType> pairs[] = {{DType::F16, DType::U16},
                                           {DType::BF16, DType::I16},
                                           {DType::F32, DType::I32},
                                           {DType::F32, DType::U32},
                                           {DType::F64, DType::U64}};
  for (const auto& [real, whole] : pairs)
    round_trip([whole](const auto& in) { return std::vector{in[0].bitcast(whole)}; },
               {x.cast(real)}, 0);
  for (const auto& [real, whole] : pairs)
    round_trip([real](const auto& in) { return std::vector{in[0].bitcast(real)}; },
               {x.cast(real).bitcast(whole)}, 0);
}

TEST_F(OnnxSave, sorts_of_floats_of_any_length) {
  const Tensor few = Tensor::from<float>({2, -0.0F, NAN, -INFINITY, 0, INFINITY, -3, 2, 1e-42F});
  const TensorFunction sorts = [](const auto& x) {
    const auto [up, order] = x[0].sort(-1);
    const auto [top, where] = x[0].topk(3, -1);
    return std::vector{up, order, top, where, x[0].argsort(-1, true)};
  };
  round_trip(sorts, {few}, 0);
  round_trip(sorts, {numbers({300}).cast(DType::F16)}, 0);
}

TEST_F(OnnxSave, larger_initialisers_are_beside_the_file_on_request) {
  const Tensor w = numbers({64, 64}), v = numbers({64, 8}) + 1.0, small = numbers({8});
  SaveOptions options;
  options.external_data = true;
  round_trip([&](const auto& x) { return std::vector{matmul(matmul(x[0], w), v) + small}; },
             {numbers({2, 64})}, 1e-5, options);
  EXPECT_EQ(std::filesystem::file_size(directory_ / "m.onnx.data"), 64 * (64 + 8) * sizeof(float));
}

TEST_F(OnnxSave, refuses_random_numbers_and_assignments_and_undoes_them) {
  Tensor count = Tensor::from<float>({1, 2});
  Tensor::manual_seed(5);
  const auto drawn = Tensor::rand({3}).to_vector<float>();
  Tensor::manual_seed(5);
  const std::string error = error_of(
      [&](const auto& x) {
        count.assign(count + 1.0);
        return std::vector{x[0] + Tensor::rand({2}) + count};
      },
      {numbers({2})});
  EXPECT_THAT(error, testing::HasSubstr("random numbers"));
  EXPECT_THAT(error, testing::HasSubstr("assignments to 1 tensors"));
  EXPECT_THAT(count.to_vector<float>(), testing::ElementsAre(1, 2));
  EXPECT_EQ(Tensor::rand({3}).to_vector<float>(), drawn);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "m.onnx"));
}

TEST_F(OnnxSave, a_model_from_a_file_and_a_jitted_function_become_parts) {
  const Tensor w = numbers({4, 3});
  const std::string first = directory_ / "first.onnx";
  save([&](const auto& x) { return std::vector{relu(matmul(x[0], w))}; }, {numbers({2, 4})}, first);
  const Model model = Model::load(first);
  const auto twice = jit([](const Tensor& x) { return x * 2; });
  const Tensor x = numbers({2, 4});
  for (int calls = 0; calls < 3; ++calls)  // also after both have recordings
    round_trip([&](const auto& in) { return std::vector{twice(model(in)[0]) + 1}; }, {x});
}

}  // namespace
}  // namespace plugrad::onnx
