#include "render/dialects/prelude.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "plugrad/sdk/float_bits.h"
#include "plugrad/sdk/guard.h"
#include "plugrad/sdk/op_info.h"
#include "render/text.h"

namespace plugrad::render {
namespace {

template <typename Number>
std::string shortest(Number value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string hex(uint64_t bits) {
  char buffer[20];
  return "0x" + std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, bits, 16).ptr);
}

std::string lowest(uint32_t dtype) {
  if (!sdk::dtype_info(dtype)->is_signed) return "0";
  const uint32_t bits = bits_of(dtype);
  const int64_t highest = static_cast<int64_t>(~uint64_t{0} >> (65 - bits));
  return "(-" + std::to_string(highest) + (bits == 64 ? "l" : "") + " - 1)";
}

std::string highest(uint32_t dtype) {
  const uint32_t bits = bits_of(dtype);
  const bool is_signed = sdk::dtype_info(dtype)->is_signed;
  const uint64_t value = ~uint64_t{0} >> (64 - bits + (is_signed ? 1 : 0));
  return std::to_string(value) + (is_signed ? "" : "u") + (bits == 64 ? "l" : "");
}

// Suffixes of x86 mask and vector instructions by element size.
std::string_view size_letters(uint32_t dtype) {
  switch (bits_of(dtype)) {
    case 8:
      return "bq";
    case 16:
      return "wh";
    case 32:
      return "ds";
    default:
      return "qd";
  }
}

// The power of two above the highest value, or the lowest value, as the text of a double.
std::string end_of(uint32_t dtype) {
  const bool is_signed = sdk::dtype_info(dtype)->is_signed;
  return shortest(std::ldexp(1.0, static_cast<int>(bits_of(dtype)) - (is_signed ? 1 : 0)));
}
std::string begin_of(uint32_t dtype) {
  if (!sdk::dtype_info(dtype)->is_signed) return "0.0";
  return shortest(-std::ldexp(1.0, static_cast<int>(bits_of(dtype)) - 1));
}

}  // namespace

uint32_t bits_of(uint32_t dtype) {
  return sdk::dtype_size(dtype) * 8;
}

uint32_t unsigned_dtype(uint32_t dtype) {
  switch (bits_of(dtype)) {
    case 8:
      return PGR_DTYPE_U8;
    case 16:
      return PGR_DTYPE_U16;
    case 32:
      return PGR_DTYPE_U32;
    default:
      return PGR_DTYPE_U64;
  }
}

std::string lane_digit(uint32_t lane) {
  return lane < 16 ? std::string(1, "0123456789abcdef"[lane]) : std::string();
}

std::string without_suffix(std::string literal) {
  while (literal.size() > 1 && (literal.back() == 'l' || literal.back() == 'u')) literal.pop_back();
  return literal;
}

uint32_t memory_dtype(uint32_t dtype) {
  return dtype == PGR_DTYPE_BOOL ? uint32_t{PGR_DTYPE_U8} : dtype;
}

uint32_t mask_dtype(uint32_t bits) {
  switch (bits) {
    case 8:
      return PGR_DTYPE_I8;
    case 16:
      return PGR_DTYPE_I16;
    case 32:
      return PGR_DTYPE_I32;
    default:
      return PGR_DTYPE_I64;
  }
}

std::string Prelude::type(Type type) {
  const TypeRow& row = dialect_.types[type.dtype];
  sdk::require(row.name != nullptr, PGR_STATUS_UNSUPPORTED,
               std::string("dialect ") + dialect_.name + " has no type " +
                   std::string(sdk::dtype_name(type.dtype)));
  used_[type.dtype][0] |= 1;
  if (type.lanes == 1) return row.name;
  sdk::require(dialect_.vector_type != nullptr, PGR_STATUS_UNSUPPORTED,
               std::string("dialect ") + dialect_.name + " has no vectors");
  used_[type.dtype][static_cast<size_t>(std::countr_zero(type.lanes))] |= 1;
  sdk::require(type.lanes <= dialect_.most_lanes, PGR_STATUS_UNSUPPORTED,
               std::string("dialect ") + dialect_.name + " has vectors of up to " +
                   std::to_string(dialect_.most_lanes) + " lanes, not of " +
                   std::to_string(type.lanes));
  return row.name + (dialect_.lanes_infix + std::to_string(type.lanes));
}

std::string Prelude::unaligned(Type type) {
  std::string name = this->type(type);
  used_[type.dtype][static_cast<size_t>(std::countr_zero(type.lanes))] |= 2;
  return name + "u";
}

