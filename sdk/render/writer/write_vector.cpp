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

std::vector<uint32_t> KernelWriter::vectors_of(std::span<const uint32_t> lanes) const {
  std::vector<uint32_t> vectors;
  for (uint32_t lane : lanes) {
    const uint32_t from = ir_.source(lane, 0);
    if (std::ranges::find(vectors, from) == vectors.end()) vectors.push_back(from);
  }
  return vectors;
}

// Whether these are lanes of two vectors, or can be halved until each part is.
bool KernelWriter::can_shuffle(std::span<const uint32_t> lanes) const {
  for (uint32_t lane : lanes)
    if (inst(lane).op != PGR_OP_LANE || inst(lane).lanes != 1 || source(lane, 0).lanes == 1)
      return false;
  const std::vector<uint32_t> vectors = vectors_of(lanes);
  if (vectors.size() <= 2) return inst(vectors.front()).lanes == inst(vectors.back()).lanes;
  const size_t half = lanes.size() / 2;
  return half > 1 && can_shuffle(lanes.first(half)) && can_shuffle(lanes.subspan(half));
}

std::string KernelWriter::shuffle_of(std::span<const uint32_t> lanes) {
  const auto count = static_cast<uint32_t>(lanes.size());
  const std::vector<uint32_t> vectors = vectors_of(lanes);
  std::string first, second, numbers;
  if (vectors.size() > 2) {
    first = shuffle_of(lanes.first(count / 2));
    second = shuffle_of(lanes.subspan(count / 2));
    numbers = lane_numbers(0, count);
  } else {
    first = use_name(vectors.front());
    second = use_name(vectors.back());
    for (uint32_t lane : lanes) {
      const bool is_first = ir_.source(lane, 0) == vectors.front();
      const uint64_t before = is_first ? 0 : inst(vectors.front()).lanes;
      numbers += (numbers.empty() ? "" : ", ") + std::to_string(before + inst(lane).arg);
    }
  }
  return expand(dialect_.shuffle, {{'T', prelude_.type({inst(lanes[0]).dtype, count})},
                                   {'0', first},
                                   {'1', second},
                                   {'2', numbers}});
}

// Clang turns long lists of lanes into several shuffles each, and takes three times as long.
bool KernelWriter::write_shuffle(uint32_t number) {
  const auto lanes = ir_.sources(number);
  if (!dialect_.shuffle || inst(number).dtype == PGR_DTYPE_BOOL || !can_shuffle(lanes))
    return false;
  for (uint32_t lane : lanes) use(lane, Prec::Loose);
  define(number, shuffle_of(lanes), Prec::Unary);
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
