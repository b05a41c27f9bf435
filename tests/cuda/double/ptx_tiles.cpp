// mma.sync on the registers of a warp, with the layouts of the PTX manual.
#include <bit>
#include <cmath>

#include "double/ptx_steps.h"

namespace plugrad::cuda_double {
namespace {

void meet(Item& item, const Inst&) {
  item.is_at_mma = true;
}

constexpr uint32_t kDroppedBits = 13;  // fraction bits that tf32 drops

void round_to_tf32(Item& item, const Inst& inst) {
  uint32_t bits = item.get<uint32_t>(inst.from[0]);
  if ((bits & 0x7f800000) != 0x7f800000) bits += 1u << (kDroppedBits - 1);
  item.set<uint32_t>(inst.to[0], bits >> kDroppedBits << kDroppedBits);
}

double half_value(uint32_t bits) {
  const uint32_t exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  double value = 0;
  if (exponent == 31)
    value = fraction ? std::nan("") : INFINITY;
  else
    value = exponent ? std::ldexp(1024 + fraction, static_cast<int>(exponent) - 25)
                     : std::ldexp(fraction, -24);
  return bits & 0x8000 ? -value : value;
}

enum class Input { Half, Brain, Tf32 };

// 16-bit elements are packed in pairs, the first one low.
double input_value(Input input, const Item& item, const uint32_t* slots, uint32_t number) {
  if (input == Input::Tf32) {
    const uint32_t bits = item.get<uint32_t>(slots[number]);
    if (bits & ((1u << kDroppedBits) - 1)) throw Fault{716, "an operand of mma that is no tf32"};
    return std::bit_cast<float>(bits);
  }
  const uint32_t bits = item.get<uint32_t>(slots[number / 2]) >> (number % 2 * 16) & 0xffff;
  return input == Input::Half ? half_value(bits) : std::bit_cast<float>(bits << 16);
}

}  // namespace

void multiply_tiles(std::vector<Item*> warp, const Inst& inst) {
  const Input input = inst.text.find(".tf32") != std::string::npos   ? Input::Tf32
                      : inst.text.find(".bf16") != std::string::npos ? Input::Brain
                                                                     : Input::Half;
  const bool is_single = input == Input::Tf32;
  const uint32_t depth = is_single ? 8 : 16;
  double a[16][16], b[16][8];
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t group = lane / 4, in_group = lane % 4;
    for (uint32_t i = 0; i < depth / 2; ++i) {
      const bool low_row = is_single ? i == 0 || i == 2 : i < 2 || (i >= 4 && i < 6);
      const uint32_t column =
          is_single ? in_group + (i >= 2 ? 4 : 0) : in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0);
      a[low_row ? group : group + 8][column] = input_value(input, *warp[lane], &inst.tile[0], i);
    }
    for (uint32_t i = 0; i < depth / 4; ++i) {
      const uint32_t row =
          is_single ? in_group + (i ? 4 : 0) : in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0);
      b[row][group] = input_value(input, *warp[lane], &inst.tile[4], i);
    }
  }
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t row = lane / 4 + (i < 2 ? 0 : 8), column = lane % 4 * 2 + (i & 1);
      double sum = warp[lane]->get<float>(inst.tile[6 + i]);
      for (uint32_t k = 0; k < depth; ++k) sum += a[row][k] * b[k][column];
      warp[lane]->set(inst.to[i], static_cast<float>(sum));
    }
}

void add_tiles(Steps& steps) {
  steps["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"] = meet;
  steps["mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"] = meet;
  steps["mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"] = meet;
  steps["cvt.rna.tf32.f32"] = round_to_tf32;
}

}  // namespace plugrad::cuda_double