std::string Prelude::pointer(uint32_t dtype) {
  type({dtype, 1});
  used_[dtype][0] |= 4;
  return "P_" + std::string(sdk::dtype_name(dtype));
}

std::string Prelude::to_bits(uint32_t dtype, const std::string& text) {
  const char* pattern = dialect_.types[dtype].to_bits;
  return expand(pattern ? pattern : dialect_.convert_scalar,
                {{'T', type({unsigned_dtype(dtype), 1})}, {'0', text}});
}

std::string Prelude::from_bits(uint32_t dtype, const std::string& text) {
  const char* pattern = dialect_.types[dtype].from_bits;
  return expand(pattern ? pattern : dialect_.convert_scalar,
                {{'T', type({dtype, 1})}, {'0', text}});
}

std::string Prelude::literal(uint32_t dtype, uint64_t bits) {
  const char* pattern = dialect_.types[dtype].literal;
  const std::string plain = plain_literal(dtype, bits);
  return pattern ? expand(pattern, {{'0', plain}}) : plain;
}

// Floats that parsers of decimal text may round differently are written as bits.
std::string Prelude::float_by_bits(uint32_t dtype, uint64_t bits) {
  if (!dialect_.is_strict)
    return expand(
        dialect_.bits_scalar,
        {{'T', type({dtype, 1})}, {'0', "(" + type({unsigned_dtype(dtype), 1}) + ")" + hex(bits)}});
  return from_bits(dtype, hex(bits) + dialect_.types[unsigned_dtype(dtype)].suffix);
}

std::string Prelude::plain_literal(uint32_t dtype, uint64_t bits) {
  const sdk::DtypeInfo& info = *sdk::dtype_info(dtype);
  if (dtype == PGR_DTYPE_BOOL) return bits ? "true" : "false";
  if (is_kept_as_bits(dtype)) return hex(bits);
  const std::string suffix = dialect_.types[dtype].suffix;
  if (!info.is_float) {
    if (!info.is_signed) return std::to_string(bits) + suffix;
    const int64_t value = static_cast<int64_t>(bits);
    const bool is_lowest = bits_of(dtype) >= 32 && bits == ~uint64_t{0} << (bits_of(dtype) - 1);
    return is_lowest ? lowest(dtype) : std::to_string(value) + suffix;
  }
  const double value = sdk::decode_float(dtype, bits);
  const bool is_tiny = dialect_.is_strict && value != 0 && std::abs(value) < 0x1p-100;
  if (!std::isfinite(value) || is_tiny) return float_by_bits(dtype, bits);
  return (dtype == PGR_DTYPE_F64 ? shortest(value) : shortest(static_cast<float>(value))) + suffix;
}

bool Prelude::is_kept_as_bits(uint32_t dtype) const {
  if (dtype == PGR_DTYPE_F16) return dialect_.f16_to_f32 != nullptr;
  return dtype == PGR_DTYPE_BF16 || dtype >= PGR_DTYPE_F8E4M3;
}

std::string Prelude::helper(const Helper& helper, Type from, Type to, Space space) {
  std::string name = std::string(helper.name) + "_";
  if (space_of(helper, space)) name += space_of(helper, space)->in_name;
  if (from.dtype != to.dtype) name += type(to) + "_";
  name += type(from);
  if (std::find(helper_names_.begin(), helper_names_.end(), name) == helper_names_.end()) {
    helper_names_.push_back(name);
    const bool is_split = from.lanes > 1 && !helper.vector && dialect_.lane_by_lane;
    const std::string text =
        is_split ? lane_by_lane(helper, name, from, to) : helper_text(helper, from, to, space);
    helper_texts_ += dialect_.helper_prefix + text;
  }
  return name;
}

// Address space of a helper's pointer, in languages that distinguish them.
const SpaceRow* Prelude::space_of(const Helper& helper, Space space) const {
  const char* pattern = helper.vector ? helper.vector : helper.scalar;
  const bool has_pointer = std::string_view(pattern).find("$S") != std::string_view::npos;
  return dialect_.spaces && has_pointer ? &dialect_.spaces[static_cast<size_t>(space)] : nullptr;
}

std::string Prelude::lane_by_lane(const Helper& helper, const std::string& name, Type from,
                                  Type to) {
  const std::string_view text = helper.scalar;
  const std::string one = this->helper(helper, {from.dtype, 1}, {to.dtype, 1}), own = type(from);
  const std::string_view listed = text.substr(0, text.find(')'));
  std::string parameters = own + " a", arguments = "a[lane]";
  for (char next = 'b'; next <= 'a' + std::count(listed.begin(), listed.end(), ','); ++next) {
    parameters += ", " + own + " " + next;
    arguments += std::string(", ") + next + "[lane]";
  }
  return expand(dialect_.lane_by_lane, {{'R', type(to)},
                                        {'0', name},
                                        {'1', one},
                                        {'P', parameters},
                                        {'A', arguments},
                                        {'N', std::to_string(from.lanes)}});
}

