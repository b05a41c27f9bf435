#include "codegen/tensor_core.h"

#include "codegen/access.h"
#include "codegen/claims.h"
#include "symbolic/symbolic.h"
#include "uop/facts.h"

namespace plugrad::codegen {

namespace {

// How many values the bits of an axis count; ' ' stands for those of the lane, '|' for those of the
// work-item.
uint32_t extent(std::string_view fragment, char axis) {
  uint32_t count = 1;
  bool is_lane = true;
  for (char c : fragment) {
    if (c == '|') is_lane = false;
    const bool is_bit = c == 'm' || c == 'n' || c == 'k';
    if (is_bit && (c == axis || (axis == ' ' && is_lane) || (axis == '|' && !is_lane))) count *= 2;
  }
  return count;
}

bool fits(const pgr_tensor_core& core, const LaneLayout& layout) {
  return core.m == extent(layout.c, 'm') && core.n == extent(layout.c, 'n') &&
         core.k == extent(layout.a, 'k') && core.threads == extent(layout.c, '|') &&
         core.elems_a == extent(layout.a, ' ') && core.elems_b == extent(layout.b, ' ') &&
         core.elems_c == extent(layout.c, ' ');
}

}  // namespace

std::optional<TensorCore> find_tensor_core(const pgr_device_caps& caps, uint32_t number) {
  if (number >= caps.tensor_core_count || caps.has_local == 0) return {};
  const pgr_tensor_core& core = caps.tensor_cores[number];
  for (const LaneLayout& layout : kLaneLayouts) {
    if (layout.number != core.layout) continue;
    const auto input = static_cast<DType>(core.dtype_in);
    if (!fits(core, layout) || core.dtype_out != PGR_DTYPE_F32 || !claims(caps, Op::Wmma, input))
      return {};
    return TensorCore{number, core.m,       core.n,       core.k,       core.threads,
                      input,  core.elems_a, core.elems_b, core.elems_c, layout};
  }
  return {};
}

// Neighbouring bits of the work-item that stay neighbours are taken together.
Id place_along(Graph& g, std::string_view fragment, char axis, Id item, uint32_t lane) {
  Id place = g.index(0);
  int64_t constant = 0;
  bool is_lane = true;
  int bit = 0, run_bit = 0, run_weight = 0, run_length = 0;
  const auto end_run = [&] {
    if (run_length == 0) return;
    Id part = g.binary(Op::FloorDiv, item, g.index(int64_t{1} << run_bit));
    part = g.binary(Op::FloorMod, part, g.index(int64_t{1} << run_length));
    place = g.binary(Op::Add, place, g.binary(Op::Mul, part, g.index(int64_t{1} << run_weight)));
    run_length = 0;
  };
  for (size_t i = 0; i < fragment.size(); ++i) {
    if (fragment[i] == '|') is_lane = false, bit = 0;
    if (fragment[i] < 'k' || fragment[i] > 'n') continue;
    const int weight = fragment[i + 1] - '0';
    if (fragment[i] == axis && is_lane) constant |= int64_t{lane >> bit & 1} << weight;
    if (fragment[i] == axis && !is_lane) {
      if (run_length == 0 || bit != run_bit + run_length || weight != run_weight + run_length) {
        end_run();
        run_bit = bit, run_weight = weight;
      }
      ++run_length;
    }
    ++bit;
  }
  end_run();
  return g.binary(Op::Add, place, g.index(constant));
}

int64_t place_of(std::string_view fragment, char axis, uint32_t item, uint32_t lane) {
  int64_t place = 0;
  uint32_t number = lane;
  int bit = 0;
  for (size_t i = 0; i < fragment.size(); ++i) {
    if (fragment[i] == '|') number = item, bit = 0;
    if (fragment[i] < 'k' || fragment[i] > 'n') continue;
    if (fragment[i] == axis) place |= int64_t{number >> bit & 1} << (fragment[i + 1] - '0');
    ++bit;
  }
  return place;
}

bool has_wmma(const Graph& g, Id root) {
  return !nodes_of(g, root, Op::Wmma).empty();
}

}  // namespace plugrad::codegen
