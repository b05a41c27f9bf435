// Functions that need every index of an axis (sorting, gathering, windows, joining) along an axis
// of variable size: values and gradients equal those of fixed sizes, whatever the memory behind the
// size holds, with one recording.
#include "jit/variable_cases.h"

using namespace plugrad;
using testing::HasSubstr;

namespace {

Tensor function_places(const std::vector<int32_t>& numbers) {
  return Tensor::from(numbers);
}

/// For each row the index of a row, some negative.
Tensor places_of(const Tensor& x) {
  return (x.sum(1) > 0).cast(DType::I32) - 1;
}

Tensor whole_numbers(const Tensor& x) {
  return x.round();  // with equals
}

// clang-format off
std::vector<Case> function_cases() {
  const Tensor w = numbers({3, 6, 3}, 5), image_w = numbers({2, 1, 3, 2}, 6), front = numbers({2, 6}, 7);
  const auto image = [](const Tensor& x) { return x.transpose().unsqueeze(0); };  // (1, 6, n)
  const ConvTransposeOptions in_groups{.stride = 2, .groups = 2},
      by_two{.stride = 2, .padding = 1, .output_padding = 1};
  return {
      {"sort", [=](const Tensor& x) { return x.sort(0).first; }},
      {"sort down", [=](const Tensor& x) { return x.sort(0, true).first; }},
      {"sort beside", [=](const Tensor& x) { return x.sort(1).first; }},
      {"argsort with equals", [=](const Tensor& x) { return whole_numbers(x).argsort(0).cast(DType::F32); }},
      {"argsort down with equals",
       [=](const Tensor& x) { return whole_numbers(x).argsort(0, true).cast(DType::F32); }},
      {"sort with NaN",
       [=](const Tensor& x) { return where(x > 2, std::nan(""), where(x < -2, -HUGE_VAL, x)).sort(0).first; }},
      {"sort with inf down",
       [=](const Tensor& x) { return where(x > 2, HUGE_VAL, where(x < -2, -HUGE_VAL, x)).sort(0, true).first; }},
      {"sort integers", [=](const Tensor& x) { return x.cast(DType::I64).sort(0).first.cast(DType::F32); }},
      {"sort bytes", [=](const Tensor& x) { return x.abs().cast(DType::U8).sort(0, true).first.cast(DType::F32); }},
      {"topk", [=](const Tensor& x) { return x.topk(1, 0).first; }},
      {"least of them", [=](const Tensor& x) { return x.topk(1, 0, false).second.cast(DType::F32); }},
      {"topk beside", [=](const Tensor& x) { return x.topk(2, 1).first; }},
      {"long sort", [=](const Tensor& x) { return x.repeat({1, 50}).flatten().sort(0).first; }},
      {"long topk", [=](const Tensor& x) { return (x.repeat({1, 200}).flatten() + 0.5).topk(3, 0).first; }},
      {"argmin", [=](const Tensor& x) { return x.argmin(0).cast(DType::F32); }},
      {"gather along", [=](const Tensor& x) { return x.gather(0, whole_numbers(x).argsort(0)); }},
      {"gather beside", [=](const Tensor& x) { return x.gather(1, (x > 0).cast(DType::I32)); }},
      {"gather of few", [=](const Tensor& x) { return x.gather(0, Tensor::zeros({1, 6}, DType::I32) - 1); }},
      {"rows by places", [=](const Tensor& x) { return x.index_select(0, function_places({0, -1})); }},
      {"rows by places of rows", [=](const Tensor& x) { return x.index_select(0, places_of(x)); }},
      {"index of a row", [=](const Tensor& x) { return x[function_places({-1, 0})]; }},
      {"last row", [=](const Tensor& x) { return x[-1]; }},
      {"flip", [=](const Tensor& x) { return x.flip({0, 1}); }},
      {"scatter along",
       [=](const Tensor& x) { return x.scatter(0, whole_numbers(x).argsort(0), x * 2); }},
      {"sums at rows",
       [=](const Tensor& x) {
         return front.scatter(0, where(x > 0, 1, 0) - 1, x, Combine::Sum);
       }},
      {"sums at its own rows",
       [=](const Tensor& x) { return x.scatter(0, places_of(x).unsqueeze(1).expand({-1, 6}), x + 1, Combine::Sum); }},
      {"maximum at rows",
       [=](const Tensor& x) { return front.scatter(0, where(x > 0, 1, 0), x, Combine::Max); }},
      {"selected", [=](const Tensor& x) { return x.masked_select(x > 0, 20, -5); }},
      {"nonzero", [=](const Tensor& x) { return (x > 0).nonzero(30).cast(DType::F32); }},
      {"join of three", [=](const Tensor& x) { return cat({x, front, x * 2}, 0); }},
      {"join and sum", [=](const Tensor& x) { return cat({x, x + 1}, 0).softmax(0).sum(0); }},
      {"join before", [=](const Tensor& x) { return cat({x, front}, 0); }},
      {"long cumsum",  // of whole numbers: the blocks that are added up depend on the most elements
       [=](const Tensor& x) { return x.round().repeat({1, 50}).flatten().cumsum(0); }},
      {"convolution", [=](const Tensor& x) { return conv1d(image(x), w, {}, {.padding = 1}); }},
      {"convolution with strides",
       [=](const Tensor& x) { return conv1d(image(x), w, numbers({3}), {.stride = 3, .padding = 2, .dilation = 2}); }},
      {"transposed convolution",
       [=](const Tensor& x) { return conv_transpose1d(image(x), w.transpose(0, 1), {}, by_two); }},
      {"transposed batch", [=](const Tensor& x) { return conv_transpose1d(x.reshape({-1, 2, 3}), front.unsqueeze(1), {}, in_groups); }},
      {"image", [=](const Tensor& x) { return conv2d(x.reshape({1, 1, -1, 6}), image_w, {}, {.padding = {1, 0}}).relu().mean(2); }},
      {"maximum of windows", [=](const Tensor& x) { return max_pool1d(image(x), 3, {.stride = 2, .padding = 1}); }},
      {"maximum of windows up", [=](const Tensor& x) { return max_pool1d(image(x), 3, {.stride = 2, .padding = 1, .ceil_mode = true}); }},
      {"place of a maximum",
       [=](const Tensor& x) { return max_pool1d_with_places(image(x), 3, {.stride = 1, .padding = 1}).second.cast(DType::F32); }},
      {"mean of windows", [=](const Tensor& x) { return avg_pool1d(image(x), 1); }},
      {"mean of windows with padding", [=](const Tensor& x) { return avg_pool1d(image(x), 3, {.stride = 2, .padding = 1}); }},
      {"mean of windows without padding",
       [=](const Tensor& x) {
         const PoolOptions elements{.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false};
         return avg_pool1d(image(x), 3, elements);
       }},
      {"windows and a sum", [=](const Tensor& x) { return max_pool1d(image(x), 3, {.stride = 2, .padding = 1}).prod(2); }},
  };
}
// clang-format on

TEST(VariableFunctions, GiveWhatTensorsOfThoseSizesGive) {
  const OnDevice reference("REFERENCE");
  for (const Case& each : function_cases())
    for (int64_t n : {int64_t{1}, int64_t{2}, int64_t{7}, kMost}) {
      const Tensor x = numbers({n, 6}, static_cast<int>(n));
      const Tensor expected = each.function(x);
      const std::string what = each.name + " of " + std::to_string(n);
      expect_near(each.function(fit_in_nans(x, 0)), expected, what + " in NaNs");
      expect_near(each.function(fit_before(x, 0, HUGE_VAL)), expected, what + " before infinities");
    }
}

TEST(VariableFunctions, OneRecordingServesSizesOnTheDefaultDevice) {
  for (const Case& each : function_cases()) expect_one_recording(each, {1, 2, 8, kMost});
}

TEST(VariableFunctions, GradientsAreThoseOfTheElements) {
  const OnDevice reference("REFERENCE");
  for (const Case& each : function_cases())
    for (int64_t n : {int64_t{1}, int64_t{7}, kMost}) {
      if (each.name.find("NaN") != std::string::npos || each.name.find("inf") != std::string::npos)
        continue;
      const auto gradient_of = [&](const Tensor& x) {
        const Tensor y = each.function(x);
        return gradient((y * y).sum() + (x * x).sum(), {x})[0];
      };
      const Tensor x = numbers({n, 6}, static_cast<int>(n));
      expect_near(gradient_of(fit_in_nans(x, 0)), gradient_of(x),
                  each.name + " of " + std::to_string(n));
    }
}

// Long axes use other algorithms: a sorting network, and kernels that loop over indices.
TEST(VariableFunctions, OfLongAxes) {
  const Variable rows("rows", 3, 700);
  const auto expected = [](const Tensor& x) {
    const Tensor at = x.argsort(0), back = x.flip(0);
    return std::vector<Tensor>{x.sort(0, true).first,
                               x.topk(3, 0).first,
                               x.gather(0, at),
                               back,
                               x.scatter(0, at % 5, x, Combine::Sum),
                               cat({x, back, x}, 0),
                               x.cummax(0).first};
  };
  const auto step = jit(expected);
  const auto gradient_of = [](const Tensor& x) {
    return gradient((x.gather(0, x.argsort(0)) * x.flip(0)).sum(), {x})[0];
  };
  const Tensor room = numbers({700, 2}, 3);
  for (int64_t n : {700, 3, 257, 64, 699}) {
    const Tensor x = rows.limit(room, 0, rows.bind(n)), alone = room.slice(0, {0, n}).contiguous();
    const std::vector<Tensor> got = step(x), want = expected(alone);
    for (size_t i = 0; i < want.size(); ++i)
      expect_near(got[i], want[i], std::to_string(i) + " of " + std::to_string(n));
    expect_near(gradient_of(x), gradient_of(alone), "gradient of " + std::to_string(n));
  }
  EXPECT_EQ(step.recordings(), 1u);
}

// A mask on the sum does not prevent its operands from being staged in scratch.
TEST(VariableFunctions, AProductOverAVariableSizeIsStagedAsOneOverAFixedSize) {
  const Variable inner("inner", 1, 1024);
  const Tensor x = numbers({1024, 1024}).realize(), y = numbers({1024, 1024}, 1).realize(),
               n = inner.bind(1000);
  const auto copies = [](const Tensor& product) {
    const std::string list = product.schedule()[0].optimisations();
    int64_t count = 0;
    for (size_t at = 0; (at = list.find("stage(", at)) != list.npos; ++at) ++count;
    return count;
  };
  EXPECT_EQ(copies(inner.limit(x, 1, n).matmul(inner.limit(y, 0, n))), copies(x.matmul(y)));
  EXPECT_EQ(copies(inner.limit(x, 0, n).transpose().matmul(inner.limit(y, 0, n))),
            copies(x.transpose().matmul(y)));
}

// The gradient of a limited parameter has the full parameter's size.
TEST(VariableFunctions, TheGradientOfWhatIsLimitedHasItsSize) {
  const Tensor table = numbers({kMost, 2}).requires_grad_();
  const Tensor both = length().limit(table, 0, 4).square().sum() + table.sum();
  const Tensor g = gradient(both, {table})[0];
  EXPECT_EQ(to_string(g.bound_shape()), "(11, 2)");
  const std::vector<float> got = floats(g), x = floats(table);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_FLOAT_EQ(got[i], 1 + (i < 8 ? 2 * x[i] : 0)) << i;
}

}  // namespace
