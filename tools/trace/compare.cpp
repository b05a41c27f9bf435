#include "trace/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace plugrad::tools::trace {
namespace {

// A kernel of either trace that has no partner so far.
struct Single {
  const Trace* trace;
  const KernelSummary* row;
  bool is_before;

  std::string name() const { return kernel_name(*trace, row->kernel); }
};

std::string operations_key(const Single& single, bool with_lines) {
  std::set<std::string> parts;
  if (single.row->kernel != kNone)
    for (const int32_t index :
         single.trace->kernels[static_cast<size_t>(single.row->kernel)].operations) {
      const Operation& operation = single.trace->operations[static_cast<size_t>(index)];
      parts.insert(with_lines
                       ? fmt::format("{} {}:{}", operation.name, operation.file, operation.line)
                       : operation.name);
    }
  std::string key;
  for (const std::string& part : parts) key += part + '\n';
  return key;
}

// Kernels of equal, non-empty keys match.
using Key = std::string (*)(const Single& single);
constexpr Key kKeys[] = {
    [](const Single& s) { return s.name() + '\n' + operations_key(s, true); },
    [](const Single& s) { return s.name(); },
    [](const Single& s) { return operations_key(s, true); },
    [](const Single& s) { return operations_key(s, false); },
    [](const Single& s) { return (s.is_before ? "before\n" : "after\n") + s.name(); },
};

void add(KernelChange& change, const Single& single) {
  ComparedLaunches& side = single.is_before ? change.before : change.after;
  side.launches += single.row->launches;
  side.total_ns += single.row->total_ns;
}

KernelChange describe_change(const std::vector<Single>& group) {
  KernelChange change;
  std::string before, after;
  for (const Single& single : group) {  // the rows with the most time are first
    std::string& name = single.is_before ? before : after;
    if (name.empty()) name = single.name();
    if (change.operations.empty())
      change.operations = operations_text(*single.trace, single.row->kernel);
    if (const Operation* at = first_located(*single.trace, single.row->kernel);
        at && change.source.empty())
      change.source = fmt::format("{}:{}", at->file, at->line);
    add(change, single);
  }
  change.name = before.empty()                     ? after
                : after.empty() || before == after ? before
                                                   : before + " -> " + after;
  return change;
}

// Moves the groups with members of both traces to `out`.
void match(std::vector<Single>& singles, Key key, bool is_last, std::vector<KernelChange>& out) {
  std::map<std::string, std::vector<Single>> groups;
  for (const Single& single : singles) groups[key(single)].push_back(single);
  singles.clear();
  for (const auto& [text, group] : groups) {
    const auto count = std::ranges::count(group, true, &Single::is_before);
    const bool has_both = count > 0 && count < static_cast<std::ptrdiff_t>(group.size());
    if (is_last || (has_both && !text.empty()))
      out.push_back(describe_change(group));
    else
      singles.insert(singles.end(), group.begin(), group.end());
  }
}

}  // namespace

std::vector<KernelChange> compare(const Trace& before, const Summary& before_summary,
                                  const Trace& after, const Summary& after_summary) {
  std::vector<Single> singles;
  for (const KernelSummary& row : before_summary.kernels) singles.push_back({&before, &row, true});
  for (const KernelSummary& row : after_summary.kernels) singles.push_back({&after, &row, false});
  std::vector<KernelChange> changes;
  for (const Key& key : kKeys) match(singles, key, &key == std::end(kKeys) - 1, changes);
  std::ranges::stable_sort(changes, std::greater{},
                           [](const KernelChange& change) { return std::abs(change.added_ns()); });
  return changes;
}

}  // namespace plugrad::tools::trace
