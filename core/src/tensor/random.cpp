// Random numbers by threefry-2x32 with 20 rounds (Salmon et al. 2011), in u32 arithmetic: the bits
// are the same on every device. Each call draws its own key from (seed, counter) on the host and
// moves the counter by the words it uses; the key is data, so that all calls of one shape share
// their kernels.
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

#include "plugrad/functional.h"
#include "tensor/record.h"

namespace plugrad {

using tensor::Recorder;

namespace {

constexpr uint32_t kParity = 0x1BD11BDA;
constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
// The low 32 bits of sha256 of four zero bytes: the stream of device ordinal 0, which all devices
// share.
constexpr uint32_t kStream = 0x14b81119;

template <class Word>
Word rotated(const Word& x, int by) {
  return (x << by) | (x >> (32 - by));
}

/// Both on the host (Word is uint32_t) and recorded (Word is Tensor).
template <class Word>
void threefry(const Word& key0, const Word& key1, Word& x0, Word& x1) {
  const Word keys[3] = {key0, key1, key0 ^ key1 ^ kParity};
  x0 = x0 + keys[0];
  x1 = x1 + keys[1];
  for (uint32_t i = 0; i < 5; ++i) {
    for (int rotation : kRotations[i % 2]) {
      x0 = x0 + x1;
      x1 = x0 ^ rotated(x1, rotation);
    }
    x0 = x0 + keys[(i + 1) % 3];
    x1 = x1 + keys[(i + 2) % 3] + (i + 1);
  }
}

/// The key of the next `words` words.
Tensor next_key(Recorder& r, uint64_t words, std::string_view device) {
  engine::RandomState& random = r.session().random();
  uint32_t x0 = static_cast<uint32_t>(random.counter),
           x1 = static_cast<uint32_t>(random.counter >> 32);
  threefry<uint32_t>(kStream ^ static_cast<uint32_t>(random.seed >> 32),
                     static_cast<uint32_t>(random.seed), x0, x1);
  random.counter += words;
  const std::array<uint32_t, 2> key = {x0, x1};
  return Tensor::from_bytes(std::as_bytes(std::span(key)), {2}, DType::U32, device);
}

/// Word number `place` of a draw of `count` words: the first half are the low words of the counter
/// pairs (i, i + half), the second half their high words.
Tensor word_at(const Tensor& key, const Tensor& place, uint64_t count) {
  const auto half = static_cast<int64_t>((count + 1) / 2);
  const Tensor high = place >= half;
  Tensor x0 = where(high, place - half, place), x1 = x0 + half;
  threefry<Tensor>(key[0], key[1], x0, x1);
  return where(high, x1, x0);
}

/// Random bits as wide as an element of the float dtype, in its unsigned integer.
Tensor random_bits(int64_t count, DType dtype, std::string_view device) {
  Recorder r("rand");
  const uint64_t width = size_of(dtype), words = (static_cast<uint64_t>(count) * width + 3) / 4;
  const Tensor key = next_key(r, words, device);
  const Tensor place = Tensor::arange(count, DType::U32);
  if (width == 4) return word_at(key, place, words);
  if (width == 2) {
    const Tensor word = word_at(key, place >> 1, words);
    return (word >> ((place & 1) * 16)).cast(DType::U16);
  }
  const Tensor low = word_at(key, place * 2, words), high = word_at(key, place * 2 + 1, words);
  return low.cast(DType::U64) | (high.cast(DType::U64) << 32);
}

struct Layout {
  DType dtype, bits;
  int mantissa;
  int64_t one;  // the bits of 1.0
};
constexpr Layout kLayouts[] = {
    {DType::F32, DType::U32, 23, 0x3f800000},
    {DType::F64, DType::U64, 52, 0x3ff0000000000000},
    {DType::F16, DType::U16, 10, 0x3c00},
    {DType::BF16, DType::U16, 7, 0x3f80},
};

}  // namespace

void Tensor::manual_seed(uint64_t seed) {
  Recorder r("manual_seed");
  r.session().random() = {seed, 0};
}

// Random mantissas of numbers in [1, 2), less 1.
Tensor Tensor::rand(const Shape& shape, DType dtype, std::string_view device) {
  for (const Layout& layout : kLayouts) {
    if (layout.dtype != dtype) continue;
    for (int64_t size : shape)
      require(size >= 0, "[rand] size {} in {} is negative", size, to_string(shape));
    const Tensor bits = random_bits(element_count(shape), dtype, device);
    const int shift = static_cast<int>(size_of(dtype)) * 8 - layout.mantissa;
    return (((bits >> shift) | layout.one).bitcast(dtype) - 1.0).reshape(shape);
  }
  fail(ErrorKind::User, "[rand] draws f16, bf16, f32 or f64, not {}; use randint, or cast",
       name_of(dtype));
}

Tensor Tensor::randn(const Shape& shape, DType dtype, std::string_view device) {
  Shape both = shape;
  both.insert(both.begin(), 2);
  const Tensor u = rand(both, DType::F32, device);
  return ((u[0] * (2.0 * std::numbers::pi)).cos() * ((1.0 - u[1]).log() * -2.0).sqrt()).cast(dtype);
}

Tensor Tensor::uniform(const Shape& shape, double low, double high, DType dtype,
                       std::string_view device) {
  const DType drawn = dtype == DType::F64 ? DType::F64 : DType::F32;
  return (rand(shape, drawn, device) * (high - low) + low).cast(dtype);
}

Tensor Tensor::normal(const Shape& shape, double mean, double std, DType dtype,
                      std::string_view device) {
  return (randn(shape, DType::F32, device) * std + mean).cast(dtype);
}

Tensor Tensor::randint(const Shape& shape, int64_t low, int64_t high, DType dtype,
                       std::string_view device) {
  require(is_integer(dtype), "[randint] draws integers, not {}", name_of(dtype));
  require(low < high, "[randint] there is no integer in [{}, {})", low, high);
  return (rand(shape, DType::F32, device) * static_cast<double>(high - low)).cast(dtype) + low;
}

Tensor Tensor::kaiming_uniform(const Shape& shape, double a, DType dtype, std::string_view device) {
  require(!shape.empty(), "[kaiming_uniform] the shape has no axes");
  const auto fan_in =
      static_cast<double>(std::max<int64_t>(element_count(std::span(shape).subspan(1)), 1));
  const double bound = std::sqrt(6.0 / ((1.0 + a * a) * fan_in));
  return uniform(shape, -bound, bound, dtype, device);
}

Tensor Tensor::glorot_uniform(const Shape& shape, DType dtype, std::string_view device) {
  require(!shape.empty(), "[glorot_uniform] the shape has no axes");
  const int64_t rest = element_count(std::span(shape).subspan(1));
  const double bound = std::sqrt(6.0 / static_cast<double>(std::max<int64_t>(shape[0] + rest, 1)));
  return uniform(shape, -bound, bound, dtype, device);
}

Tensor Tensor::rand_like() const {
  return rand(shape(), dtype(), device());
}
Tensor Tensor::randn_like() const {
  return randn(shape(), dtype(), device());
}

}  // namespace plugrad
