// Compiled once per instruction set; PLUGRAD_HAND is its namespace, PLUGRAD_LANES the floats per
// vector. Includes no header with inline functions, because the linker could keep the copy of
// another instruction set.
#include "bench/peers/hand_kernels.h"

namespace plugrad::bench::PLUGRAD_HAND {
namespace {

constexpr size_t kLanes = PLUGRAD_LANES;
typedef float Lanes __attribute__((vector_size(4 * PLUGRAD_LANES)));
typedef int Bits __attribute__((vector_size(4 * PLUGRAD_LANES)));
// Unaligned loads and stores.
typedef float Unaligned __attribute__((vector_size(4 * PLUGRAD_LANES), aligned(4), may_alias));

inline Lanes load(const float* at) {
  return *reinterpret_cast<const Unaligned*>(at);
}
inline void store(float* at, Lanes value) {
  *reinterpret_cast<Unaligned*>(at) = value;
}
inline Lanes larger(Lanes a, Lanes b) {
  return a > b ? a : b;
}

inline float sum_of(Lanes v) {
  float total = 0;
  for (size_t i = 0; i < kLanes; ++i) total += v[i];
  return total;
}

// 2^(x log2 e): a polynomial of the fraction, scaled by the exponent bits. For x <= 0.
inline Lanes exp_of(Lanes x) {
  const Lanes magic = Lanes{} + 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  x = larger(x, Lanes{} - 87.0f);
  const Lanes shifted = x * 1.44269504f + magic, whole = shifted - magic;
  const Lanes r = x - whole * 0.693359375f + whole * 2.12194440e-4f;
  Lanes p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const Bits scale = ((Bits)shifted << 23) + 0x3f800000;
  return p * (Lanes)scale;
}

float map_reduce(const float* a, const float* b, const float* c, size_t begin, size_t end) {
  Lanes s[4] = {};
  size_t i = begin;
  for (; i + 4 * kLanes <= end; i += 4 * kLanes)
    for (size_t k = 0; k < 4; ++k) {
      const size_t at = i + k * kLanes;
      s[k] += larger(load(a + at) * load(b + at) + load(c + at), Lanes{});
    }
  float total = sum_of(s[0] + s[1] + s[2] + s[3]);
  for (; i < end; ++i) total += a[i] * b[i] + c[i] > 0 ? a[i] * b[i] + c[i] : 0;
  return total;
}

// Rows of whole vectors; a row stays in the L1 cache between passes.
void softmax(const float* x, float* y, size_t columns, size_t begin, size_t end) {
  for (size_t row = begin; row < end; ++row) {
    const float* in = x + row * columns;
    float* out = y + row * columns;
    Lanes most[4];
    for (Lanes& m : most) m = load(in);
    for (size_t i = 0; i < columns; i += 4 * kLanes)
      for (size_t k = 0; k < 4; ++k) most[k] = larger(most[k], load(in + i + k * kLanes));
    const Lanes m = larger(larger(most[0], most[1]), larger(most[2], most[3]));
    float top = m[0];
    for (size_t i = 1; i < kLanes; ++i) top = m[i] > top ? m[i] : top;
    Lanes s[4] = {};
    for (size_t i = 0; i < columns; i += 4 * kLanes)
      for (size_t k = 0; k < 4; ++k) {
        const Lanes e = exp_of(load(in + i + k * kLanes) - top);
        s[k] += e;
        store(out + i + k * kLanes, e);
      }
    const float scale = 1.0f / sum_of(s[0] + s[1] + s[2] + s[3]);
    for (size_t i = 0; i < columns; i += kLanes) store(out + i, load(out + i) * scale);
  }
}

void layernorm(const float* x, float* y, size_t columns, size_t begin, size_t end) {
  const float n = static_cast<float>(columns);
  for (size_t row = begin; row < end; ++row) {
    const float* in = x + row * columns;
    Lanes s[4] = {}, q[4] = {};
    for (size_t i = 0; i < columns; i += 4 * kLanes)
      for (size_t k = 0; k < 4; ++k) s[k] += load(in + i + k * kLanes);
    const float mean = sum_of(s[0] + s[1] + s[2] + s[3]) / n;
    for (size_t i = 0; i < columns; i += 4 * kLanes)
      for (size_t k = 0; k < 4; ++k) {
        const Lanes d = load(in + i + k * kLanes) - mean;
        q[k] += d * d;
      }
    const float variance = sum_of(q[0] + q[1] + q[2] + q[3]) / n;
    const float scale = 1.0f / __builtin_sqrtf(variance + 1e-5f);
    for (size_t i = 0; i < columns; i += kLanes)
      store(y + row * columns + i, (load(in + i) - mean) * scale);
  }
}

// Processes two vectors of query rows against kKeys keys at a time: the scores of a block, their
// exponentials and the sums of the rows stay in the L1 cache. If a block has a larger score than
// the previous blocks, the accumulated sums are rescaled (online softmax).
constexpr size_t kRows = 2 * kLanes, kWidth = 64, kKeys = 64;
constexpr size_t kTile = kLanes == 16 ? 8 : 4;  // keys, then rows, held in registers

struct Block {
  float q[kWidth][kRows];     // scaled
  float score[kKeys][kRows];  // later their exponentials
  float sum[kRows][kWidth];
};

void scores(Block& b, const float* k) {
  for (size_t key = 0; key < kKeys; key += kTile) {
    Lanes s[kTile][2] = {};
    for (size_t e = 0; e < kWidth; ++e) {
      const Lanes q0 = load(b.q[e]), q1 = load(b.q[e] + kLanes);
      for (size_t i = 0; i < kTile; ++i) {
        const float x = k[(key + i) * kWidth + e];
        s[i][0] += q0 * x;
        s[i][1] += q1 * x;
      }
    }
    for (size_t i = 0; i < kTile; ++i)
      for (size_t h = 0; h < 2; ++h) store(b.score[key + i] + h * kLanes, s[i][h]);
  }
}

void exponentials(Block& b, Lanes* top, Lanes* total) {
  for (size_t h = 0; h < 2; ++h) {
    Lanes most = top[h], sum = {};
    for (size_t key = 0; key < kKeys; ++key) most = larger(most, load(b.score[key] + h * kLanes));
    const Lanes shrinks = exp_of(top[h] - most);
    for (size_t key = 0; key < kKeys; ++key) {
      const Lanes e = exp_of(load(b.score[key] + h * kLanes) - most);
      sum += e;
      store(b.score[key] + h * kLanes, e);
    }
    top[h] = most;
    total[h] = total[h] * shrinks + sum;
    for (size_t i = 0; i < kLanes; ++i)
      if (shrinks[i] != 1)
        for (float& x : b.sum[h * kLanes + i]) x *= shrinks[i];
  }
}

void add_values(Block& b, const float* v) {
  constexpr size_t kColumns = 2 * kLanes;
  for (size_t row = 0; row < kRows; row += kTile)
    for (size_t d = 0; d < kWidth; d += kColumns) {
      Lanes s[kTile][2];
      for (size_t i = 0; i < kTile; ++i)
        for (size_t h = 0; h < 2; ++h) s[i][h] = load(b.sum[row + i] + d + h * kLanes);
      for (size_t key = 0; key < kKeys; ++key) {
        const Lanes v0 = load(v + key * kWidth + d), v1 = load(v + key * kWidth + d + kLanes);
        for (size_t i = 0; i < kTile; ++i) {
          s[i][0] += v0 * b.score[key][row + i];
          s[i][1] += v1 * b.score[key][row + i];
        }
      }
      for (size_t i = 0; i < kTile; ++i)
        for (size_t h = 0; h < 2; ++h) store(b.sum[row + i] + d + h * kLanes, s[i][h]);
    }
}

void attention(const float* q, const float* k, const float* v, float* y, size_t queries,
               size_t keys, size_t begin, size_t end) {
  Block b;
  for (size_t first = begin; first < end; first += kRows) {
    const size_t head = first / queries * keys * kWidth;
    Lanes top[2], total[2] = {};
    for (Lanes& t : top) t = Lanes{} - 3e38f;
    for (size_t row = 0; row < kRows; ++row)
      for (size_t e = 0; e < kWidth; ++e) {
        b.q[e][row] = q[(first + row) * kWidth + e] * 0.125f;
        b.sum[row][e] = 0;
      }
    for (size_t key = 0; key < keys; key += kKeys) {
      scores(b, k + head + key * kWidth);
      exponentials(b, top, total);
      add_values(b, v + head + key * kWidth);
    }
    for (size_t row = 0; row < kRows; ++row)
      for (size_t d = 0; d < kWidth; d += kLanes)
        store(y + (first + row) * kWidth + d,
              load(b.sum[row] + d) / total[row / kLanes][row % kLanes]);
  }
}

// Four rows at a time, so that x is loaded once for all of them.
void matvec(const float* m, const float* x, float* y, size_t columns, size_t begin, size_t end) {
  for (size_t row = begin; row < end; row += 4) {
    Lanes s[4] = {};
    for (size_t i = 0; i < columns; i += kLanes) {
      const Lanes v = load(x + i);
      for (size_t k = 0; k < 4; ++k) s[k] += load(m + (row + k) * columns + i) * v;
    }
    for (size_t k = 0; k < 4; ++k) y[row + k] = sum_of(s[k]);
  }
}

float read(const float* x, size_t begin, size_t end) {
  Lanes s[8] = {};
  for (size_t i = begin; i + 8 * kLanes <= end; i += 8 * kLanes)
    for (size_t k = 0; k < 8; ++k) s[k] += load(x + i + k * kLanes);
  return sum_of((s[0] + s[1]) + (s[2] + s[3]) + (s[4] + s[5]) + (s[6] + s[7]));
}

float multiply_add(long rounds, double& flops) {
  constexpr int kChains = 12;
  Lanes r[kChains];
  for (int k = 0; k < kChains; ++k) r[k] = Lanes{} + static_cast<float>(k);
  const Lanes a = Lanes{} + 1.000001f, b = Lanes{} + 1e-9f;
  for (long i = 0; i < rounds; ++i)
    for (int k = 0; k < kChains; ++k) r[k] = r[k] * a + b;
  Lanes sum{};
  for (int k = 0; k < kChains; ++k) sum += r[k];
  flops = 2.0 * kChains * static_cast<double>(kLanes) * static_cast<double>(rounds);
  return sum[0];
}

}  // namespace

HandKernels kernels() {
  return {map_reduce, softmax,      layernorm,
          attention,  kRows,        matvec,
          read,       multiply_add, static_cast<int>(kLanes)};
}

}  // namespace plugrad::bench::PLUGRAD_HAND
