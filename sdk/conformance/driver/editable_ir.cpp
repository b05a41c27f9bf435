#include "conformance/driver/editable_ir.h"

#include <algorithm>

#include "plugrad/sdk/ir_builder.h"

namespace plugrad::conformance {
namespace {

// Keeps the table entries used by lines of `op`, and renumbers the lines' arguments.
template <typename Entry>
void drop_unnamed(std::vector<Entry>& entries, std::vector<EditableIr::Line>& lines, uint32_t op) {
  std::vector<uint64_t> number(entries.size(), UINT64_MAX);
  for (const EditableIr::Line& line : lines)
    if (line.op == op) number[line.arg] = 0;
  std::vector<Entry> kept;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (number[i] == UINT64_MAX) continue;
    number[i] = kept.size();
    kept.push_back(entries[i]);
  }
  for (EditableIr::Line& line : lines)
    if (line.op == op) line.arg = number[line.arg];
  entries = std::move(kept);
}

}  // namespace

EditableIr::EditableIr(const sdk::IrView& ir)
    : name(ir.name()),
      contract(ir.contract()),
      params(ir.params().begin(), ir.params().end()),
      arrays(ir.arrays().begin(), ir.arrays().end()) {
  std::copy_n(ir.header().group_count, 3, group_count.begin());
  std::copy_n(ir.header().local_size, 3, local_size.begin());
  for (uint32_t i = 0; i < ir.insts().size(); ++i) {
    const pgr_ir_inst& inst = ir.inst(i);
    const std::span<const uint32_t> sources = ir.sources(i);
    lines.push_back(
        {inst.op, inst.dtype, inst.lanes, inst.arg, {sources.begin(), sources.end()}, false});
  }
}

std::vector<std::byte> EditableIr::encode() const {
  sdk::IrBuilder builder(name);
  builder.set_contract(contract);
  builder.set_groups(group_count[0], group_count[1], group_count[2]);
  builder.set_local(local_size[0], local_size[1], local_size[2]);
  for (const pgr_ir_param& param : params) builder.add_param(param);
  for (const pgr_ir_array& array : arrays) builder.add_array(array);
  for (const Line& line : lines)
    builder.emit(line.op, line.dtype, line.lanes, std::span(line.sources), line.arg);
  return builder.finish();
}

bool EditableIr::writes(uint32_t line) const {
  return lines[line].op == PGR_OP_STORE || lines[line].op == PGR_OP_ATOMIC_ADD;
}

bool EditableIr::is_pointer(uint32_t line) const {
  return lines[line].op == PGR_OP_ARRAY ||
         (lines[line].op == PGR_OP_PARAM && params[lines[line].arg].kind == PGR_PARAM_BUFFER);
}

uint32_t EditableIr::closer(uint32_t opener) const {
  for (uint32_t i = opener + 1; i < lines.size(); ++i)
    if ((lines[i].op == PGR_OP_END_LOOP || lines[i].op == PGR_OP_END_IF) &&
        lines[i].sources[0] == opener)
      return i;
  return opener;
}

bool EditableIr::is_parallel() const {
  uint64_t items = 1;
  for (int axis = 0; axis < 3; ++axis) items *= group_count[axis] * local_size[axis];
  return items > 1;
}

void EditableIr::remove(const std::function<bool(uint32_t)>& goes) {
  std::vector<uint32_t> number(lines.size());
  std::vector<Line> kept;
  for (uint32_t i = 0; i < lines.size(); ++i) {
    number[i] = static_cast<uint32_t>(kept.size());
    if (!goes(i)) kept.push_back(std::move(lines[i]));
  }
  for (Line& line : kept)
    for (uint32_t& source : line.sources) source = number[source];
  lines = std::move(kept);
}

void EditableIr::insert(uint32_t at, Line line) {
  for (Line& old : lines)
    for (uint32_t& source : old.sources) source += source >= at;
  lines.insert(lines.begin() + at, std::move(line));
}

void EditableIr::redirect(uint32_t from, uint32_t to) {
  for (Line& line : lines) std::replace(line.sources.begin(), line.sources.end(), from, to);
}

void EditableIr::tidy() {
  std::vector<bool> used(lines.size());
  for (size_t i = lines.size(); i-- > 0;) {
    const bool stays = !has_value(static_cast<uint32_t>(i)) || lines[i].op == PGR_OP_LOOP ||
                       lines[i].stays || used[i];
    used[i] = stays && lines[i].op != PGR_OP_NOP;
    if (used[i])
      for (const uint32_t source : lines[i].sources) used[source] = true;
  }
  remove([&](uint32_t line) { return !used[line]; });
  drop_unnamed(params, lines, PGR_OP_PARAM);
  drop_unnamed(arrays, lines, PGR_OP_ARRAY);
}

}  // namespace plugrad::conformance
