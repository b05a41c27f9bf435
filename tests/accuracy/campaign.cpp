#include "accuracy/campaign.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

namespace plugrad::accuracy {
namespace {

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// |got - exact| in units of the last place of `exact`. Infinity counts as the power of two that
/// follows the largest number; a NaN and the sign of zero must be right.
template <class T>
double ulp_error(T got, Wide<T> exact) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(exact) || std::isnan(got))
    return std::isnan(exact) && std::isnan(got) ? 0 : kUnbounded;
  if (exact == 0 && got == 0) return std::signbit(exact) == std::signbit(got) ? 0 : kUnbounded;
  const Wide<T> most = std::ldexp(Wide<T>{1}, Limits::max_exponent);
  const auto bounded = [&](Wide<T> v) { return std::fmin(std::fmax(v, -most), most); };
  const Wide<T> error = std::fabs(bounded(got) - bounded(exact));
  if (error == 0) return 0;
  const int exponent = exact == 0 ? Limits::min_exponent : std::ilogb(bounded(exact)) + 1;
  const int unit = std::min(std::max(exponent, Limits::min_exponent), Limits::max_exponent);
  return static_cast<double>(std::ldexp(error, Limits::digits - unit));
}

/// Within half a unit of `exact`, which ulp_error takes longer to say.
template <class T>
bool is_nearest(T got, Wide<T> exact) {
  return got == static_cast<T>(exact) && std::signbit(got) == std::signbit(exact);
}

uint64_t mixed(uint64_t seed) {  // splitmix64
  seed += 0x9e3779b97f4a7c15;
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111eb;
  return seed ^ (seed >> 31);
}
double fraction(uint64_t seed) {
  return static_cast<double>(mixed(seed) >> 11) * 0x1p-53;
}

/// The arguments of a part.
template <class T>
struct Numbers {
  std::vector<T> x, y;
};

template <class T>
std::vector<T> edges() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> out;
  // 252.9 to 1.2e30: floats next to multiples of pi/2
  for (T size :
       {T{0}, Limits::denorm_min(), Limits::min(), T{1}, T{2}, T{252.89821f}, T{2.322822e10f},
        T{1.23666863e30f}, Limits::max(), Limits::infinity(), Limits::quiet_NaN()})
    out.insert(out.end(), {size, -size});
  return out;
}

/// Every kParts-th f32, so that any number of parts is an even sample.
Numbers<float> every_float(uint64_t stride, uint32_t part) {
  constexpr uint64_t size = (uint64_t{1} << 32) / kParts;
  Numbers<float> numbers{edges<float>(), {}};
  for (uint64_t i = 0; i < size / stride; ++i)
    numbers.x.push_back(std::bit_cast<float>(static_cast<uint32_t>((i * kParts + part) * stride)));
  return numbers;
}

/// A third each: of all bits, of moderate size, of both signs between them in logarithms.
template <class T>
T some_number(uint64_t seed) {
  const uint64_t bits = mixed(seed);
  const double at = fraction(~seed), sign = bits & 8 ? -1 : 1;
  if (seed % 3 == 0) {
    if constexpr (sizeof(T) == 4)
      return std::bit_cast<T>(static_cast<uint32_t>(bits));
    else
      return std::bit_cast<T>(bits);
  }
  if (seed % 3 == 1) return static_cast<T>(sign * at * (bits & 16 ? 750 : 4));
  return static_cast<T>(sign * std::exp2(-40 + 60 * at));
}

template <class T>
Numbers<T> some_numbers(uint64_t count, uint32_t part, bool has_two) {
  Numbers<T> numbers{edges<T>(), {}};
  if (has_two) {
    const std::vector<T> single = edges<T>();
    numbers.x.clear();
    for (T x : single)
      for (T y : single) {
        numbers.x.push_back(x);
        numbers.y.push_back(y);
      }
  }
  for (uint64_t i = 0; i < count / kParts; ++i) {
    const uint64_t seed = part * (count / kParts) + i;
    numbers.x.push_back(some_number<T>(seed));
    if (!has_two) continue;
    T& x = numbers.x.back();
    numbers.y.push_back(some_number<T>(mixed(seed)));
    if (seed % 4 == 0) continue;
    // Powers over the whole range of results.
    constexpr int most = std::numeric_limits<T>::max_exponent;
    x = std::fabs(x);
    const double wanted = (2 * fraction(seed + 7) - 1) * (most + 8);
    numbers.y.back() = static_cast<T>(wanted / std::log2(static_cast<double>(x)));
  }
  return numbers;
}

template <class T, class Exact>
Worst worst_of(const Function& function, Exact exact, const Numbers<T>& numbers) {
  const Tensor x = Tensor::from(numbers.x, "CPU");
  const Tensor y = function.has_two_operands ? Tensor::from(numbers.y, "CPU") : x;
  const std::vector<T> got = function.run(x, y).template to_vector<T>();
  Worst worst;
  for (size_t i = 0; i < got.size(); ++i) {
    const T second = function.has_two_operands ? numbers.y[i] : T{0};
    const Wide<T> right = exact(numbers.x[i], second);
    if (worst.ulp >= 0.5 && is_nearest<T>(got[i], right)) continue;
    worst.add({ulp_error<T>(got[i], right), static_cast<double>(numbers.x[i]),
               static_cast<double>(second)});
  }
  return worst;
}

std::string key(const Function& function, DType dtype, const Extent& extent) {
  const bool counts = dtype == DType::F64 || function.has_two_operands;
  return fmt::format("{} {} {}", function.name, dtype == DType::F32 ? "f32" : "f64",
                     counts ? extent.count : extent.stride);
}

}  // namespace

Worst measure(const Function& function, DType dtype, const Extent& extent, uint32_t part) {
  if (dtype == DType::F64)
    return worst_of(function, function.exact_f64,
                    some_numbers<double>(extent.count, part, function.has_two_operands));
  return worst_of(function, function.exact_f32,
                  function.has_two_operands ? some_numbers<float>(extent.count, part, true)
                                            : every_float(extent.stride, part));
}

State::State(std::string path) : path_(std::move(path)) {
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, dtype, extent, ulp, x, y;
    uint32_t part = 0;
    if (!(words >> name >> dtype >> extent >> part >> ulp >> x >> y)) continue;  // cut off
    const Worst worst{std::strtod(ulp.c_str(), nullptr), std::strtod(x.c_str(), nullptr),
                      std::strtod(y.c_str(), nullptr)};
    done_[fmt::format("{} {} {}", name, dtype, extent)][part] = worst;
  }
}

bool State::has(const Function& function, DType dtype, const Extent& extent, uint32_t part) const {
  const auto found = done_.find(key(function, dtype, extent));
  return found != done_.end() && found->second.contains(part);
}

void State::add(const Function& function, DType dtype, const Extent& extent, uint32_t part,
                const Worst& worst) {
  done_[key(function, dtype, extent)][part] = worst;
  if (path_.empty()) return;
  std::ofstream(path_, std::ios::app) << fmt::format(
      "{} {} {:a} {:a} {:a}\n", key(function, dtype, extent), part, worst.ulp, worst.x, worst.y);
}

std::pair<Worst, uint32_t> State::total(const Function& function, DType dtype,
                                        const Extent& extent) const {
  Worst worst;
  const auto found = done_.find(key(function, dtype, extent));
  if (found == done_.end()) return {worst, 0};
  for (const auto& [part, of] : found->second) worst.add(of);
  return {worst, static_cast<uint32_t>(found->second.size())};
}

}  // namespace plugrad::accuracy