std::string Prelude::helper_text(const Helper& helper, Type from, Type to, Space space) {
  const bool is_vector = from.lanes > 1 && helper.vector;
  const std::string pattern = is_vector ? helper.vector : helper.scalar;
  const auto uses = [&](const char* letter) { return pattern.find(letter) != std::string::npos; };
  const auto type_if = [&](const char* letter, Type wanted) {
    return uses(letter) ? type(wanted) : std::string();
  };
  const uint32_t lanes = from.lanes;
  const bool to_int = sdk::dtype_info(to.dtype)->is_int;
  std::string all_lanes;
  for (uint32_t lane = 0; helper.per_lane && lane < lanes; ++lane)
    all_lanes += expand(helper.per_lane, {{'0', std::to_string(lane)}, {'X', lane_digit(lane)}});
  const SpaceRow* in = space_of(helper, space);
  return expand(pattern, {{'T', type(from)},
                          {'R', type_if("$R", to)},
                          {'E', type_if("$E", {memory_dtype(from.dtype), 1})},
                          {'N', lanes > 1 ? std::to_string(lanes) : ""},
                          {'B', std::to_string(bits_of(from.dtype) * lanes)},
                          {'K', size_letters(from.dtype).substr(0, 1)},
                          {'Q', size_letters(from.dtype).substr(1)},
                          {'M', type_if("$M", {mask_dtype(bits_of(from.dtype)), lanes})},
                          {'J', type_if("$J", {mask_dtype(bits_of(to.dtype)), lanes})},
                          {'U', type_if("$U", {PGR_DTYPE_U32, lanes})},
                          {'C', std::to_string(bits_of(to.dtype) - 1)},
                          {'L', to_int ? lowest(to.dtype) : std::string()},
                          {'H', to_int ? highest(to.dtype) : std::string()},
                          {'X', to_int ? end_of(to.dtype) : std::string()},
                          {'Y', to_int ? begin_of(to.dtype) : std::string()},
                          {'A', in ? in->qualifier : ""},
                          {'S', in ? in->in_name : ""},
                          {'1', all_lanes}});
}

std::string Prelude::size_check(const std::string& name, uint32_t bytes, const char* advice) const {
  if (!dialect_.size_check) return {};
  return expand(dialect_.size_check, {{'T', name}, {'A', std::to_string(bytes)}, {'0', advice}});
}

std::string Prelude::scalar_definition(uint32_t dtype) const {
  const TypeRow& row = dialect_.types[dtype];
  const uint32_t bytes = bits_of(dtype) / 8;
  std::string out;
  if (used_[dtype][0] && row.definition)
    out += std::string("typedef ") + row.definition + " " + row.name + ";\n" +
           size_check(row.name, bytes, "");
  if (used_[dtype][0] & 4)
    out += expand(dialect_.pointer_type,
                  {{'0', sdk::dtype_name(dtype)}, {'E', row.name}, {'A', std::to_string(bytes)}});
  return out;
}

std::string Prelude::vector_definition(uint32_t dtype, uint32_t lanes, uint8_t used) const {
  const std::string element = dialect_.types[dtype].name, count = std::to_string(lanes),
                    name = element + dialect_.lanes_infix + count;
  const uint32_t bytes = bits_of(dtype) / 8;
  std::string out =
      expand(dialect_.vector_type,
             {{'E', element}, {'T', name}, {'N', count}, {'A', std::to_string(bytes * lanes)}}) +
      size_check(name, bytes * lanes, dialect_.vector_advice);
  if (used & 2)
    out += expand(dialect_.unaligned_type,
                  {{'T', name}, {'U', name + "u"}, {'A', std::to_string(bytes)}});
  return out;
}

std::string Prelude::text() const {
  std::string out;
  for (uint32_t dtype = 1; dtype < PGR_DTYPE_COUNT; ++dtype) out += scalar_definition(dtype);
  for (uint32_t dtype = 1; dtype < PGR_DTYPE_COUNT; ++dtype)
    for (uint32_t log = 1; log < 7; ++log)
      if (used_[dtype][log]) out += vector_definition(dtype, 1u << log, used_[dtype][log]);
  return out + helper_texts_;
}

}  // namespace plugrad::render
