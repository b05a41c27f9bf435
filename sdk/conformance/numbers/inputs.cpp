#include "conformance/numbers/inputs.h"

#include <algorithm>

namespace plugrad::conformance {
namespace {

uint64_t mask_of(uint32_t dtype) {
  const int width = width_of(dtype);
  return width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
}

void add_float_edges(uint32_t dtype, std::vector<uint64_t>& out) {
  const Format& f = format_of(dtype);
  const uint64_t one = static_cast<uint64_t>(f.bias()) << f.mantissa_bits;
  const uint64_t step = uint64_t{1} << f.mantissa_bits;
  std::vector<uint64_t> magnitudes = {0,
                                      1,
                                      2,
                                      f.smallest_normal() - 1,
                                      f.smallest_normal(),
                                      one,
                                      one + 1,
                                      one - 1,
                                      one + step / 2,
                                      one + step,
                                      f.largest(),
                                      one - step,
                                      f.overflow(),
                                      f.nan(),
                                      f.largest() - 1,
                                      one + step + step / 2,
                                      one + 3 * step,
                                      one - 2 * step,
                                      f.smallest_normal() + 1};
  // The smallest value without fraction bits: ties of truncation and of casts to integers.
  const uint64_t whole =
      one + step * static_cast<uint64_t>(std::min(f.mantissa_bits, f.bias() - 1));
  magnitudes.insert(magnitudes.end(), {whole, whole - 1, whole + 1, whole - step});
  for (uint64_t magnitude : magnitudes)
    if (magnitude < f.sign_bit()) {
      out.push_back(magnitude);
      out.push_back(magnitude | f.sign_bit());
    }
}

void add_integer_edges(uint32_t dtype, std::vector<uint64_t>& out) {
  const int width = width_of(dtype);
  for (int64_t small : {0, 1, 2, 3, 7, -1, -2, -3, -7, width - 1, width, width + 1})
    out.push_back(static_cast<uint64_t>(small));
  const uint64_t top = uint64_t{1} << (width - 1);
  for (uint64_t near : {top, top - 1, top + 1, top - 2, top >> 1, top | top >> 1})
    out.push_back(near);
}

uint64_t random_integer(uint32_t dtype, Random& random) {
  const auto length = static_cast<int>(random() % static_cast<uint64_t>(width_of(dtype))) + 1;
  const uint64_t bits = random() >> (64 - length);
  return (random() & 1 ? bits : ~bits + 1) & mask_of(dtype);
}

// Values of `from` near the limits and ties of `to`, if values of `to` and midpoints between
// neighbours are exact in `from`.
void add_cast_edges(uint32_t from, uint32_t to, Cases& cases) {
  if (!is_float(from) && !is_integer(from)) return;
  const int precision = is_float(to) ? format_of(to).precision() : width_of(to) - 1;
  if (is_integer(from)) {
    // Midpoints between values of `to`, and the neighbours above and below, for odd and even
    // values.
    for (int length = precision + 2; length <= width_of(from) - (is_signed(from) ? 1 : 0); ++length)
      for (uint64_t head : {uint64_t{2}, uint64_t{3}})
        for (int64_t off : {-1, 0, 1}) {
          const int shift = length - 2;
          const uint64_t half = uint64_t{1} << (length - precision - 1);
          const uint64_t even = head << shift;
          for (uint64_t base : {even, even | half << 1})
            cases.add({(base + half + static_cast<uint64_t>(off)) & mask_of(from)});
        }
    return;
  }
  const Format& f = format_of(from);
  Real value(64);
  for (int exponent = -30; exponent <= 66; ++exponent)
    for (int quarter = 3; quarter <= 9; ++quarter) {
      mpfr_set_ui_2exp(value, static_cast<unsigned long>(quarter), exponent - 2, MPFR_RNDN);
      Real rounded(f.precision());
      const int ternary = mpfr_set(rounded, value, MPFR_RNDN);
      const uint64_t bits = round_to_format(rounded, ternary, from);
      for (uint64_t near : {bits, bits + 1, bits - 1})
        for (uint64_t sign : {uint64_t{0}, f.sign_bit()}) cases.add({f.magnitude(near) | sign});
    }
}

// Floats at midpoints between neighbours of the narrower `to` that are exact in `from`.
void add_narrowing_ties(uint32_t from, uint32_t to, Random& random, Cases& cases) {
  if (!is_float(from) || !is_float(to)) return;
  const Format &wide = format_of(from), &narrow = format_of(to);
  if (wide.mantissa_bits <= narrow.mantissa_bits) return;
  // All values of the 8-bit formats, about a thousand of the others.
  const uint64_t step = narrow.largest() / 512 + 1;
  for (uint64_t bits = 0; bits < narrow.largest(); bits += 1 + random() % step) {
    Real low(64), high(64);
    set_value(low, to, bits);
    set_value(high, to, bits + 1);
    mpfr_add(low, low, high, MPFR_RNDN);
    mpfr_div_2ui(low, low, 1, MPFR_RNDN);
    Real rounded(wide.precision());
    const int ternary = mpfr_set(rounded, low, MPFR_RNDN);
    const uint64_t tie = round_to_format(rounded, ternary, from);
    for (uint64_t near : {tie, tie + 1, tie - 1}) cases.add({wide.magnitude(near)});
  }
}

bool is_shift(uint32_t op) {
  return op == PGR_OP_SHL || op == PGR_OP_SHR;
}

// A difficult second operand: near the first, of opposite sign, half of its last place, or a shift
// count.
uint64_t partner_of(const Operation& o, uint64_t first, Random& random) {
  const uint64_t choice = random() % 4;
  if (is_shift(o.op) && choice > 0)
    return (random() % static_cast<uint64_t>(width_of(o.from) + 4) - 2) & mask_of(o.from);
  if (choice == 0 || o.from == PGR_DTYPE_BOOL) return any_value(o.from, random);
  if (!is_float(o.from)) return (first + random() % 5 - 2) & mask_of(o.from);
  const Format& f = format_of(o.from);
  const uint64_t sign = random() & 1 ? f.sign_bit() : 0;
  const uint64_t magnitude = f.magnitude(first);
  if (choice == 1) return f.magnitude(magnitude + random() % 5 - 2) | sign;
  // Around half a unit in the last place: ties.
  const auto down = static_cast<uint64_t>(f.precision() + static_cast<int>(random() % 3) - 1);
  const uint64_t exponent = magnitude >> f.mantissa_bits;
  const uint64_t fraction = choice == 2 ? 0 : random() & (f.smallest_normal() - 1);
  const uint64_t lower = exponent > down ? exponent - down : 0;
  return lower << f.mantissa_bits | fraction | sign;
}

void add_edge_pairs(const Operation& o, Random& random, Cases& cases) {
  const std::vector<uint64_t> edges = edge_values(o.from);
  for (uint64_t x : edges)
    for (uint64_t y : edges) {
      if (o.op == PGR_OP_FMA)
        cases.add({x, y, edges[random() % edges.size()]});
      else if (o.op == PGR_OP_WHERE)
        cases.add({random() & 1, x, y});
      else
        cases.add({x, y});
    }
}

// The third source of FMA: minus the rounded product, so that only its error remains.
uint64_t negated_product(uint32_t dtype, uint64_t x, uint64_t y) {
  const uint64_t sources[] = {x, y};
  const Operation mul = make_operation(PGR_OP_MUL, dtype);
  return expected_result(mul, sources).bits ^ format_of(dtype).sign_bit();
}

// In the range in which the function neither overflows nor is trivial.
uint64_t interesting_value(const Operation& o, Random& random) {
  const Format& f = format_of(o.from);
  const int lowest = o.op == PGR_OP_LOG2 ? -2 : -8;
  const int highest = o.op == PGR_OP_LOG2 ? 1 : o.op == PGR_OP_EXP2 ? f.exponent_bits - 1 : 10;
  const auto span = static_cast<uint64_t>(highest - lowest + 1);
  const auto exponent = static_cast<uint64_t>(f.bias() + lowest) + random() % span;
  const uint64_t sign = o.op != PGR_OP_LOG2 && (random() & 1) ? f.sign_bit() : 0;
  return sign | exponent << f.mantissa_bits | (random() & (f.smallest_normal() - 1));
}

bool is_transcendental(uint32_t op) {
  return op == PGR_OP_EXP2 || op == PGR_OP_LOG2 || op == PGR_OP_SIN;
}

void add_random_cases(const Operation& o, size_t count, Random& random, Cases& cases) {
  for (size_t i = 0; i < count; ++i) {
    const bool is_inside = is_transcendental(o.op) && i % 2;
    const uint64_t x = is_inside ? interesting_value(o, random) : any_value(o.from, random);
    if (o.source_count() == 1) {
      cases.add({x});
      continue;
    }
    const uint64_t y = partner_of(o, x, random);
    if (o.source_count() == 2)
      cases.add({x, y});
    else if (o.op == PGR_OP_WHERE)
      cases.add({random() & 1, x, y});
    else
      cases.add({x, y, random() % 2 ? negated_product(o.from, x, y) : any_value(o.from, random)});
  }
}

}  // namespace

std::vector<uint64_t> edge_values(uint32_t dtype) {
  std::vector<uint64_t> out;
  if (dtype == PGR_DTYPE_BOOL) return {0, 1};
  if (is_float(dtype))
    add_float_edges(dtype, out);
  else
    add_integer_edges(dtype, out);
  for (uint64_t& bits : out) bits &= mask_of(dtype);
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<uint64_t> all_values(uint32_t dtype) {
  if (dtype == PGR_DTYPE_BOOL) return {0, 1};
  std::vector<uint64_t> out(size_t{1} << width_of(dtype));
  for (size_t i = 0; i < out.size(); ++i) out[i] = i;
  return out;
}

uint64_t any_value(uint32_t dtype, Random& random) {
  if (dtype == PGR_DTYPE_BOOL) return random() & 1;
  return is_float(dtype) ? random() & mask_of(dtype) : random_integer(dtype, random);
}

uint64_t tame_value(uint32_t dtype, Random& random) {
  if (dtype == PGR_DTYPE_BOOL) return random() & 1;
  if (!is_float(dtype)) return (random() % 9 - (is_signed(dtype) ? 4 : 0)) & mask_of(dtype);
  const Format& f = format_of(dtype);
  const auto exponent = static_cast<uint64_t>(f.bias()) - (random() & 1);
  return exponent << f.mantissa_bits | (random() & (f.smallest_normal() - 1)) |
         (random() & 1 ? f.sign_bit() : 0);
}

std::vector<uint64_t> Cases::at(size_t i) const {
  std::vector<uint64_t> sources;
  for (const auto& column : columns) sources.push_back(column[i]);
  return sources;
}

void Cases::add(std::initializer_list<uint64_t> sources) {
  columns.resize(sources.size());
  size_t which = 0;
  for (uint64_t bits : sources) columns[which++].push_back(bits);
}

Cases make_cases(const Operation& o, size_t count, Random& random) {
  Cases cases;
  if (o.source_count() == 1 && width_of(o.from) <= 16) {
    cases.columns.push_back(all_values(o.from));
    return cases;
  }
  if (o.source_count() == 1) {
    for (uint64_t x : edge_values(o.from)) cases.add({x});
    if (o.op == PGR_OP_CAST) {
      add_cast_edges(o.from, o.to, cases);
      add_narrowing_ties(o.from, o.to, random, cases);
    }
  } else {
    add_edge_pairs(o, random, cases);
  }
  add_random_cases(o, count, random, cases);
  return cases;
}

}  // namespace plugrad::conformance
