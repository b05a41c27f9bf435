// Fourier transforms, window functions and mel filters.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/binding.h"
#include "base/check.h"
#include "onnx/ops/tables.h"
#include "plugrad/functional.h"

namespace plugrad::onnx {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr int64_t kMostDirect = 256;  // elements of a transform that is one product of matrices

Tensor of_numbers(const std::vector<double>& numbers, Shape shape, DType dtype) {
  if (dtype == DType::F64) return Tensor::from(numbers, std::move(shape));
  return Tensor::from(std::vector<float>(numbers.begin(), numbers.end()), std::move(shape))
      .cast(dtype);
}

struct Complex {
  Tensor real, imaginary;  // imaginary is undefined for real numbers
};

Complex product(const Complex& a, const Complex& b) {
  if (!a.imaginary.defined()) return {a.real * b.real, a.real * b.imaginary};
  return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}

// exp(-2 pi i j k / n) for j < rows and k < columns.
Complex roots(int64_t rows, int64_t columns, int64_t n, DType dtype) {
  require_host_elements({rows, columns});
  std::vector<double> cosines, sines;
  for (int64_t j = 0; j < rows; ++j)
    for (int64_t k = 0; k < columns; ++k) {
      poll_interruption();
      const double angle = -2 * kPi * static_cast<double>(j * k % n) / static_cast<double>(n);
      cosines.push_back(std::cos(angle));
      sines.push_back(std::sin(angle));
    }
  return {of_numbers(cosines, {rows, columns}, dtype), of_numbers(sines, {rows, columns}, dtype)};
}

// The largest divisor of n up to kMostDirect.
int64_t direct_factor(int64_t n) {
  for (int64_t factor = std::min(n, kMostDirect); factor > 1; --factor)
    if (n % factor == 0) return factor;
  return 1;
}

// Along the last axis. A long transform is one of each column of (a, n / a), a rotation, and one of
// each row. Source: Cooley and Tukey 1965.
Complex transform(const Complex& x) {
  const int64_t n = x.real.size(-1), a = direct_factor(n);
  const DType dtype = x.real.dtype();
  if (n <= kMostDirect || a == 1) {
    const Complex w = roots(n, n, n, dtype);
    const Tensor real = x.real.matmul(w.real), imaginary = x.real.matmul(w.imaginary);
    if (!x.imaginary.defined()) return {real, imaginary};
    return {real - x.imaginary.matmul(w.imaginary), imaginary + x.imaginary.matmul(w.real)};
  }
  const int64_t b = n / a;
  const auto columns = [&](const Tensor& part) {
    return part.defined() ? part.unflatten(-1, {a, b}).transpose() : Tensor();
  };
  const Complex inner = transform({columns(x.real), columns(x.imaginary)});  // (b, a)
  const Complex turned = product(inner, roots(b, a, n, dtype));
  const Complex outer = transform({turned.real.transpose(), turned.imaginary.transpose()});
  return {outer.real.transpose().flatten(-2), outer.imaginary.transpose().flatten(-2)};
}

// Parts of the last axis, of one number or two.
Complex complex_parts(const Tensor& x) {
  const Tensor wide = size_of(x.dtype()) < 4 ? x.cast(DType::F32) : x;
  if (x.size(-1) == 1) return {wide.squeeze(-1), {}};
  return {wide.slice(-1, {0, 1}).squeeze(-1), wide.slice(-1, {1, 2}).squeeze(-1)};
}

// Zeros after, or elements left out.
Tensor with_length(const Tensor& x, int64_t length) {
  const int64_t missing = length - x.size(-1);
  if (missing <= 0) return x.slice(-1, {0, length});
  std::vector<Pads::Pair> pads(static_cast<size_t>(x.ndim()));
  pads.back() = {0, missing};
  return x.pad(pads);
}

// The whole spectrum of a real signal from its first half.
Complex whole_spectrum(const Complex& half, int64_t length) {
  const int64_t bins = length / 2 + 1;
  const Tensor real = with_length(half.real, bins);
  const Tensor imaginary =
      half.imaginary.defined() ? with_length(half.imaginary, bins) : real.zeros_like();
  const Slice rest{1, length - bins + 1};
  return {cat({real, real.slice(-1, rest).flip(-1)}, -1),
          cat({imaginary, -imaginary.slice(-1, rest).flip(-1)}, -1)};
}

Values dft(Call& call) {
  const Tensor x = call[0];
  int64_t axis = call.opset() < 20 ? call.integer("axis", 1)
                 : call.has(2)     ? call.integer_input(2)
                                   : -2;
  if (axis < 0) axis += x.ndim();
  if (axis < 0 || axis >= x.ndim() - 1) call.wrong(fmt::format("axis {} is no signal axis", axis));
  const bool is_inverse = call.integer("inverse", 0) != 0,
             is_half = call.integer("onesided", 0) != 0;
  const int64_t size = x.size(axis);
  const int64_t length = call.has(1)             ? call.integer_input(1)
                         : is_inverse && is_half ? 2 * (size - 1)
                                                 : size;
  if (length <= 0) call.wrong(fmt::format("the transform has {} elements", length));
  require_host_elements({length});
  const auto moved = [&](const Tensor& part) {
    return part.defined() ? part.transpose(axis, -1) : part;
  };
  Complex parts = complex_parts(x);
  parts = {moved(parts.real), moved(parts.imaginary)};
  if (is_inverse && is_half) {
    parts = whole_spectrum(parts, length);
  } else {
    parts.real = with_length(parts.real, length);
    if (parts.imaginary.defined()) parts.imaginary = with_length(parts.imaginary, length);
  }
  // The inverse is the transform of the conjugate, conjugated.
  if (is_inverse && parts.imaginary.defined()) parts.imaginary = -parts.imaginary;
  Complex result = transform(parts);
  if (is_inverse) {
    result = {result.real / static_cast<double>(length),
              -result.imaginary / static_cast<double>(length)};
    if (is_half) return {moved(result.real).unsqueeze(-1).cast(x.dtype())};
  } else if (is_half) {
    result = {with_length(result.real, length / 2 + 1),
              with_length(result.imaginary, length / 2 + 1)};
  }
  return {stack({moved(result.real), moved(result.imaginary)}, -1).cast(x.dtype())};
}

Values stft(Call& call) {
  const Tensor x = call[0].ndim() == 2 ? call[0].unsqueeze(-1) : call[0];
  const int64_t step = call.integer_input(1);
  const int64_t length = call.has(3)   ? call.integer_input(3)
                         : call.has(2) ? call[2].size(0)
                                       : x.size(1);
  if (step <= 0 || length <= 0 || length > x.size(1))
    call.wrong(
        fmt::format("frames of {} elements, {} apart, of a signal of {}", length, step, x.size(1)));
  require_host_elements({length});
  const auto framed = [&](const Tensor& part) {
    if (!part.defined()) return part;
    const Tensor frames = part.unfold(1, length, step);
    return call.has(2) ? frames * call[2].cast(frames.dtype()) : frames;
  };
  const Complex parts = complex_parts(x);
  const Complex result = transform({framed(parts.real), framed(parts.imaginary)});
  const int64_t bins = call.integer("onesided", 1) != 0 ? length / 2 + 1 : length;
  return {stack({with_length(result.real, bins), with_length(result.imaginary, bins)}, -1)
              .cast(x.dtype())};
}

// The window a - b cos(t) + c cos(2 t), t from 0 to 2 pi. Source: Harris 1978.
Values window(Call& call, double a, double b, double c) {
  const int64_t size = call.integer_input(0);
  const int64_t period = call.integer("periodic", 1) != 0 ? size : size - 1;
  require_host_elements({size});
  std::vector<double> numbers;
  for (int64_t i = 0; i < size; ++i) {
    poll_interruption();
    const double t =
        2 * kPi * static_cast<double>(i) / static_cast<double>(std::max<int64_t>(period, 1));
    numbers.push_back(a - b * std::cos(t) + c * std::cos(2 * t));
  }
  return {of_numbers(numbers, {size}, call.dtype("output_datatype").value_or(DType::F32))};
}
Values hann_window(Call& call) {
  return window(call, 0.5, 0.5, 0);
}
Values hamming_window(Call& call) {
  return window(call, 25.0 / 46, 21.0 / 46, 0);
}
Values blackman_window(Call& call) {
  return window(call, 0.42, 0.5, 0.08);
}

// Triangles over the bins of a spectrum, evenly spaced in mel.
Values mel_weight_matrix(Call& call) {
  const int64_t bands = call.integer_input(0), length = call.integer_input(1),
                rate = call.integer_input(2);
  const int64_t bins = length / 2 + 1;
  if (bands < 0 || length < 0 || rate <= 0) call.wrong("a size or the sample rate is not positive");
  require_host_elements({bins, bands});
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(call.numbers_input(3).at(0)), high = mel(call.numbers_input(4).at(0));
  const double step = (high - low) / static_cast<double>(bands + 2);
  const auto bin_of = [&](int64_t band) {
    const double at = low + step * static_cast<double>(band);
    const double hertz = 700 * (std::pow(10, at / 2595) - 1);
    return static_cast<int64_t>(
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate)));
  };
  std::vector<double> weights(static_cast<size_t>(bins * bands), 0);
  const auto put = [&](int64_t bin, int64_t band, int64_t part, int64_t whole) {
    if (bin < 0 || bin >= bins)
      call.wrong(fmt::format("band {} reaches beyond the spectrum's {} bins", band, bins));
    weights[static_cast<size_t>(bin * bands + band)] =
        static_cast<double>(part) / static_cast<double>(whole);
  };
  for (int64_t band = 0; band < bands; ++band) {
    poll_interruption();
    const int64_t left = bin_of(band), centre = bin_of(band + 1), right = bin_of(band + 2);
    if (left == centre) put(centre, band, 1, 1);
    for (int64_t bin = left; bin <= centre && left < centre; ++bin)
      put(bin, band, bin - left, centre - left);
    for (int64_t bin = centre; bin < right; ++bin) put(bin, band, right - bin, right - centre);
  }
  return {of_numbers(weights, {bins, bands}, call.dtype("output_datatype").value_or(DType::F32))};
}

constexpr OperatorRow kSignalRows[] = {
    {"BlackmanWindow", blackman_window},    {"DFT", dft},
    {"HammingWindow", hamming_window},      {"HannWindow", hann_window},
    {"MelWeightMatrix", mel_weight_matrix}, {"STFT", stft},
};

}  // namespace

std::span<const OperatorRow> signal_operators() {
  return kSignalRows;
}

}  // namespace plugrad::onnx
