// dialect_page: writes docs/dialects.md to standard output, from the renderer's tables.
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <regex>
#include <set>

#include "plugrad/sdk/op_info.h"
#include "render/dialects/dialect_notes.h"

namespace plugrad::render {
namespace {

constexpr char kIntroduction[] =
    "# Dialects of the renderer\n\n"
    "This page specifies the source text that the SDK's renderer (`libplugrad_render.so`) "
    "writes for a kernel, for authors of compilers that read it. `tools/update-dialects` "
    "generates the page from the renderer's tables, and a test compares the two.\n\n"
    "## Options\n\n"
    "Name a dialect as `renderer` in [the manifest](plugin-manifest.md); the host passes it "
    "and the `renderer_options` to the renderer. A plugin that opens the component itself "
    "passes them in `pgr_render_desc`.\n\n"
    "| option | values | meaning |\n"
    "|---|---|---|\n"
    "| `dialect` | {} | the language of the text; the first is the default. Any other value "
    "is UNSUPPORTED |\n\n"
    "There are no other options yet: any other key is INVALID_ARGUMENT, so "
    "`renderer_options` stays empty.\n\n"
    "## All dialects\n\n"
    "The same kernel IR gives the same bytes on every machine. A text includes no system "
    "header and contains only the types and helper functions that it uses. In the tables "
    "below, `$0`, `$1` and `$2` are operands, `$T` is their type, `$V` the unsigned type of "
    "the same size, and the first matching row applies. An op without a row for a dtype is "
    "UNSUPPORTED: do not claim it.\n";

std::string code(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) text.replace(at, 1, "\\|");
  return text.empty() ? "" : "`" + text + "`";
}

std::string types_of(const Dialect& dialect) {
  std::string out = "| dtype | type | defined as | suffix of a literal |\n|---|---|---|---|\n";
  for (uint32_t dtype = PGR_DTYPE_BOOL; dtype < PGR_DTYPE_COUNT; ++dtype) {
    const TypeRow& row = dialect.types[dtype];
    if (row.name)
      out += fmt::format("| {} | {} | {} | {} |\n", sdk::dtype_name(dtype), code(row.name),
                         row.definition ? code(row.definition) : "the language",
                         code(row.suffix ? row.suffix : ""));
  }
  return out;
}

std::string classes_of(uint8_t classes) {
  if ((classes & kAll) == kAll) return "all";
  std::string out;
  const auto add = [&](uint8_t bits, const char* name) {
    if ((classes & bits) == bits) out += (out.empty() ? "" : ", ") + std::string(name);
  };
  add(kBools, "bool");
  add(kSigned, "signed");
  add(kUnsigned, "unsigned");
  if ((classes & kFloats) == kFloats)
    add(kFloats, "floats");
  else {
    add(kHalves, "f16");
    add(kFloats & ~kHalves, "floats but f16");
  }
  return out;
}

const char* condition_of(When when) {
  switch (when) {
    case When::Always:
      return "";
    case When::SafeDivisor:
      return "by a constant, not 0 or -1";
    case When::SafeCount:
      return "by a constant below the bits of the type";
    case When::Single:
      return "f32";
    case When::Narrow:
      return "one lane of fewer than 32 bits";
    case When::WithZero:
      return "an operand is a constant 0";
    case When::Lanes:
      return "more than one lane";
    case When::Exact:
      return "the result always fits";
  }
  return "";
}

std::string ops_of(const Dialect& dialect) {
  std::string out = "| op | dtypes | condition | text |\n|---|---|---|---|\n";
  for (const sdk::OpInfo& op : sdk::all_ops())
    for (const AluRow& row : dialect.alu)
      if (row.op == op.number && row.pattern && *row.pattern)
        out += fmt::format("| {} | {} | {} | {} |\n", op.name, classes_of(row.classes),
                           condition_of(row.when), code(row.pattern));
  return out;
}

// All texts of a dialect, for finding names.
std::string all_texts(const Dialect& d) {
  std::string out = d.header;
  const auto add = [&](const char* text) { out += text ? std::string(text) + "\n" : ""; };
  const auto add_helper = [&](const Helper* helper) {
    if (!helper) return;
    for (const char* text : {helper->scalar, helper->vector, helper->per_lane}) add(text);
  };
  for (const AluRow& row : d.alu) add(row.pattern), add_helper(row.helper);
  for (const AtomicRow& row : d.atomics) add(row.pattern), add_helper(row.helper);
  for (const char* text :
       {d.convert_vector, d.bits_scalar, d.bits_vector, d.load_vector, d.store_vector, d.part,
        d.join, d.array, d.barrier, d.assume_aligned, d.assume_range, d.unaligned_type})
    add(text);
  for (const Helper* helper :
       {d.masked_load, d.masked_load_register, d.masked_store, d.masked_store_register, d.to_int,
        d.bf16_to_f32, d.f32_to_bf16, d.f16_to_f32, d.f32_to_f16, d.f64_to_f32_odd,
        d.i64_to_f64_odd, d.i64_to_f32})
    add_helper(helper);
  return out;
}

std::string builtins_of(const Dialect& dialect) {
  static const std::regex kName(R"(\b(__builtin_(?!ia32)\w+|__atomic_\w+|__nvvm_\w+))");
  const std::string text = all_texts(dialect);
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), kName), end; at != end; ++at)
    names.insert((*at)[1]);
  if (names.empty()) return "None.\n";
  std::set<std::string> replaced;
  for (const Shim& shim : *dialect.shims)
    for (const std::string& name : names)
      if (std::string_view(shim.name).starts_with(name)) replaced.insert(name);
  std::string out = "| builtin | if the compiler lacks it |\n|---|---|\n";
  for (const std::string& name : names)
    out += fmt::format("| `{}` | {} |\n", name,
                       replaced.contains(name) ? "the text defines it, for one lane" : "an error");
  return out;
}

std::string section_of(const DialectNotes& notes) {
  const Dialect& dialect = *notes.dialect;
  std::string out = fmt::format("\n## `{}`\n\n{}\n\n", dialect.name, notes.language);
  out += fmt::format("**Kernel.** {}\n\n**Contraction.** {}\n\n**Vectors.** {}\n\n", notes.kernel,
                     notes.contraction, notes.vectors);
  out += fmt::format("**Groups.** {}\n\n",
                     dialect.groups ? "The device launches groups of work-items."
                                    : "A group has one work-item: no LOCAL_ID, no BARRIER.");
  out += "**Compiler flags.**\n\n| flag | purpose |\n|---|---|\n";
  for (const FlagRow& row : notes.flags) out += fmt::format("| {} | {} |\n", row.flag, row.purpose);
  out += "\n**Types.**\n\n" + types_of(dialect) + "\n**Builtins.**\n\n" + builtins_of(dialect) +
         "\n**Ops.**\n\n" + ops_of(dialect);
  if (*dialect.header) out += fmt::format("\n**Header.**\n\n```c\n{}```\n", dialect.header);
  return out;
}

std::string page() {
  std::string names, sections;
  if (kDialectNotes.size() != kDialects.size()) return "";
  for (size_t i = 0; i < kDialects.size(); ++i) {
    if (kDialectNotes[i].dialect != kDialects[i]) return "";
    names += (i ? ", `" : "`") + std::string(kDialects[i]->name) + "`";
    sections += section_of(kDialectNotes[i]);
  }
  return fmt::format(kIntroduction, names) + sections;
}

}  // namespace
}  // namespace plugrad::render

int main() {
  const std::string text = plugrad::render::page();
  std::fputs(text.c_str(), stdout);
  return text.empty() ? 1 : 0;
}
