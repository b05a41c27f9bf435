// Products of quantised numbers against the specification's numbers, computed exactly.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "plugrad/onnx.h"
#include "plugrad/plugrad.h"
#include "unit/onnx/model_bytes.h"

namespace plugrad::onnx {
namespace {

constexpr int64_t kI32 = 6, kU8 = 2, kI8 = 3;

// sums of columns of x times rows of w, plus the bias, in steps of a result with the scale 1.
struct Layer {
  int64_t terms, columns, rows = 3;
  uint8_t x_zero = 0;
  int8_t w_zero = 0;
  float x_scale = 1;
  std::vector<float> w_scales = {1, 1, 1};  // by row of w
  std::vector<int32_t> bias = {0, 0, 0};
  std::vector<uint8_t> x{};  // terms x columns
  std::vector<int8_t> w{};   // rows x terms
};

// The sums are of 29 bits and the scale of 24, so that a double holds each product.
template <class Result>
std::vector<Result> by_integers(const Layer& layer, Result zero) {
  std::vector<Result> results;
  for (int64_t r = 0; r < layer.rows; ++r)
    for (int64_t c = 0; c < layer.columns; ++c) {
      int64_t sum = layer.bias[static_cast<size_t>(r)];
      for (int64_t t = 0; t < layer.terms; ++t)
        sum += (layer.x[static_cast<size_t>(t * layer.columns + c)] - layer.x_zero) *
               (layer.w[static_cast<size_t>(r * layer.terms + t)] - layer.w_zero);
      const float scale = layer.x_scale * layer.w_scales[static_cast<size_t>(r)];
      const double steps = std::nearbyint(static_cast<double>(sum) * scale) + zero;
      using Limits = std::numeric_limits<Result>;
      results.push_back(static_cast<Result>(
          std::min<double>(std::max<double>(steps, Limits::min()), Limits::max())));
    }
  return results;
}

template <class T>
Message stored(std::string_view name, int64_t type, const std::vector<int64_t>& dims,
               const std::vector<T>& elements) {
  Message made;
  for (const int64_t size : dims) made.integer(1, size);
  std::string raw(elements.size() * sizeof(T), '\0');
  std::memcpy(raw.data(), elements.data(), raw.size());
  return made.integer(2, type).text(8, name).text(9, raw);
}

template <class Result>
std::vector<Result> by_conv(const Layer& layer, Result zero, int64_t type) {
  const int64_t rows = layer.rows, terms = layer.terms, columns = layer.columns;
  const std::string bytes = model_of_bytes(
      Message()
          .message(1,
                   node("QLinearConv", {"x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"}, {"y"}))
          .message(5, constant("xs", {}, {layer.x_scale}))
          .message(5, stored<uint8_t>("xz", kU8, {}, {layer.x_zero}))
          .message(5, stored("w", kI8, {rows, terms, 1, 1}, layer.w))
          .message(5, constant("ws", {rows}, layer.w_scales))
          .message(5, stored<int8_t>("wz", kI8, {}, {layer.w_zero}))
          .message(5, constant("ys", {}, {1}))
          .message(5, stored<Result>("yz", type, {}, {zero}))
          .message(5, stored("b", kI32, {rows}, layer.bias))
          .message(11, value("x", tensor_type(kU8, {1, terms, 1, columns})))
          .message(12, value("y", tensor_type(type, {1, rows, 1, columns}))));
  const Model model = Model::from_bytes(std::as_bytes(std::span(bytes)));
  return model({Tensor::from(layer.x, {1, terms, 1, columns})})[0].template to_vector<Result>();
}

void fill(Layer& layer, uint32_t seed) {
  std::mt19937 random(seed);
  for (int64_t i = 0; i < layer.terms * layer.columns; ++i)
    layer.x.push_back(static_cast<uint8_t>(random()));
  for (int64_t i = 0; i < layer.rows * layer.terms; ++i)
    layer.w.push_back(static_cast<int8_t>(random()));
}

// One term: all sums from -255 to 255, with halves, numbers beside halves, and both ends.
TEST(OnnxQuantised, halves_round_to_even_and_neighbours_of_halves_do_not) {
  Layer layer{.terms = 1, .columns = 256, .w = {1, -1, 127}};
  for (int x = 0; x < 256; ++x) layer.x.push_back(static_cast<uint8_t>(x));
  const float half = 0.5F, above = std::nextafter(half, 1.0F), below = std::nextafter(half, 0.0F);
  for (const float scale : {half, above, below, 1.5F, 0.25F, 1.0F / 3, 0.1F})
    for (const uint8_t x_zero : {uint8_t{0}, uint8_t{127}}) {
      layer.x_scale = scale;
      layer.x_zero = x_zero;
      layer.bias = {1, -3, 5000};
      EXPECT_EQ(by_conv<uint8_t>(layer, 128, kU8), by_integers<uint8_t>(layer, 128)) << scale;
      EXPECT_EQ(by_conv<uint8_t>(layer, 3, kU8), by_integers<uint8_t>(layer, 3)) << scale;
      EXPECT_EQ(by_conv<int8_t>(layer, -7, kI8), by_integers<int8_t>(layer, -7)) << scale;
    }
}

// 128 * 128 * 1,024 = 2^24 is the last sum that f32 holds with all others: beyond it, sums and
// biases are of i32.
TEST(OnnxQuantised, sums_are_exact_around_the_largest_that_f32_holds) {
  for (const int64_t terms : {7, 1023, 1024, 1025, 3000}) {
    Layer layer{.terms = terms,
                .columns = 40,
                .x_zero = 128,
                .x_scale = 0.003F,
                .w_scales = {0.01F, 0.037F, 0.5F}};
    fill(layer, static_cast<uint32_t>(terms));
    for (int64_t t = 0; t < terms; ++t) {  // the largest sum, less 1 for each row
      layer.x[static_cast<size_t>(t * layer.columns)] = 0;
      layer.w[static_cast<size_t>(t)] = -128;
    }
    layer.w[0] = -127;
    for (const float largest : {0x1p-24F, 1.5F * 0x1p-23F, 0x1p-20F}) {
      layer.w_scales[0] = largest * 25;  // a few steps, with halves
      for (const int32_t bias : {-5, 1 << 23, 1 << 28}) {
        layer.bias = {bias, -bias, 3};
        EXPECT_EQ(by_conv<uint8_t>(layer, 128, kU8), by_integers<uint8_t>(layer, 128))
            << terms << " terms, bias " << bias;
      }
    }
  }
}

template <class T>
Tensor bytes_of(const std::vector<T>& elements) {
  return Tensor::from(elements, Shape{2, 2});
}

// Nothing is known while the model is recorded.
TEST(OnnxQuantised, scales_and_zero_points_may_be_inputs) {
  const std::string bytes = model_of_bytes(
      Message()
          .message(1, node("QLinearMatMul", {"x", "xs", "xz", "w", "ws", "wz", "ys", "yz"}, {"y"}))
          .message(11, value("x", tensor_type(kU8, {2, 2})))
          .message(11, value("xs", tensor_type(1, {})))
          .message(11, value("xz", tensor_type(kU8, {})))
          .message(11, value("w", tensor_type(kI8, {2, 2})))
          .message(11, value("ws", tensor_type(1, {})))
          .message(11, value("wz", tensor_type(kI8, {})))
          .message(11, value("ys", tensor_type(1, {})))
          .message(11, value("yz", tensor_type(kU8, {})))
          .message(12, value("y", tensor_type(kU8, {2, 2}))));
  const Model model = Model::from_bytes(std::as_bytes(std::span(bytes)));
  const auto scalar = [](auto number) { return Tensor::full({}, number); };
  const auto y =
      model({bytes_of<uint8_t>({10, 20, 255, 0}), scalar(0.5F), Tensor::full({}, 4, DType::U8),
             bytes_of<int8_t>({1, -2, 3, 4}), scalar(2.0F), Tensor::full({}, 1, DType::I8),
             scalar(4.0F), Tensor::full({}, 100, DType::U8)})[0];
  // (6, 16; 251, -4) times (0, -3; 2, 3) = (32, 30; -8, -765), a quarter of it plus 100
  EXPECT_EQ(y.to_vector<uint8_t>(), (std::vector<uint8_t>{108, 108, 98, 0}));
}

TEST(OnnxQuantised, floats_are_quantised_with_halves_to_even) {
  const std::string bytes =
      model_of_bytes(Message()
                         .message(1, node("QuantizeLinear", {"x", "s", "z"}, {"y"}))
                         .message(5, constant("s", {}, {2}))
                         .message(5, stored<int8_t>("z", kI8, {}, {3}))
                         .message(11, value("x", {8}))
                         .message(12, value("y", tensor_type(kI8, {8}))));
  const Model model = Model::from_bytes(std::as_bytes(std::span(bytes)));
  const Tensor x = Tensor::from({1.0F, 3.0F, -1.0F, -3.0F, 1e30F, -INFINITY, 247.0F, -0.9F});
  EXPECT_EQ(model({x})[0].to_vector<int8_t>(),
            (std::vector<int8_t>{3, 5, 3, 1, 127, -128, 127, 3}));
}

}  // namespace
}  // namespace plugrad::onnx
