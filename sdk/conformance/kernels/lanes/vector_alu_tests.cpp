// Tests every op and cast in all vector widths of the device: each lane equals the scalar result,
// also if one source is a scalar.
#include <algorithm>

#include "conformance/kernels/elements.h"
#include "conformance/kernels/lanes/lanes.h"

namespace plugrad::conformance {
namespace {

constexpr uint64_t kWidthElements = 256;

// One loop over all elements: a width, and whether source 0 is only its first lane.
struct WidthSection {
  uint32_t lanes;
  bool is_repeated;
};

// The narrowest and widest width, for which rendering differs, and one between.
std::vector<WidthSection> width_sections_of(Context& context, const Operation& o) {
  std::vector<WidthSection> sections;
  const std::vector<uint32_t> all = vector_widths(context, {o.from, o.to, o.source_dtype(0)});
  for (uint32_t lanes : all) {
    const bool is_cast = o.op == PGR_OP_CAST || o.op == PGR_OP_BITCAST;
    const bool is_middle = !is_cast && lanes == all[all.size() / 2];
    if (lanes != all.front() && lanes != all.back() && !is_middle) continue;
    sections.push_back({lanes, false});
    if (o.source_count() > 1) sections.push_back({lanes, true});
  }
  return sections;
}

Bytes widths_block(const Operation& o, const std::vector<WidthSection>& sections) {
  IrBuilder ir("lanes_" + id_of_op(o.op) + "_" + id_of_dtype(o.from));
  ir.set_groups(kWidthElements / kElementsPerGroup);
  std::vector<Value> inputs;
  for (uint32_t s = 0; s < o.source_count(); ++s)
    inputs.push_back(ir.buffer(o.source_dtype(s), kWidthElements, kInput));
  const Value output = ir.buffer(o.to, kWidthElements * sections.size(), kOutput);
  const Value base = ir.alu(PGR_OP_MUL, {ir.group_id(0), index_constant(ir, kElementsPerGroup)});
  for (size_t k = 0; k < sections.size(); ++k) {
    const uint32_t lanes = sections[k].lanes;
    const Value loop =
        ir.loop(index_constant(ir, 0), index_constant(ir, kElementsPerGroup / lanes));
    const Value step = ir.alu(PGR_OP_MUL, {loop, index_constant(ir, lanes)});
    const Value at = ir.alu(PGR_OP_ADD, {base, step});
    std::vector<Value> sources;
    for (Value input : inputs)
      sources.push_back(
          ir.load(input, at, sections[k].is_repeated && input == inputs[0] ? 1 : lanes));
    const Value to =
        ir.alu(PGR_OP_ADD, {at, index_constant(ir, static_cast<int64_t>(k * kWidthElements))});
    ir.store(output, to, ir.emit(o.op, o.to, lanes, sources));
    ir.end_loop(loop);
  }
  return ir.finish();
}

void judge_section(const Cases& cases, const WidthSection& section, std::span<const uint64_t> got,
                   Verdicts& verdicts) {
  for (size_t i = 0; i < kWidthElements; ++i) {
    std::vector<uint64_t> sources = cases.at(i);
    if (section.is_repeated) sources[0] = cases.columns[0][i / section.lanes * section.lanes];
    verdicts.add(sources, got[i]);
  }
}

// A subset of the cases of the op's own test.
Cases pick_cases(const Operation& o, Random& random) {
  const Cases all = make_cases(o, kWidthElements, random);
  Cases some;
  some.columns.resize(o.source_count());
  for (size_t i = 0; i < kWidthElements; ++i) {
    const size_t which = random() % all.size();
    for (uint32_t s = 0; s < o.source_count(); ++s)
      some.columns[s].push_back(all.columns[s][which]);
  }
  return some;
}

void run_widths(Context& context, const Operation& o) {
  const std::vector<WidthSection> sections = width_sections_of(context, o);
  const Bytes block = widths_block(o, sections);
  Random random(context.seed());
  const Cases cases = pick_cases(o, random);
  std::vector<Bytes> buffers;
  for (uint32_t s = 0; s < o.source_count(); ++s)
    buffers.push_back(pack(o.source_dtype(s), cases.columns[s]));
  buffers.push_back(pack(o.to, std::vector<uint64_t>(kWidthElements * sections.size())));
  run_block(context, block, buffers);
  const std::vector<uint64_t> got = unpack(o.to, buffers.back());
  const Judge judge(o, context.device().caps());
  Verdicts verdicts(context, judge);
  for (size_t k = 0; k < sections.size(); ++k)
    judge_section(cases, sections[k], std::span(got).subspan(k * kWidthElements, kWidthElements),
                  verdicts);
  verdicts.finish();
}

}  // namespace

void add_vector_alu_tests(Tests& tests) {
  add_operation_tests(tests, "lanes", true, run_widths);
}

}  // namespace plugrad::conformance
