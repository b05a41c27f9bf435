// Renders the kernel's frame: parameters, group loop, blocks and the entry that the runner calls.
#include "plugrad/sdk/guard.h"
#include "plugrad/sdk/op_info.h"
#include "render/text.h"
#include "render/writer/kernel_writer.h"

namespace plugrad::render {

void KernelWriter::write_nothing(uint32_t) {}

std::string KernelWriter::param_name(uint32_t index) const {
  const bool is_buffer = ir_.params()[index].kind == PGR_PARAM_BUFFER;
  return (is_buffer ? "data" : "arg") + std::to_string(index);
}

void KernelWriter::write_param(uint32_t number) {
  const uint32_t index = static_cast<uint32_t>(inst(number).arg);
  values_[number].text = param_name(index);
  // Languages with groups pass a bool as a byte.
  if (!dialect_.groups || ir_.params()[index].kind == PGR_PARAM_BUFFER ||
      inst(number).dtype != PGR_DTYPE_BOOL)
    return;
  values_[number].text += " != 0";
  values_[number].prec = Prec::Loose;
}

void KernelWriter::write_const(uint32_t number) {
  std::string text = prelude_.literal(inst(number).dtype, inst(number).arg);
  values_[number].prec = text[0] == '-' ? Prec::Unary : Prec::Atom;
  values_[number].text = std::move(text);
}

std::string KernelWriter::group_id_text(uint32_t axis) const {
  const auto& counts = ir_.header().group_count;
  if (counts[axis] <= 1) return "0";
  std::string text = "group";
  uint64_t below = 1;
  for (uint32_t i = 0; i < axis; ++i) below *= counts[i];
  bool is_last = true;
  for (uint32_t i = axis + 1; i < 3; ++i) is_last = is_last && counts[i] <= 1;
  if (below > 1) text += " / " + std::to_string(below);
  if (!is_last) text += " % " + std::to_string(counts[axis]);
  return text;
}

void KernelWriter::write_group_id(uint32_t number) {
  const uint32_t axis = static_cast<uint32_t>(inst(number).arg);
  if (dialect_.groups) return write_id(number, "gidx", dialect_.groups->group_id);
  const std::string text = group_id_text(axis);
  if (text == "0")
    values_[number].text = text;
  else
    write_id(number, "gidx", text);
}

void KernelWriter::write_local_id(uint32_t number) {
  if (dialect_.groups) return write_id(number, "lidx", dialect_.groups->local_id);
  values_[number].text = "0";
}

// Emits an id as a constant; a block may request the same id several times.
void KernelWriter::write_id(uint32_t number, const char* kind, std::string_view pattern) {
  if (use_counts_[number] == 0) return;
  const std::string axis = std::to_string(inst(number).arg);
  std::string name = kind + axis;
  if (!id_names_.insert(name).second) name += "_" + std::to_string(number);
  const std::string type = prelude_.type(type_of(number));
  const std::string letter = std::string("xyz").substr(inst(number).arg, 1);
  line("const " + type + " " + name + " = " +
       expand(pattern, {{'0', axis}, {'A', letter}, {'T', type}}) + ";");
  values_[number].text = name;
}

std::string KernelWriter::param_text(uint32_t index) {
  const pgr_ir_param& param = ir_.params()[index];
  const std::string name = param_name(index);
  const bool is_buffer = param.kind == PGR_PARAM_BUFFER;
  const bool is_stored = is_buffer || dialect_.groups;
  const std::string type = prelude_.type({is_stored ? memory_dtype(param.dtype) : param.dtype, 1});
  const char* constant = param.flags & PGR_PARAM_WRITE ? "" : "const ";
  const char* restricted = param.flags & PGR_PARAM_NO_ALIAS ? "restrict " : "";
  if (dialect_.groups)
    return expand(is_buffer ? dialect_.groups->buffer : dialect_.groups->scalar,
                  {{'C', constant},
                   {'E', type},
                   {'R', restricted},
                   {'0', name},
                   {'V', dialect_.groups->slot ? slot_value(index) : std::string()}});
  return is_buffer ? constant + type + " *" + restricted + name : "const " + type + " " + name;
}

uint32_t KernelWriter::count_params(uint32_t kind, size_t before) const {
  uint32_t count = 0;
  for (size_t i = 0; i < before; ++i) count += ir_.params()[i].kind == kind;
  return count;
}

uint64_t KernelWriter::local_bytes() const {
  uint64_t bytes = 0;
  for (const pgr_ir_array& array : ir_.arrays())
    if (array.space == PGR_SPACE_LOCAL) bytes += array.elem_count * (bits_of(array.dtype) / 8);
  return bytes;
}

// The parameter in its 64-bit slot: an address or a scalar's bits.
std::string KernelWriter::slot_value(uint32_t index) {
  const pgr_ir_param& param = ir_.params()[index];
  const bool is_buffer = param.kind == PGR_PARAM_BUFFER;
  const uint32_t number = count_params(param.kind, index) +
                          (is_buffer ? 0 : count_params(PGR_PARAM_BUFFER, ir_.params().size()));
  std::string slot = expand(dialect_.groups->slot, {{'0', std::to_string(number)}});
  if (is_buffer) return slot;
  const uint32_t dtype = memory_dtype(param.dtype);
  return prelude_.from_bits(dtype, prelude_.type({unsigned_dtype(dtype), 1}) + "(" + slot + ")");
}

// Facts of the IR that the language cannot express by types.
std::string KernelWriter::assumptions() {
  std::string out;
  for (uint32_t i = 0; i < ir_.params().size(); ++i) {
    const pgr_ir_param& param = ir_.params()[i];
    const std::string name = param_name(i);
    const bool is_buffer = param.kind == PGR_PARAM_BUFFER;
    if (is_buffer && dialect_.assume_aligned && param.align_bytes > bits_of(param.dtype) / 8)
      out += expand(dialect_.assume_aligned, {{'0', name},
                                              {'C', param.flags & PGR_PARAM_WRITE ? "" : "const "},
                                              {'E', prelude_.type({memory_dtype(param.dtype), 1})},
                                              {'A', std::to_string(param.align_bytes)}});
    const bool is_bounded =
        !is_buffer && (param.dtype == PGR_DTYPE_I32 || param.dtype == PGR_DTYPE_I64);
    if (is_bounded && dialect_.assume_range)
      out += expand(dialect_.assume_range,
                    {{'0', name},
                     {'L', prelude_.literal(param.dtype, static_cast<uint64_t>(param.min))},
                     {'H', prelude_.literal(param.dtype, static_cast<uint64_t>(param.max))}});
  }
  return out;
}

std::string KernelWriter::array_declarations(bool of_group, bool of_item) {
  std::string declared;
  declared.swap(body_);
  for (uint32_t i = 0; i < ir_.arrays().size(); ++i)
    if (ir_.arrays()[i].space == PGR_SPACE_LOCAL ? of_group : of_item) declare_array(i);
  declared.swap(body_);
  return declared;
}

// The body of one work-item; the device launches the work-items.
std::string KernelWriter::work_item_function() {
  std::string params;
  for (uint32_t i = 0; i < ir_.params().size(); ++i)
    params += (i ? dialect_.groups->joint : "") + param_text(i);
  const bool is_outside = std::string_view(dialect_.groups->entry).find("$A") != std::string::npos;
  const std::string arrays = is_outside ? array_declarations(true, false) : std::string();
  const auto& size = ir_.header().local_size;
  const std::string x = std::to_string(size[0]), y = std::to_string(size[1]),
                    z = std::to_string(size[2]);
  const std::string items = std::to_string(uint64_t{size[0]} * size[1] * size[2]);
  return expand(dialect_.groups->entry,
                {{'0', ir_.name()},
                 {'1', params},
                 {'X', x},
                 {'Y', y},
                 {'Z', z},
                 {'N', items},
                 {'B', std::to_string(count_params(PGR_PARAM_BUFFER, ir_.params().size()))},
                 {'S', std::to_string(count_params(PGR_PARAM_SCALAR, ir_.params().size()))},
                 {'L', std::to_string(local_bytes())},
                 {'T', loops_.may_turn_too_often ? "1" : "0"},
                 {'A', arrays}}) +
         assumptions() + array_declarations(!is_outside, true) + body_ + "}\n";
}

// All groups of a range in one call, so that parameters are unpacked once.
std::string KernelWriter::group_function() {
  std::string params;
  for (uint32_t i = 0; i < ir_.params().size(); ++i) params += param_text(i) + ", ";
  const std::string counter = prelude_.type({PGR_DTYPE_U64, 1});
  const std::string arrays = array_declarations(true, true);
  return "static __attribute__((noinline)) void " + ir_.name() + "_groups(" + params + counter +
         " begin, " + counter + " end) {\n" + assumptions() + "  for (" + counter +
         " group = begin; group < end; ++group) {\n" + arrays + body_ + "  }\n}\n\n";
}

// If the grid has several axes, groups are numbered by the planned extents. A smaller launch has
// its own numbering, and each group is called by its planned number.
std::string KernelWriter::fewer_groups(const std::string& call) {
  const auto& planned = ir_.header().group_count;
  const std::string counter = prelude_.type({PGR_DTYPE_U64, 1});
  const std::string x = std::to_string(planned[0]), y = std::to_string(planned[1]);
  return "  if (counts[0] != " + x + " || counts[1] != " + y +
         ") { // fewer groups than planned: theirs are numbered by rows of the plan\n    for (" +
         counter + " group = begin; group < end; ++group) {\n      const " + counter +
         " row = group / counts[0], at = group % counts[0] + " + x + " * (row % counts[1] + " + y +
         " * (row / counts[1]));\n      " + call + "at, at + 1);\n    }\n    return;\n  }\n";
}

std::string KernelWriter::entry_function() {
  const std::string counter = prelude_.type({PGR_DTYPE_U64, 1});
  std::string arguments;
  uint32_t buffers = 0, scalars = 0;
  for (uint32_t i = 0; i < ir_.params().size(); ++i) {
    const pgr_ir_param& param = ir_.params()[i];
    if (param.kind == PGR_PARAM_BUFFER)
      arguments += "buffers[" + std::to_string(buffers++) + "], ";
    else
      arguments += "*(const " + prelude_.type({param.dtype, 1}) + " *)(scalars + " +
                   std::to_string(scalars++) + "), ";
  }
  const auto& planned = ir_.header().group_count;
  const bool is_flat = planned[1] <= 1 && planned[2] <= 1;
  const std::string call = ir_.name() + "_groups(" + arguments;
  return "void " + ir_.name() + "(void *const *buffers, const " + counter + " *scalars, " +
         counter + " begin, " + counter + " end" +
         (is_flat ? "" : ", const " + counter + " *counts") + ") {\n" +
         (is_flat ? "" : fewer_groups(call)) + "  " + call + "begin, end);\n}\n";
}

}  // namespace plugrad::render
