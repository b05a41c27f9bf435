// "name: list; name: list", or a list alone, which is for every kernel.
#include "engine/given_lists.h"

#include "base/check.h"
#include "base/log.h"
#include "base/settings.h"
#include "codegen/search/actions.h"

namespace plugrad::engine {
namespace {

using List = codegen::OptimisationList;

struct GivenList {
  std::string_view kernel;  // empty: every one
  List list;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

GivenList parse_entry(std::string_view entry) {
  const size_t colon = entry.find(':');
  if (colon == entry.npos) return {{}, codegen::parse_optimisations(entry)};
  const std::string_view kernel = trimmed(entry.substr(0, colon));
  require(!kernel.empty(), "[optimisations] no kernel is named before the ':' of \"{}\"", entry);
  return {kernel, codegen::parse_optimisations(entry.substr(colon + 1))};
}

std::vector<GivenList> parse_lists(std::string_view text) {
  std::vector<GivenList> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    const std::string_view entry = trimmed(text.substr(0, end));
    if (!entry.empty()) out.push_back(parse_entry(entry));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

void check_given_lists(std::string_view text) {
  parse_lists(text);
}

std::optional<List> given_list(const schedule::KernelAst& ast, runtime::Device& device,
                               codegen::Options options) {
  if (settings().optimisations.empty()) return std::nullopt;
  const std::string planned = codegen::describe(ast.graph, ast.sink).name;
  const std::string_view name = options.name.empty() ? std::string_view(planned) : options.name;
  std::optional<List> found;  // an entry that names the kernel counts before one that names none
  bool is_named = false;
  for (GivenList& given : parse_lists(settings().optimisations)) {
    if (!given.kernel.empty() && given.kernel != name) continue;
    if (given.kernel.empty() && is_named) continue;
    is_named = !given.kernel.empty();
    found = std::move(given.list);
  }
  if (!found) return std::nullopt;
  options.no_opt = false;  // more is said of this kernel than NOOPT=1 says of all
  try {
    codegen::SearchSpace(ast.graph, ast.sink, device.caps(), options).require_legal(*found);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::User) throw;
    fail(ErrorKind::User, "[optimisations] the list \"{}\" is not legal for {} on {}: {}",
         codegen::to_string(*found), name, device.name(), e.what());
  }
  if (debugging(1))
    debug_write(fmt::format("{} on {} gets the list given to it: {}\n", name, device.name(),
                            codegen::to_string(*found)));
  return found;
}

}  // namespace plugrad::engine
