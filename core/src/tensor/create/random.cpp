// Random numbers by threefry-2x32 with 20 rounds (Salmon et al. 2011), in u32 arithmetic: the bits
// are the same on every device. A call derives its key from (seed, counter) on the host and
// advances the counter by the words that it uses. The key is a tensor, so that all calls of one
// shape share their kernels.
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

#include "base/settings.h"
#include "ir/random/threefry.h"
#include "ir/round.h"
#include "jit/trace.h"
#include "plugrad/functional.h"
#include "tensor/handles.h"
#include "tensor/index/check_indices.h"
#include "tensor/lazy_text.h"
#include "tensor/named_function.h"
#include "tensor/record.h"
#include "tensor/recording/remembered.h"
#include "tensor/sizes/given_sizes.h"
#include "tensor/sizes/sizes.h"

namespace plugrad {

using tensor::checked_count;
using tensor::Recorder;

namespace {

// The low 32 bits of SHA-256 of four zero bytes: the stream of device ordinal 0, used for all
// devices.
constexpr uint32_t kStream = 0x14b81119;

std::array<uint32_t, 2> key_at(const engine::RandomState& random) {
  return threefry<uint32_t>(
      {kStream ^ static_cast<uint32_t>(random.seed >> 32), static_cast<uint32_t>(random.seed)},
      {static_cast<uint32_t>(random.counter), static_cast<uint32_t>(random.counter >> 32)});
}

/// Draws the key of the next `words` words and advances the counter. On a mesh every device has it.
Tensor next_key(Recorder& r, uint64_t words, std::string_view device) {
  engine::Session& session = r.session();
  const uint32_t number = device.empty() ? 0 : session.device_number(device);
  engine::RandomState& random = session.random();
  const engine::RandomState before = random;
  random.counter += words;
  const std::array<uint32_t, 2> words_of_key = key_at(before);
  const Tensor key = Tensor::from_bytes(std::as_bytes(std::span(words_of_key)), {2}, DType::U32,
                                        session.device_name(session.device_of(number)));
  if (jit_detail::JitTrace* trace = jit_detail::JitTrace::active())
    trace->drew_random(tensor::state_of(key)->node, before, key_at);
  return session.mesh(number) == nullptr ? key : key.to(device);
}

/// Both words of the pairs (low, low + half) of a draw's counter.
std::array<Tensor, 2> words_of_pairs(const Tensor& key, const Tensor& low, int64_t half) {
  const Tensor key0 = key[0], key1 = key[1], high = low + half;
  Recorder r("rand");
  std::vector<Id> nodes = {r.use(key0), r.use(key1), r.use(low), r.use(high)};
  r.match(nodes, tensor::Takes::Bits);
  return {r.done(r.graph().add(Op::Threefry0, DType::U32, nodes)),
          r.done(r.graph().add(Op::Threefry1, DType::U32, nodes))};
}

/// Word `number` of a draw of `count` words: the first half are the low words of the counter
/// pairs (i, i + half), the second half their high words.
Tensor word_at(const Tensor& key, const Tensor& number, uint64_t count) {
  const auto half = static_cast<int64_t>((count + 1) / 2);
  const Tensor is_low = number < half;
  const auto words = words_of_pairs(key, where(is_low, number, number - half), half);
  return where(is_low, words[0], words[1]);
}

/// Words of 32 bits.
uint64_t word_count(int64_t count, uint64_t width) {
  return (static_cast<uint64_t>(count) * width + 3) / 4;
}

/// The key of `count` random unsigned integers of `width` bytes.
Tensor key_for(std::string_view function, int64_t count, uint64_t width, std::string_view device) {
  Recorder r(function);
  // Positions of words are counted in u32.
  require(static_cast<uint64_t>(count) <= uint64_t{UINT32_MAX} * 4 / width,
          "[{}] draws at most 2^32 - 1 words of 32 bits at once, and {} elements of {} bytes need "
          "more; draw parts and join them",
          r.function(), count, width);
  return next_key(r, word_count(count, width), device);
}

/// Random unsigned integers of `width` bytes.
Tensor random_bits(const Tensor& key, int64_t count, uint64_t width) {
  const uint64_t words = word_count(count, width);
  const Tensor number = Tensor::arange(count, DType::U32);
  if (width == 4) return word_at(key, number, words);
  if (width == 2) {
    const Tensor word = word_at(key, number >> 1, words);
    return (word >> ((number & 1) * 16)).cast(DType::U16);
  }
  const Tensor low = word_at(key, number * 2, words), high = word_at(key, number * 2 + 1, words);
  return low.cast(DType::U64) | (high.cast(DType::U64) << 32);
}

/// drawn * factor + added. The numbers are read from memory, so that draws of one size share their
/// kernels; a recording has them as constants.
Tensor scaled_and_shifted(const Tensor& drawn, double factor, double added) {
  if (jit_detail::JitTrace::active()) return drawn * factor + added;
  const std::vector<double> both = {factor, added};
  const Tensor numbers =
      drawn.dtype() == DType::F64
          ? Tensor::from(both, drawn.device())
          : Tensor::from(std::vector<float>(both.begin(), both.end()), drawn.device());
  return drawn * numbers[0] + numbers[1];
}

bool can_hold(DType dtype, int64_t value) {
  return round_int(value, dtype) == value && (value >= 0 || !is_unsigned(dtype));
}

/// The number of elements for each index of the first axis.
double fan_in(std::string_view function, const Shape& shape) {
  require(!shape.empty(), "[{}] the shape has no axes", function);
  checked_count(function, shape);
  return static_cast<double>(std::max<int64_t>(element_count(std::span(shape).subspan(1)), 1));
}

struct FloatLayout {
  DType dtype, bits;
  int mantissa;
  int64_t one;  // the bits of 1.0
};
constexpr FloatLayout kLayouts[] = {
    {DType::F32, DType::U32, 23, 0x3f800000},
    {DType::F64, DType::U64, 52, 0x3ff0000000000000},
    {DType::F16, DType::U16, 10, 0x3c00},
    {DType::BF16, DType::U16, 7, 0x3f80},
};

}  // namespace

void Tensor::manual_seed(uint64_t seed) {
  Recorder r("manual_seed");
  require(!jit_detail::JitTrace::active(),
          "[manual_seed] inside a jitted function it would hold for the calls alone that are not "
          "replays; seed before the call");
  r.session().random() = {seed, 0};
}

RandomState Tensor::random_state() {
  Recorder r("random_state");
  require(!jit_detail::JitTrace::active(),
          "[random_state] inside a jitted function it would be that of the recorded call; ask "
          "before the call");
  return {r.session().random().seed, r.session().random().counter};
}

void Tensor::set_random_state(const RandomState& state) {
  Recorder r("set_random_state");
  require(!jit_detail::JitTrace::active(),
          "[set_random_state] inside a jitted function it would hold for the calls alone that are "
          "not replays; set it before the call");
  r.session().random() = {state.seed, state.counter};
}

namespace {

const FloatLayout& layout_of(DType dtype) {
  for (const FloatLayout& layout : kLayouts)
    if (layout.dtype == dtype) return layout;
  fail(ErrorKind::User, "[{}] draws f16, bf16, f32 or f64, not {}; use randint, or cast",
       tensor::called("rand"), name_of(dtype));
}

/// The first 23 bits of words of 32, as f32 integers.
Tensor mantissas_of(const Tensor& words) {
  return (words >> 9).cast(DType::F32);
}

/// Random mantissas give numbers in [1, 2); subtracts 1. In f32 the same numbers by fewer nodes.
Tensor uniform_of_bits(const Tensor& bits, const FloatLayout& layout) {
  if (layout.dtype == DType::F32) return mantissas_of(bits) * 0x1p-23;
  const int shift = static_cast<int>(size_of(layout.dtype)) * 8 - layout.mantissa;
  return ((bits >> shift) | layout.one).bitcast(layout.dtype) - 1.0;
}

Tensor uniform_of(const Tensor& key, const Shape& shape, const FloatLayout& layout) {
  const Tensor bits = random_bits(key, element_count(shape), size_of(layout.dtype));
  return tensor::own_handle(uniform_of_bits(bits, layout).reshape(shape));
}

/// By the method of Box and Muller, of the words of one pair for each number.
Tensor normal_of(const Tensor& key, const Shape& shape) {
  const int64_t count = element_count(shape);
  const auto words = words_of_pairs(key, Tensor::arange(count, DType::U32), count);
  const Tensor angle = mantissas_of(words[0]) * (0x1p-22 * std::numbers::pi),
               radius = ((1.0 - mantissas_of(words[1]) * 0x1p-23).log() * -2.0).sqrt();
  return tensor::own_handle((angle.cos() * radius).reshape(shape));
}

/// The result of make(key), remembered by shape and dtype.
template <class Make>
Tensor drawn(std::string_view function, const Tensor& key, const Shape& shape, DType dtype,
             const Make& make) {
  std::vector<int64_t> options = shape;
  options.push_back(static_cast<int64_t>(dtype));
  const Tensor* const operands[] = {&key};
  return tensor::remembered(function, options, operands, tensor::Operands::Any, make);
}

Tensor drawn_uniform(const Shape& shape, DType dtype, std::string_view device) {
  const FloatLayout& layout = layout_of(dtype);
  checked_count("rand", shape);
  const Tensor key = key_for("rand", element_count(shape), size_of(dtype), device);
  return drawn("rand", key, shape, dtype, [&] { return uniform_of(key, shape, layout); });
}

Tensor drawn_normal(const Shape& shape, DType dtype, std::string_view device) {
  checked_count("randn", shape);
  Shape both = shape;
  both.insert(both.begin(), 2);
  checked_count("rand", both);
  const Tensor key = key_for("rand", element_count(both), 4, device);
  return drawn("randn", key, shape, dtype, [&] { return normal_of(key, shape).cast(dtype); });
}

}  // namespace

Tensor Tensor::rand(const Sizes& sizes, DType dtype, std::string_view device) {
  return tensor::with_given_sizes(
      "rand", sizes, [&](const Shape& shape) { return drawn_uniform(shape, dtype, device); });
}

Tensor Tensor::randn(const Sizes& sizes, DType dtype, std::string_view device) {
  const tensor::NamedFunction named("randn");
  require_type(is_float(dtype), "[{}] draws floats, not {}", tensor::called("randn"),
               name_of(dtype));
  return tensor::with_given_sizes(
      "randn", sizes, [&](const Shape& shape) { return drawn_normal(shape, dtype, device); });
}

Tensor Tensor::uniform(const Sizes& shape, double low, double high, DType dtype,
                       std::string_view device) {
  const tensor::NamedFunction named("uniform");
  require(low <= high && std::isfinite(high - low), "[{}] there is no number in [{}, {})",
          tensor::called("uniform"), low, high);
  require_type(is_float(dtype), "[{}] draws floats, not {}; use randint", tensor::called("uniform"),
               name_of(dtype));
  const DType drawn = dtype == DType::F64 ? DType::F64 : DType::F32;
  return scaled_and_shifted(rand(shape, drawn, device), high - low, low).cast(dtype);
}

Tensor Tensor::normal(const Sizes& shape, double mean, double std, DType dtype,
                      std::string_view device) {
  const tensor::NamedFunction named("normal");
  require(std >= 0.0, "[{}] the deviation is {}", tensor::called("normal"), std);
  require_type(is_float(dtype), "[{}] draws floats, not {}", tensor::called("normal"),
               name_of(dtype));
  return scaled_and_shifted(randn(shape, DType::F32, device), std, mean).cast(dtype);
}

// f32 cannot represent every integer of a wide range: there, 64 random bits modulo the width.
Tensor Tensor::randint(const Sizes& sizes, int64_t low, int64_t high, DType dtype,
                       std::string_view device) {
  require_type(is_integer(dtype), "[randint] draws integers, not {}", name_of(dtype));
  require(low < high, "[randint] there is no integer in [{}, {})", low, high);
  require(can_hold(dtype, low) && can_hold(dtype, high - 1), "[randint] {} does not hold [{}, {})",
          name_of(dtype), low, high);
  const uint64_t width = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  return tensor::with_given_sizes("randint", sizes, [&](const Shape& shape) {
    checked_count("randint", shape);
    if (width <= uint64_t{1} << 23)
      return (rand(shape, DType::F32, device) * static_cast<double>(width)).cast(dtype) + low;
    const Tensor bits =
        random_bits(key_for("randint", element_count(shape), 8, device), element_count(shape), 8);
    const Tensor drawn = bits % Tensor(width).cast(DType::U64) + Tensor(low).cast(DType::U64);
    return drawn.cast(dtype).reshape(shape);
  });
}

Tensor Tensor::kaiming_uniform(const Shape& shape, double a, DType dtype, std::string_view device) {
  const tensor::NamedFunction named("kaiming_uniform");
  const double bound = std::sqrt(6.0 / ((1.0 + a * a) * fan_in("kaiming_uniform", shape)));
  return uniform(shape, -bound, bound, dtype, device);
}

Tensor Tensor::kaiming_normal(const Shape& shape, double a, DType dtype, std::string_view device) {
  const tensor::NamedFunction named("kaiming_normal");
  const double deviation = std::sqrt(2.0 / ((1.0 + a * a) * fan_in("kaiming_normal", shape)));
  return normal(shape, 0.0, deviation, dtype, device);
}

Tensor Tensor::scaled_uniform(const Shape& shape, DType dtype, std::string_view device) {
  const tensor::NamedFunction named("scaled_uniform");
  checked_count("scaled_uniform", shape);
  const int64_t count = std::max<int64_t>(element_count(shape), 1);
  const double bound = 1.0 / std::sqrt(static_cast<double>(count));
  return uniform(shape, -bound, bound, dtype, device);
}

Tensor Tensor::glorot_uniform(const Shape& shape, DType dtype, std::string_view device) {
  const tensor::NamedFunction named("glorot_uniform");
  require(!shape.empty(), "[glorot_uniform] the shape has no axes");
  const int64_t rest = element_count(std::span(shape).subspan(1));
  const double bound = std::sqrt(6.0 / static_cast<double>(std::max<int64_t>(shape[0] + rest, 1)));
  return uniform(shape, -bound, bound, dtype, device);
}

Tensor Tensor::rand_like(std::optional<DType> wanted) const {
  const tensor::NamedFunction named("rand_like");
  return rand(shape(), wanted.value_or(dtype()), device());
}
Tensor Tensor::randn_like(std::optional<DType> wanted) const {
  const tensor::NamedFunction named("randn_like");
  return randn(shape(), wanted.value_or(dtype()), device());
}

namespace {

/// Whether no index can be drawn with the weights of a row.
Tensor is_undrawable(const Tensor& weights) {
  const Tensor* const operands[] = {&weights};
  return tensor::remembered("multinomial", {}, operands, tensor::Operands::Any, [&] {
    const Tensor total = weights.sum(-1, true);
    return !((weights >= 0.0).all(-1, true) & (total > 0.0) & (total < INFINITY));
  });
}

/// Errors: User for a row without an index to draw. Not for a recording: it cannot wait for the
/// weights.
void require_drawable(const Tensor& weights) {
  const std::vector<bool> rows = is_undrawable(weights).to_vector<bool>();
  for (size_t row = 0; row < rows.size(); ++row)
    require(!rows[row],
            "[multinomial] row {} of the weights has no index to draw: weights must be finite, 0 "
            "or more, and not all 0",
            row);
}

}  // namespace

namespace {

/// The order of w / E, with exponential E, is distributed like draws one after the other without
/// replacement (Efraimidis and Spirakis 2006).
Tensor drawn_without_replacement(const Tensor& weights, const Tensor& key, int64_t count) {
  const Tensor random = uniform_of(key, weights.shape(), layout_of(DType::F32));
  return (weights / (-(1.0 - random).log()).maximum(1e-30)).topk(count).second;
}

Tensor drawn_with_replacement(const Tensor& weights, const Tensor& key, int64_t count) {
  Shape drawn = weights.shape();
  drawn.back() = count;
  const Tensor upto = weights.cumsum(-1).contiguous();
  const Tensor total = upto.slice(-1, Slice(-1, {}));
  const Tensor random = uniform_of(key, drawn, layout_of(DType::F32));
  const Tensor point = (random * total).contiguous();
  const Tensor passed = (upto.unsqueeze(-2) <= point.unsqueeze(-1)).sum(-1, false, DType::I32);
  return passed.minimum(weights.size(-1) - 1);  // rounding may lift the point to the total
}

}  // namespace

// Sorts random keys; the sort is stable for equal keys.
Tensor Tensor::randperm(int64_t n, DType dtype, std::string_view device) {
  require(n >= 0, "[randperm] the length {} is negative", n);
  require(n <= INT32_MAX, "[randperm] {} numbers are too many to sort at once; it takes {} at most",
          n, INT32_MAX);
  require(is_integer(dtype) && (n == 0 || can_hold(dtype, n - 1)),
          "[randperm] {} does not hold 0 to {}", name_of(dtype), n - 1);
  return random_bits(key_for("randperm", n, 4, device), n, 4).argsort().cast(dtype);
}

Tensor Tensor::multinomial(int64_t count, bool replacement) const {
  require(ndim() == 1 || ndim() == 2, "[multinomial] weights have shape {}, not one or two axes",
          tensor::lazy_text(*this));
  const int64_t categories = size(-1);
  require(count >= 0 && (replacement ? count == 0 || categories > 0 : count <= categories),
          "[multinomial] {} draws{} of the {} categories of {}", count,
          replacement ? "" : " without replacement", categories, tensor::lazy_text(*this));
  const bool is_recorded = jit_detail::JitTrace::active() != nullptr;
  const Tensor floats = cast(DType::F32);
  const Tensor weights = is_recorded ? floats.contiguous() : floats.realize();
  if (!is_recorded) require_drawable(weights);
  const int64_t rows = ndim() == 1 ? 1 : size(0);
  const Tensor key =
      key_for("rand", rows * (replacement ? count : categories), size_of(DType::F32), device());
  const int64_t options[] = {count, replacement};
  const Tensor* const operands[] = {&weights, &key};
  const Tensor drawn =
      tensor::remembered("multinomial", options, operands, tensor::Operands::Stored, [&] {
        return replacement ? drawn_with_replacement(weights, key, count)
                           : drawn_without_replacement(weights, key, count);
      });
  if (!is_recorded) return drawn;
  const Tensor found = plugrad::where(is_undrawable(weights), -1, drawn);
  if (!settings().check_indices) return found;
  return tensor::in_range("multinomial", "draw", found, 0, categories) + 0;
}

}  // namespace plugrad
