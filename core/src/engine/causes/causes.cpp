#include "engine/causes/causes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/binding.h"

namespace plugrad::engine {
namespace {

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
      return "each shape has kernels of its own: where a size changes often, make it a variable "
             "one: " +
             in_language("const Variable n(\"n\", 1, most); n.fit(x, axis)",
                         "n = Variable(\"n\", 1, most); n.fit(x, axis)");
    case Cause::Number:
      return is_jit ? "each number is recorded: give " + advice_on_numbers()
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

std::string line_of(const Miss& miss) {
  std::string line = miss.number != 0 ? fmt::format("call {}", miss.number) : miss.of;
  if (const std::string place = miss.place != 0 ? describe_place(miss.place) : ""; !place.empty())
    line += ", " + place;
  if (miss.kernels != 0)
    line += fmt::format(", {} kernel{} in {:.1f} ms", miss.kernels, miss.kernels == 1 ? "" : "s",
                        static_cast<double>(miss.compile_ns) * 1e-6);
  return line + ": " + text_of(miss.differences) + "\n";
}

}  // namespace

std::string advice_on_numbers() {
  return "a tensor, " + in_language("Tensor::full({}, k)", "Tensor.full((), k)") +
         ", or a Variable";
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
  if (differences.empty()) return text_of(differences);
  const auto first = std::ranges::min_element(differences, {}, &Difference::cause);
  const std::string what = advice(first->cause, last_.back().number != 0);
  return text_of(differences) + (what.empty() ? "" : "; " + what);
}

std::string Misses::text() const {
  std::string text;
  if (dropped_ > 0) text += fmt::format("({} earlier ones are not kept)\n", dropped_);
  std::vector<Cause> causes;
  bool is_jit = false;
  for (const Miss& miss : last_) {
    text += line_of(miss);
    is_jit = miss.number != 0;
    for (const Difference& each : miss.differences)
      if (std::ranges::find(causes, each.cause) == causes.end()) causes.push_back(each.cause);
  }
  std::ranges::sort(causes);
  for (const Cause cause : causes)
    if (const std::string what = advice(cause, is_jit); !what.empty()) text += "- " + what + "\n";
  return text;
}

}  // namespace plugrad::engine
