#include "onnx/segments/segment_history.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "onnx/import/call.h"
#include "plugrad/jit.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad::onnx {
namespace {

using engine::Cause;
using engine::Fact;

// "(up to 64, 8)".
std::string text_of_sizes(const Value& value) {
  const tensor::HostValues* const known = value.known();
  const Shape shape = known ? known->shape : value.tensor().shape();
  std::string text;
  for (int64_t axis = 0; axis < std::ssize(shape); ++axis) {
    const bool varies = !known && tensor::has_variable_size(value.tensor(), axis);
    text += fmt::format("{}{}{}", axis == 0 ? "" : ", ", varies ? "up to " : "",
                        shape[static_cast<size_t>(axis)]);
  }
  return fmt::format("({}{})", text, shape.size() == 1 ? "," : "");
}

std::string text_of_elements(const tensor::HostValues& values) {
  constexpr size_t kMostShown = 8;
  std::vector<double> shown = as_numbers(values);
  const bool is_cut = shown.size() > kMostShown;
  shown.resize(std::min(shown.size(), kMostShown));
  return fmt::format("[{}{}]", fmt::join(shown, ", "), is_cut ? ", ..." : "");
}

// One fact more for elements that are part of a recording's key.
void add_facts_of_value(std::vector<Fact>& to, std::string_view name, const Value& value) {
  const bool is_tensor = value.is_tensor();
  const tensor::HostValues* const known = value.known();
  const DType dtype = !is_tensor ? DType::Void : known ? known->dtype : value.tensor().dtype();
  to.push_back({Cause::DType, fmt::format("the dtype of \"{}\"", name),
                is_tensor ? std::string(name_of(dtype)) : "none",
                static_cast<uint64_t>(value.emulated())});
  to.push_back({Cause::Shape, fmt::format("the shape of \"{}\"", name),
                is_tensor ? text_of_sizes(value) : "none"});
  to.push_back({Cause::Number, fmt::format("\"{}\"", name), known ? text_of_elements(*known) : "",
                known ? hash_of(known->bits) : 0});
}

}  // namespace

uint64_t hash_of(std::span<const uint64_t> words) {
  return jit_detail::hash_of({reinterpret_cast<const char*>(words.data()), words.size_bytes()});
}

void SegmentHistory::ran(uint64_t number, const std::vector<std::string_view>& names,
                         const std::vector<Value>& given, uint64_t sums, bool is_recorded) {
  ++(is_recorded ? recorded_ : plain_);
  std::vector<Fact> facts;
  for (size_t i = 0; i < given.size(); ++i) add_facts_of_value(facts, names[i], given[i]);
  facts.push_back({Cause::Structure, "which sizes are sums of others", "", sums});
  auto differences = kinds_.add(std::move(facts));
  if (!differences)
    differences = {
        {Cause::Dropped, "no recording of such a call is kept, or it has other settings", "", ""}};
  misses_.add({.number = number, .differences = *std::move(differences)});
}

std::string SegmentHistory::text(size_t recordings) const {
  std::string text = fmt::format("{} replayed one of {} recordings, {} ran to be recorded",
                                 replayed_, recordings, recorded_);
  if (plain_ > 0)
    text += fmt::format(", {} ran without being recorded because its inputs were new", plain_);
  return text + "\n" + misses_.lines();
}

}  // namespace plugrad::onnx
