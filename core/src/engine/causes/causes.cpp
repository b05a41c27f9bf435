#include "engine/causes/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "base/binding.h"

namespace plugrad::engine {
namespace {

constexpr std::string_view kNamesOfCauses[] = {
    "dtype",    "device",          "shape",     "number",   "requires_grad",
    "gradient", "captured tensor", "structure", "settings", "dropped"};

// In the language of the program.
std::string in_language(const char* cpp, const char* python) {
  return has_places() ? python : cpp;
}

// Advice for calls that should not differ; `is_jit`: of a jitted function.
std::string advice(Cause cause, bool is_jit) {
  switch (cause) {
    case Cause::DType:
      return "each dtype has kernels of its own: cast to one";
    case Cause::Device:
      return "each device has kernels of its own";
    case Cause::Shape:
      return (is_jit
                  ? "each shape is recorded: where a size changes often, make it a variable one: "
                  : "one set of kernels serves all lengths from the third on, if no operation "
                    "needs "
                    "exact sizes; else make the size a variable one: ") +
             in_language("const Variable n(\"n\", 1, most); n.fit(x, axis)",
                         "n = Variable(\"n\", 1, most); n.fit(x, axis)");
    case Cause::Number:
      return is_jit
                 ? "each number is recorded: give a tensor, " +
                       in_language("Tensor::full({}, k)", "Tensor.full((), k)") + ", or a Variable"
                 : "kernels take a number at launch from its second value on, unless it is "
                   "special (0, 1, -1) or part of the structure: such a number may be given as "
                   "a tensor";
    case Cause::RequiresGrad:
      return "arguments with and without requires_grad are recorded apart";
    case Cause::Gradient:
      return "calls with and without an earlier gradient are recorded apart: clear gradients at "
             "the same point of each call";
    case Cause::Captured:
      return "a replay uses the tensors that the function captured: assign() to such a tensor, or "
             "give it as an argument";
    case Cause::Structure:
      return is_jit
                 ? "calls that differ in more than the values of tensors are recorded apart, and a "
                   "replay repeats what the function did: what it decides by must be an argument"
                 : "";
    case Cause::Settings:
      return "calls in other modes and settings are recorded apart";
    case Cause::Dropped:
      return "the caches keep what was used recently";
  }
  return {};
}

std::string line_of(const Miss& miss) {
  std::string line = miss.number != 0 ? fmt::format("call {}", miss.number) : miss.of;
  if (const std::string place = miss.place != 0 ? describe_place(miss.place) : ""; !place.empty())
    line += ", " + place;
  if (miss.kernels != 0)
    line += fmt::format(", {} kernel{} in {:.1f} ms", miss.kernels, miss.kernels == 1 ? "" : "s",
                        static_cast<double>(miss.compile_ns) * 1e-6);
  line += ": " + text_of(miss.differences);
  return line + (miss.remark.empty() ? "" : "; " + miss.remark) + "\n";
}

std::optional<Cause> cause_of(std::span<const Difference> differences) {
  if (differences.empty()) return {};
  return std::ranges::min_element(differences, {}, &Difference::cause)->cause;
}

}  // namespace

std::string text_of(std::span<const Difference> differences) {
  if (differences.empty()) return "the first of its kind";
  std::string text;
  constexpr size_t kMostShown = 3;
  for (const auto& [cause, name, was, is] :
       differences.first(std::min(differences.size(), kMostShown))) {
    text += (text.empty() ? "" : "; ") + name;
    if (!is.empty()) text += fmt::format(" is {}, was {}", is, was);
  }
  if (differences.size() > kMostShown)
    text += fmt::format("; and {} more", differences.size() - kMostShown);
  return text;
}

std::string_view name_of_cause(std::span<const Difference> differences) {
  const auto cause = cause_of(differences);
  return cause ? kNamesOfCauses[static_cast<size_t>(*cause)] : "first of its kind";
}

std::vector<Difference> differences(std::span<const Fact> was, std::span<const Fact> is) {
  if (!std::ranges::equal(was, is, {}, &Fact::name, &Fact::name))
    return {{Cause::Structure, "the structure of the arguments differs", "", ""}};
  std::vector<Difference> all;
  for (size_t i = 0; i < is.size(); ++i)
    if (was[i].value != is[i].value && !was[i].value.empty() && !is[i].value.empty())
      all.push_back({is[i].cause, is[i].name, was[i].value, is[i].value});
    else if (was[i].value != is[i].value || was[i].hash != is[i].hash)
      all.push_back({is[i].cause, is[i].name + " differs", "", ""});
  return all;
}

std::optional<std::vector<Difference>> Kinds::add(std::vector<Fact> facts) {
  std::vector<Difference> fewest;
  for (const std::vector<Fact>& kind : last_ | std::views::reverse) {
    auto found = differences(kind, facts);
    if (found.empty()) return {};
    const bool is_other = kind.size() != facts.size();
    if (fewest.empty() || (!is_other && found.size() < fewest.size())) fewest = std::move(found);
  }
  if (last_.size() == kMost) last_.pop_front();
  last_.push_back(std::move(facts));
  return fewest;
}

void Misses::add(Miss miss) {
  if (last_.size() == kMost) {
    last_.pop_front();
    ++dropped_;
  }
  last_.push_back(std::move(miss));
}

std::string Misses::last_name(Cause cause) const {
  for (auto miss = last_.rbegin(); miss != last_.rend(); ++miss)
    for (const Difference& each : miss->differences)
      if (each.cause == cause) return each.name;
  return {};
}

std::string Misses::last_text() const {
  const auto& differences = last_.back().differences;
  const auto cause = cause_of(differences);
  const std::string what = cause ? advice(*cause, last_.back().number != 0) : "";
  return text_of(differences) + (what.empty() ? "" : "; " + what);
}

std::string Misses::lines() const {
  std::string text;
  if (dropped_ > 0) text += fmt::format("({} earlier ones are not kept)\n", dropped_);
  for (const Miss& miss : last_) text += line_of(miss);
  return text;
}

std::string Misses::text() const {
  std::string text = lines();
  const bool is_jit = !last_.empty() && last_.back().number != 0;
  for (size_t i = 0; i < std::size(kNamesOfCauses); ++i) {
    const auto cause = static_cast<Cause>(i);
    const std::string what = last_name(cause).empty() ? "" : advice(cause, is_jit);
    if (!what.empty()) text += "- " + what + "\n";
  }
  return text;
}

}  // namespace plugrad::engine
