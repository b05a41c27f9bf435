// Tests operands known at compile time: constants, and the same value twice. Compilers may rewrite
// such ops, and many ignore NaN, infinity and -0: x * 0, x / 0, x - x.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "conformance/kernels/elements.h"

namespace plugrad::conformance {
namespace {

constexpr uint64_t kKnownElements = 256;

// The sources of an op: bits of the constant ones; the others are loaded.
struct Form {
  std::array<std::optional<uint64_t>, 3> known;
  bool is_twice = false;  // all loaded sources are the same value
};

// A loop over all elements with vectors of one width.
struct FormSection {
  uint32_t lanes;
  std::vector<Form> forms;
};

std::vector<uint64_t> known_values(uint32_t dtype) {
  if (dtype == PGR_DTYPE_BOOL) return {0, 1};
  if (is_float(dtype)) {
    const Format& f = format_of(dtype);
    const uint64_t step = uint64_t{1} << f.mantissa_bits;
    const uint64_t one = static_cast<uint64_t>(f.bias()) << f.mantissa_bits;
    // NaN if the format has no infinity
    const uint64_t sign = f.sign_bit(), infinity = f.overflow();
    return {0,
            sign,
            one,
            one | sign,
            one + step,
            one - step,
            infinity,
            infinity | sign,
            f.nan(),
            f.largest(),
            f.smallest_normal(),
            1};
  }
  const int width = width_of(dtype);
  const uint64_t mask = ~uint64_t{0} >> (64 - width), top = uint64_t{1} << (width - 1);
  const auto bits = static_cast<uint64_t>(width);
  std::vector<uint64_t> values = {0, 1, mask, 2, 3, 10, 16, bits - 1, bits, top, top - 1};
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::vector<Form> forms_of(const Operation& o) {
  std::vector<Form> forms;
  for (uint32_t s = 0; s < o.source_count(); ++s)
    for (uint64_t bits : known_values(o.source_dtype(s))) forms.emplace_back().known[s] = bits;
  if (o.source_count() == 2) forms.push_back({{}, true});
  if (o.op == PGR_OP_WHERE) {
    for (uint64_t condition : {uint64_t{0}, uint64_t{1}}) forms.push_back({{condition}, true});
    forms.emplace_back().known = {std::nullopt, uint64_t{0}, uint64_t{1}};
  }
  return forms;
}

// Scalars and the widest vectors; an op whose only source is constant is tested as a scalar.
std::vector<FormSection> form_sections_of(const Device& device, const Operation& o) {
  std::vector<FormSection> sections = {{1, forms_of(o)}};
  if (o.source_count() == 1) return sections;
  uint32_t widest = 64;
  for (uint32_t dtype : {o.from, o.to, o.source_dtype(0)})
    widest = std::min(widest, device.caps().vector_lanes[dtype]);
  if (widest > 1) sections.push_back({widest, sections[0].forms});
  return sections;
}

// The column of inputs that source `s` is loaded from.
size_t column_of(const Operation& o, const Form& form, uint32_t s) {
  const bool is_condition = o.op == PGR_OP_WHERE && s == 0;
  return form.is_twice && !is_condition ? o.source_count() - 1 : s;
}

// Signed integers are sign-extended.
Value constant(IrBuilder& ir, uint32_t dtype, uint64_t bits) {
  if (!is_integer(dtype) || !is_signed(dtype)) return ir.constant_bits(dtype, bits);
  const int above = 64 - width_of(dtype);
  return ir.constant_int(dtype, static_cast<int64_t>(bits << above) >> above);
}

Value emit_form(IrBuilder& ir, const Operation& o, const Form& form, uint32_t lanes,
                std::span<const Value> loaded) {
  std::vector<Value> sources;
  for (uint32_t s = 0; s < o.source_count(); ++s)
    sources.push_back(form.known[s] ? constant(ir, o.source_dtype(s), *form.known[s])
                                    : loaded[column_of(o, form, s)]);
  return ir.emit(o.op, o.to, lanes, sources);
}

size_t count_forms(const std::vector<FormSection>& sections) {
  size_t count = 0;
  for (const FormSection& section : sections) count += section.forms.size();
  return count;
}

Bytes known_block(const Operation& o, const std::vector<FormSection>& sections) {
  IrBuilder ir("known_" + id_of_op(o.op) + "_" + id_of_dtype(o.from));
  ir.set_groups(kKnownElements / kElementsPerGroup);
  std::vector<Value> inputs;
  for (uint32_t s = 0; s < o.source_count(); ++s)
    inputs.push_back(ir.buffer(o.source_dtype(s), kKnownElements, kInput));
  const Value output = ir.buffer(o.to, kKnownElements * count_forms(sections), kOutput);
  const Value base = ir.alu(PGR_OP_MUL, {ir.group_id(0), index_constant(ir, kElementsPerGroup)});
  int64_t first = 0;
  for (const FormSection& section : sections) {
    const Value loop =
        ir.loop(index_constant(ir, 0), index_constant(ir, kElementsPerGroup / section.lanes));
    const Value step = ir.alu(PGR_OP_MUL, {loop, index_constant(ir, section.lanes)});
    const Value at = ir.alu(PGR_OP_ADD, {base, step});
    std::vector<Value> loaded;
    for (Value input : inputs) loaded.push_back(ir.load(input, at, section.lanes));
    for (const Form& form : section.forms) {
      const Value to = ir.alu(PGR_OP_ADD, {at, index_constant(ir, first)});
      ir.store(output, to, emit_form(ir, o, form, section.lanes, loaded));
      first += kKnownElements;
    }
    ir.end_loop(loop);
  }
  return ir.finish();
}

// All edges, then random bits; each column in a different order.
Cases make_inputs(const Operation& o, Random& random) {
  Cases cases;
  for (uint32_t s = 0; s < o.source_count(); ++s) {
    std::vector<uint64_t> values = edge_values(o.source_dtype(s));
    while (values.size() < kKnownElements) values.push_back(any_value(o.source_dtype(s), random));
    if (s > 0) std::ranges::shuffle(values, random);
    cases.columns.push_back(std::move(values));
  }
  return cases;
}

std::string describe_form(const Operation& o, const Form& form, uint32_t lanes) {
  std::string text;
  for (uint32_t s = 0; s < o.source_count(); ++s)
    if (form.known[s])
      text += fmt::format("{}source {} is the constant {}", text.empty() ? "" : ", ", s,
                          describe(o.source_dtype(s), *form.known[s]));
  if (form.is_twice)
    text += text.empty() ? "one value is both sources" : ", the others are one value";
  return lanes == 1 ? text : fmt::format("{}, in {} lanes", text, lanes);
}

void judge_form(Context& context, const Judge& judge, const Form& form, uint32_t lanes,
                const Cases& inputs, std::span<const uint64_t> got) {
  const Operation& o = judge.operation();
  Verdicts verdicts(context, judge);
  std::vector<uint64_t> sources(o.source_count());
  for (size_t i = 0; i < kKnownElements; ++i) {
    for (uint32_t s = 0; s < o.source_count(); ++s)
      sources[s] = form.known[s] ? *form.known[s] : inputs.columns[column_of(o, form, s)][i];
    verdicts.add(sources, got[i]);
  }
  try {
    verdicts.finish();
  } catch (const Failed& failed) {
    throw Failed(fmt::format("where {}: {}", describe_form(o, form, lanes), failed.what()));
  }
}

void run_known(Context& context, const Operation& o) {
  const std::vector<FormSection> sections = form_sections_of(context.device(), o);
  Random random(context.seed());
  const Cases inputs = make_inputs(o, random);
  std::vector<Bytes> buffers;
  for (uint32_t s = 0; s < o.source_count(); ++s)
    buffers.push_back(pack(o.source_dtype(s), inputs.columns[s]));
  buffers.push_back(pack(o.to, std::vector<uint64_t>(kKnownElements * count_forms(sections))));
  run_block(context, known_block(o, sections), buffers);
  const std::vector<uint64_t> got = unpack(o.to, buffers.back());
  const Judge judge(o, context.device().caps());
  size_t first = 0;
  for (const FormSection& section : sections)
    for (const Form& form : section.forms) {
      judge_form(context, judge, form, section.lanes, inputs,
                 std::span(got).subspan(first, kKnownElements));
      first += kKnownElements;
    }
}

}  // namespace

void add_known_tests(Tests& tests) {
  add_operation_tests(tests, "known", false, run_known);  // false: casts are too many
}

}  // namespace plugrad::conformance
