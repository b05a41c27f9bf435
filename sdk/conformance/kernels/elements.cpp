#include "conformance/kernels/elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "plugrad/sdk/interpreter.h"
#include "plugrad/sdk/op_info.h"

namespace plugrad::conformance {
namespace {

// Reported distance if none is defined: NaN instead of a number, or a different integer.
constexpr double kReportedFarOff = 1e9;

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
Value plus(IrBuilder& ir, Value a, Value b) {
  return ir.alu(PGR_OP_ADD, {a, b});
}
Value times(IrBuilder& ir, Value a, int64_t b) {
  return ir.alu(PGR_OP_MUL, {a, index_constant(ir, b)});
}
Value nest(IrBuilder& ir, Value index, int64_t size, Value next) {
  return plus(ir, times(ir, index, size), next);
}

void run_block(Context& context, std::span<const std::byte> block, std::span<Bytes> buffers,
               std::span<const uint64_t> scalars) {
  context.about(block);
  context.device().require_claims(block);
  context.device().run(block, buffers, scalars);
}

void interpret(const sdk::IrView& ir, std::span<Bytes> contents, std::span<const uint64_t> scalars,
               uint64_t iteration_limit) {
  std::vector<sdk::InterpreterBuffer> buffers;
  for (Bytes& bytes : contents) buffers.push_back({bytes.data(), bytes.size()});
  sdk::InterpreterLaunch launch;
  launch.buffers = buffers;
  launch.scalars = scalars;
  std::copy_n(ir.header().group_count, 3, launch.group_count.begin());
  std::copy_n(ir.header().local_size, 3, launch.local_size.begin());
  launch.iteration_limit = iteration_limit;
  sdk::Interpreter(ir).run(launch);
}

void expect_equal(uint32_t dtype, std::span<const uint64_t> want, std::span<const uint64_t> got,
                  const std::string& what) {
  expect(want.size() == got.size(), what + ": the suite expects another number of elements");
  for (size_t i = 0; i < want.size(); ++i) {
    if (want[i] == got[i]) continue;
    if (is_float(dtype) && is_nan(dtype, want[i]) && is_nan(dtype, got[i])) continue;
    throw Failed(fmt::format("{}: element {} is {}, expected {}", what, i, describe(dtype, got[i]),
                             describe(dtype, want[i])));
  }
}

std::vector<uint32_t> vector_widths(Context& context, std::initializer_list<uint32_t> dtypes) {
  const pgr_device_caps& caps = context.device().caps();
  uint32_t widest = 64;
  for (uint32_t dtype : dtypes) widest = std::min(widest, caps.vector_lanes[dtype]);
  std::vector<uint32_t> widths;
  for (uint32_t width = 2; width <= widest; width *= 2) widths.push_back(width);
  if (widths.empty())
    throw Unsupported("the device does not claim lanes of " +
                      std::string(sdk::dtype_name(*dtypes.begin())));
  return widths;
}

std::vector<uint64_t> mixed_values(uint32_t dtype, size_t count, Random& random) {
  const std::vector<uint64_t> edges = edge_values(dtype);
  std::vector<uint64_t> values(count);
  for (uint64_t& value : values)
    value = random() % 3 ? any_value(dtype, random) : edges[random() % edges.size()];
  return values;
}

std::vector<uint64_t> tame_values(uint32_t dtype, size_t count, Random& random) {
  std::vector<uint64_t> values(count);
  for (uint64_t& value : values) value = tame_value(dtype, random);
  return values;
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
  const double ulp =
      std::min(verdict.ulp, kReportedFarOff) + (verdict.is_right ? 0 : kReportedFarOff);
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
  const double worst = worst_ >= kReportedFarOff ? worst_ - kReportedFarOff : worst_;
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
  std::vector<Bytes> buffers;
  for (uint32_t s = 0; s < o.source_count(); ++s)
    buffers.push_back(pack(o.source_dtype(s), cases.columns[s]));
  buffers.emplace_back(cases.size() * static_cast<size_t>(width_of(o.to) / 8));
  run_block(context, block, buffers);
  const std::vector<uint64_t> got = unpack(o.to, buffers.back());
  const Judge judge(o, context.device().caps());
  Verdicts verdicts(context, judge);
  uint64_t sources[3];
  for (size_t i = 0; i < count; ++i) {
    for (uint32_t s = 0; s < o.source_count(); ++s) sources[s] = cases.columns[s][i];
    verdicts.add(std::span(sources, o.source_count()), got[i]);
  }
  verdicts.finish();
}

void add_operation_tests(Tests& tests, std::string_view family, bool casts_are_quick,
                         void (*run)(Context&, const Operation&)) {
  const auto add = [&](const Operation& o) {
    const bool is_cast = o.op == PGR_OP_CAST || o.op == PGR_OP_BITCAST;
    Test test;
    test.op = id_of_op(o.op);
    test.dtype = id_of_dtype(o.from);
    test.id = fmt::format("l2.{}.{}.{}", family, test.op, test.dtype);
    if (is_cast) test.id += "." + id_of_dtype(o.to);
    test.quick = !is_cast || casts_are_quick;
    test.level = Level::L2;
    test.run = [o, run](Context& context) { run(context, o); };
    tests.push_back(std::move(test));
  };
  for (const sdk::OpInfo& op : sdk::all_ops())
    for (uint32_t from = PGR_DTYPE_BOOL; from < PGR_DTYPE_COUNT; ++from)
      for (uint32_t to = PGR_DTYPE_BOOL; to < PGR_DTYPE_COUNT; ++to)
        if (op.op_class == PGR_OP_CLASS_ALU && is_operation(op.number, from, to))
          add({op.number, from, to});
}

}  // namespace plugrad::conformance
