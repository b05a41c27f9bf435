#include "runtime/checks/layers.h"

#include <algorithm>
#include <span>

#include "base/check.h"
#include "base/escaping/sanitise_text.h"
#include "base/text.h"
#include "runtime/discovery/selection.h"

namespace plugrad::runtime {
namespace {

struct LayerKind {
  const char* name;
  std::vector<std::string> keys;                                             // besides "device"
  std::string (*value_error)(std::string_view key, std::string_view value);  // null without keys
  std::unique_ptr<Layer> (*make)(const DeviceTables&, const LayerChoice&, const std::string&);
};

std::string whole_number_error(std::string_view, std::string_view value) {
  const bool digits =
      std::all_of(value.begin(), value.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return !value.empty() && value.size() < 6 && digits ? "" : "it takes a number below 100000";
}

std::string guard_bytes_error(std::string_view key, std::string_view value) {
  const std::string wrong = whole_number_error(key, value);
  const bool is_zero = wrong.empty() && value.find_first_not_of('0') == value.npos;
  return is_zero ? "without a guard byte nothing is seen" : wrong;
}

const std::vector<LayerKind>& kinds() {
  static const std::vector<LayerKind> all = {
      {"validate", {"backtrace"}, whole_number_error, make_validate_layer},
      {"redzone", {"bytes"}, guard_bytes_error, make_redzone_layer},
      {"faults",
       {"alloc", "compile", "load", "launch", "copy", "synchronize", "lost"},
       faults_value_error,
       make_faults_layer},
      {"compare",
       {"with", "stop", "share", "shrink", "folder"},
       compare_value_error,
       make_compare_layer},
      {"record", {"file", "mebibytes"}, record_value_error, make_record_layer},
      {"skip", {}, nullptr, make_skip_layer}};
  return all;
}

class LayerParser {
 public:
  LayerParser(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  LayerList parse() {
    for (std::size_t begin = 0; begin <= text_.size();) {
      const std::size_t end = std::min(text_.find(',', begin), text_.size());
      layer(begin, end);
      begin = end + 1;
    }
    return std::move(out_);
  }

 private:
  std::string_view part(std::size_t begin, std::size_t end) const {
    return text_.substr(begin, end - begin);
  }

  [[noreturn]] void refuse(std::size_t begin, std::size_t end, const std::string& what,
                           std::vector<std::string> known, const char* known_as) const {
    const std::string nearest = nearest_name(part(begin, end), known);
    const std::string advice = nearest.empty() ? "" : fmt::format("did you mean {}? ", nearest);
    refuse_selection(text_, begin, end - begin, fmt::format("{} in {}", what, source_),
                     fmt::format("{}{} {}", advice, known_as, fmt::join(known, ", ")));
  }

  bool is_device_number(std::size_t begin, std::size_t end) const {
    const std::size_t stop = std::min(text_.find(':', begin), end);
    return stop > begin && part(begin, stop).find_first_not_of("0123456789") == text_.npos;
  }

  void layer(std::size_t begin, std::size_t end) {
    const std::size_t name_end = std::min(text_.find(':', begin), end);
    const std::string_view name = part(begin, name_end);
    const auto kind = std::ranges::find_if(kinds(), [&](const auto& k) { return name == k.name; });
    if (kind == kinds().end()) {
      std::vector<std::string> known;
      for (const LayerKind& k : kinds()) known.emplace_back(k.name);
      const std::string what =
          name.empty() ? "a layer has no name" : fmt::format("unknown layer \"{}\"", excerpt(name));
      refuse(begin, name_end, what, known, "the layers are");
    }
    out_.push_back(
        {std::string(name), "", {}, false, nullptr, std::make_shared<std::atomic<uint32_t>>(0)});
    for (std::size_t at = name_end; at < end;) {
      std::size_t stop = std::min(text_.find(':', at + 1), end);
      while (stop < end && is_device_number(stop + 1, end))  // with=CPU:1
        stop = std::min(text_.find(':', stop + 1), end);
      key_and_value(*kind, at + 1, stop);
      at = stop;
    }
    if (out_.back().name == "faults" && out_.back().values.empty())
      refuse_selection(text_, begin, end - begin,
                       fmt::format("faults without a call to fail in {}", source_),
                       "it takes alloc=3, launch=1 and the like");
    if (out_.back().name == "record" && !out_.back().values.contains("file"))
      refuse_selection(text_, begin, end - begin,
                       fmt::format("record without a file in {}", source_), "it takes file=PATH");
  }

  void key_and_value(const LayerKind& kind, std::size_t begin, std::size_t end) {
    const std::size_t key_end = std::min(text_.find('=', begin), end);
    const std::string_view key = part(begin, key_end);
    std::vector<std::string> known = kind.keys;
    known.emplace_back("device");
    if (std::ranges::find(known, key) == known.end())
      refuse(begin, key_end,
             fmt::format("unknown key \"{}\" of the layer {}", excerpt(key), kind.name), known,
             "its keys are");
    const std::string_view value = key_end < end ? part(key_end + 1, end) : std::string_view();
    if (key == "device" && !value.empty()) {
      out_.back().device = canonical_device_name(value);
      return;
    }
    const std::string wrong =
        key == "device" ? "it takes a device name" : kind.value_error(key, value);
    if (!wrong.empty())
      refuse_selection(text_, begin, end - begin,
                       fmt::format("\"{}\" is not valid in {}", excerpt(part(begin, end)), source_),
                       wrong);
    out_.back().values.emplace(key, value);
  }

  const std::string_view text_, source_;
  LayerList out_;
};

thread_local std::span<const std::byte> ir_of_thread;
using AstText = std::function<std::string()>;
thread_local const AstText* ast_of_thread = nullptr;

}  // namespace

LayerList parse_layers(std::string_view text, std::string_view source) {
  if (text.empty()) return {};
  return LayerParser(text, source).parse();
}

LayerChoice validation_layer() {
  LayerChoice out;
  out.name = "compare";
  out.values = {{"with", "REFERENCE"}, {"share", "7"}, {"shrink", "0"}};
  out.is_implied = true;
  return out;
}

LayerStack wrap(DeviceTables& tables, const LayerList& list, const std::string& plugin_name,
                const std::string& device_name) {
  LayerStack stack;
  for (auto choice = list.rbegin(); choice != list.rend(); ++choice) {
    if (!choice->device.empty() && choice->device != plugin_name) continue;
    if (choice->is_implied && choice->values.at("with") == plugin_name) continue;
    for (const LayerKind& kind : kinds()) {
      if (choice->name != kind.name) continue;
      stack.push_back(kind.make(tables, *choice, device_name));
      tables = stack.back()->outer();
    }
  }
  return stack;
}

KernelIrScope::KernelIrScope(std::span<const std::byte> ir)
    : outer_(std::exchange(ir_of_thread, ir)) {}
KernelIrScope::~KernelIrScope() {
  ir_of_thread = outer_;
}
std::span<const std::byte> KernelIrScope::current() {
  return ir_of_thread;
}

KernelAstScope::KernelAstScope(const std::function<std::string()>& text)
    : outer_(std::exchange(ast_of_thread, &text)) {}
KernelAstScope::~KernelAstScope() {
  ast_of_thread = outer_;
}
std::string KernelAstScope::current() {
  return ast_of_thread ? (*ast_of_thread)() : "";
}

}  // namespace plugrad::runtime
