#include "conformance/kernels/elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "plugrad/sdk/op_info.h"

namespace plugrad::conformance {
namespace {

// What counts as the distance of a result that has none: a NaN for a number, another integer.
constexpr double kFarOff = 1e9;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

Value emit_operation(IrBuilder& ir, const Operation& o, const std::vector<Value>& sources,
                     uint32_t lanes) {
  return ir.emit(o.op, o.to, lanes, sources);
}

void pad_to_groups(Cases& cases) {
  for (auto& column : cases.columns) {
    const size_t groups = (column.size() + kElementsPerGroup - 1) / kElementsPerGroup;
    column.resize(groups * kElementsPerGroup, column.front());
  }
}

}  // namespace

Bytes pack(uint32_t dtype, std::span<const uint64_t> values) {
  const auto size = static_cast<size_t>(width_of(dtype) / 8);
  Bytes bytes(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) std::memcpy(&bytes[i * size], &values[i], size);
  return bytes;
}

std::vector<uint64_t> unpack(uint32_t dtype, std::span<const std::byte> bytes) {
  const auto size = static_cast<size_t>(width_of(dtype) / 8);
  std::vector<uint64_t> values(bytes.size() / size);
  for (size_t i = 0; i < values.size(); ++i) std::memcpy(&values[i], &bytes[i * size], size);
  return values;
}

std::string id_of_op(uint32_t op) {
  return lower(sdk::op_info(op)->name);
}
std::string id_of_dtype(uint32_t dtype) {
  return std::string(sdk::dtype_name(dtype));
}

Value index_constant(IrBuilder& ir, int64_t value, uint32_t dtype) {
  return ir.constant_int(dtype, value);
}

Bytes elementwise_block(const Operation& o, uint64_t count, uint32_t lanes) {
  IrBuilder ir(id_of_op(o.op) + "_" + id_of_dtype(o.from) + "_" + id_of_dtype(o.to));
  ir.set_groups(count / kElementsPerGroup);
  std::vector<Value> inputs;
  for (uint32_t s = 0; s < o.source_count(); ++s)
    inputs.push_back(ir.buffer(o.source_dtype(s), count, kInput));
  const Value output = ir.buffer(o.to, count, kOutput);
  const Value base = ir.alu(PGR_OP_MUL, {ir.group_id(0), index_constant(ir, kElementsPerGroup)});
  const Value loop = ir.loop(index_constant(ir, 0), index_constant(ir, kElementsPerGroup / lanes));
  const Value step = lanes == 1 ? loop : ir.alu(PGR_OP_MUL, {loop, index_constant(ir, lanes)});
  const Value at = ir.alu(PGR_OP_ADD, {base, step});
  std::vector<Value> sources;
  for (Value input : inputs) sources.push_back(ir.load(input, at, lanes));
  ir.store(output, at, emit_operation(ir, o, sources, lanes));
  ir.end_loop(loop);
  return ir.finish();
}

void Verdicts::add(std::span<const uint64_t> sources, uint64_t got) {
  const Verdict verdict = judge_.judge(sources, got);
  ++count_;
  if (!verdict.is_right) {
    if (wrong_++ == 0) first_wrong_ = judge_.explain(sources, got);
  }
  const double ulp = std::min(verdict.ulp, kFarOff) + (verdict.is_right ? 0 : kFarOff);
  if (ulp <= worst_) return;
  worst_ = ulp;
  worst_sources_.assign(sources.begin(), sources.end());
  worst_got_ = got;
}

void Verdicts::finish() const {
  if (worst_ < 0) return;
  const Operation& o = judge_.operation();
  std::string input;
  for (uint32_t i = 0; i < worst_sources_.size(); ++i)
    input += (i ? ", " : "") + describe(o.source_dtype(i), worst_sources_[i]);
  const double worst = worst_ >= kFarOff ? worst_ - kFarOff : worst_;
  if (is_float(o.to)) context_.measure("ulp", worst, input);
  if (wrong_ == 0) return;
  const std::string other = judge_.explain(worst_sources_, worst_got_);
  throw Failed(fmt::format("{} of {} results are wrong: {}{}", wrong_, count_, first_wrong_,
                           other == first_wrong_ ? "" : "; the worst: " + other));
}

void run_operation(Context& context, const Operation& o, Cases cases, uint32_t lanes) {
  const size_t count = cases.size();
  pad_to_groups(cases);
  const Bytes block = elementwise_block(o, cases.size(), lanes);
  context.about(block);
  Device& device = context.device();
  device.require_claims(block);
  std::vector<Bytes> buffers;
  for (uint32_t s = 0; s < o.source_count(); ++s)
    buffers.push_back(pack(o.source_dtype(s), cases.columns[s]));
  buffers.emplace_back(cases.size() * static_cast<size_t>(width_of(o.to) / 8));
  device.run(block, buffers);
  const std::vector<uint64_t> got = unpack(o.to, buffers.back());
  const Judge judge(o, device.caps());
  Verdicts verdicts(context, judge);
  uint64_t sources[3];
  for (size_t i = 0; i < count; ++i) {
    for (uint32_t s = 0; s < o.source_count(); ++s) sources[s] = cases.columns[s][i];
    verdicts.add(std::span(sources, o.source_count()), got[i]);
  }
  verdicts.finish();
}

}  // namespace plugrad::conformance
