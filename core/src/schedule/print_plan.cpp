// Plans as text.
#include <fmt/format.h>

#include "ir/text/printer.h"
#include "schedule/schedule.h"

namespace plugrad::schedule {
namespace {

std::string location_of(const PlannedBuffer& b) {
  switch (b.kind) {
    case PlannedBuffer::Kind::Input:
      return fmt::format("input {}", b.number);
    case PlannedBuffer::Kind::Output:
      return fmt::format("output {}", b.number);
    case PlannedBuffer::Kind::Constant:
      return fmt::format("constant {}", b.number);
    default:
      return fmt::format("arena {} at {}", b.arena, b.offset_bytes);
  }
}

std::string step_line(const Step& step) {
  std::string line = step.kind == Step::Kind::Copy ? "copy" : fmt::format("kernel {}", step.ast);
  if (step.kind == Step::Kind::Collective) line = "start collective";
  if (step.kind == Step::Kind::Wait) line = "wait for collective";
  if (step.kind == Step::Kind::User) line = fmt::format("user's kernel {}", step.ast);
  if (step.kind == Step::Kind::Loop) line = fmt::format("loop {}", step.ast);
  line += fmt::format(" on device {}: b{} =", step.device, step.buffers[0]);
  for (size_t i = 1; i < step.buffers.size(); ++i) line += fmt::format(" b{}", step.buffers[i]);
  if (!step.scalars.empty()) line += fmt::format(" with {}", fmt::join(step.scalars, " "));
  if (!step.numbers.empty()) line += fmt::format(" with numbers {}", fmt::join(step.numbers, " "));
  return line + "\n";
}

}  // namespace

std::string to_string(const Plan& plan) {
  std::string out;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const PlannedBuffer& b = plan.buffers[i];
    out += fmt::format("b{}: {} x {} on device {}, {}\n", i, b.elem_count, name_of(b.dtype),
                       b.device, location_of(b));
  }
  for (const Donation& pair : plan.donations)
    out += fmt::format("b{} may take the memory of b{}\n", pair.output, pair.input);
  for (size_t i = 0; i < plan.arenas.size(); ++i)
    out += fmt::format("arena {}: {} bytes on device {}\n", i, plan.arenas[i].size_bytes,
                       plan.arenas[i].device);
  for (const Step& step : plan.steps) out += step_line(step);
  for (size_t i = 0; i < plan.asts.size(); ++i)
    out += fmt::format("kernel {}:\n{}\n", i,
                       print(plan.asts[i]->graph, plan.asts[i]->sink, Numbering::FromZero));
  return out;
}

}  // namespace plugrad::schedule
