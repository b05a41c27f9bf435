// Renders VECTOR, LANE and WMMA.
#include <algorithm>

#include "plugrad/sdk/guard.h"
#include "plugrad/sdk/op_info.h"
#include "render/text.h"
#include "render/writer/kernel_writer.h"

namespace plugrad::render {
namespace {

std::string lane_numbers(uint32_t first, uint32_t count) {
  std::string out;
  for (uint32_t i = 0; i < count; ++i) out += (i ? ", " : "") + std::to_string(first + i);
  return out;
}

std::string lane_digits(uint32_t first, uint32_t count) {
  std::string out;
  for (uint32_t i = 0; i < count; ++i) out += lane_digit(first + i);
  return out;
}

}  // namespace

std::string KernelWriter::lane_text(std::string_view vector, uint32_t lane) const {
  return expand(dialect_.lane,
                {{'0', vector}, {'1', std::to_string(lane)}, {'X', lane_digit(lane)}});
}

// Writes a vector of lanes of one or two vectors as one shuffle: Clang turns long lists of lanes
// into several shuffles each, and takes three times as long.
bool KernelWriter::write_shuffle(uint32_t number) {
  const Type type = type_of(number);
  if (!dialect_.shuffle || type.dtype == PGR_DTYPE_BOOL) return false;
  std::vector<uint32_t> vectors;
  std::string lanes;
  for (uint32_t lane : ir_.sources(number)) {
    if (inst(lane).op != PGR_OP_LANE || inst(lane).lanes != 1) return false;
    const uint32_t from = ir_.source(lane, 0);
    if (inst(from).lanes == 1) return false;
    const auto found = std::find(vectors.begin(), vectors.end(), from);
    const size_t index = static_cast<size_t>(found - vectors.begin());
    if (found == vectors.end()) vectors.push_back(from);
    if (index > 1 || inst(from).lanes != inst(vectors[0]).lanes) return false;
    lanes +=
        (lanes.empty() ? "" : ", ") + std::to_string(index * inst(from).lanes + inst(lane).arg);
  }
  for (uint32_t lane : ir_.sources(number)) use(lane, Prec::Loose);
  define(number,
         expand(dialect_.shuffle, {{'T', prelude_.type(type)},
                                   {'0', use_name(vectors.front())},
                                   {'1', use_name(vectors.back())},
                                   {'2', lanes}}),
         Prec::Unary);
  return true;
}

void KernelWriter::write_vector(uint32_t number) {
  const auto sources = ir_.sources(number);
  const Type type = type_of(number);
  const bool is_bool = type.dtype == PGR_DTYPE_BOOL;
  if (is_mask(number)) values_[number].mask_bits = static_cast<uint16_t>(mask_bits_for(number));
  const uint32_t bits = values_[number].mask_bits;
  if (sources.size() == 1)
    return define(number, operand(sources[0], type.lanes, bits, Prec::Unary), Prec::Unary);
  const uint32_t elem = is_bool ? mask_dtype(bits) : type.dtype;
  if (sources.size() == 2 && inst(sources[0]).lanes == inst(sources[1]).lanes &&
      inst(sources[0]).lanes > 1) {
    const uint32_t half = type.lanes / 2;
    const std::string low = operand(sources[0], half, bits, Prec::Loose);
    const std::string high = operand(sources[1], half, bits, Prec::Loose);
    return define(number,
                  expand(dialect_.join, {{'T', prelude_.type({elem, type.lanes})},
                                         {'0', low},
                                         {'1', high},
                                         {'2', lane_numbers(0, type.lanes)}}),
                  Prec::Unary);
  }
  if (write_shuffle(number)) return;
  std::string elements;
  for (uint32_t source : sources) {
    const bool is_scalar = inst(source).lanes == 1;
    const std::string name = is_scalar ? use(source, Prec::Unary) : use_name(source);
    for (uint32_t lane = 0; lane < inst(source).lanes; ++lane) {
      if (!elements.empty()) elements += ", ";
      if (!is_scalar)
        elements += lane_text(name, lane);
      else
        elements += is_bool ? name + " ? -1 : 0" : name;
    }
  }
  define(number,
         expand(dialect_.vector_literal, {{'T', prelude_.type({elem, type.lanes})},
                                          {'E', prelude_.type({elem, 1})},
                                          {'0', elements}}),
         Prec::Atom);
}

void KernelWriter::write_lane(uint32_t number) {
  const uint32_t source = ir_.source(number, 0);
  const Type type = type_of(number);
  const uint32_t first = static_cast<uint32_t>(inst(number).arg);
  values_[number].mask_bits = values_[source].mask_bits;
  if (inst(source).lanes == type.lanes)
    return define(number, use(source, Prec::Unary), Prec::Unary);
  const std::string vector = use_name(source);
  if (type.lanes > 1)
    return define(number,
                  expand(dialect_.part, {{'T', value_type(number)},
                                         {'0', vector},
                                         {'2', lane_numbers(first, type.lanes)},
                                         {'X', lane_digits(first, type.lanes)}}),
                  Prec::Unary);
  std::string text = lane_text(vector, first);
  if (type.dtype == PGR_DTYPE_BOOL) return define(number, text + " != 0", Prec::Loose);
  define(number, std::move(text), Prec::Atom);
}

void KernelWriter::write_wmma(uint32_t number) {
  const Type a = {source(number, 0).dtype, source(number, 0).lanes};
  const uint32_t lanes_b = source(number, 1).lanes, lanes_c = inst(number).lanes;
  for (const WmmaRow& row : dialect_.wmma) {
    if (row.dtype_in != a.dtype || row.dtype_out != inst(number).dtype) continue;
    if (row.lanes_a != a.lanes || row.lanes_b != lanes_b || row.lanes_c != lanes_c) continue;
    std::string text = expand(row.pattern, {{'0', use(ir_.source(number, 0), Prec::Loose)},
                                            {'1', use(ir_.source(number, 1), Prec::Loose)},
                                            {'2', use(ir_.source(number, 2), Prec::Loose)}});
    define(number, std::move(text), Prec::Atom);
    // Emit the WMMA here, where all work-items arrive; its use may be in divergent control flow.
    if (values_[number].is_pending) settle(number);
    return;
  }
  throw sdk::StatusError(PGR_STATUS_UNSUPPORTED, std::string("dialect ") + dialect_.name +
                                                     " has no WMMA of " + std::to_string(a.lanes) +
                                                     ", " + std::to_string(lanes_b) + " and " +
                                                     std::to_string(lanes_c) + " lanes on " +
                                                     std::string(sdk::dtype_name(a.dtype)));
}

}  // namespace plugrad::render
