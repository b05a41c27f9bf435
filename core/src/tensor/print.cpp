// Turns a tensor into text: its values in nested rows.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "plugrad/tensor.h"

namespace plugrad {
namespace {

constexpr int64_t kShownWhole = 1000;  // elements; a larger tensor shows only the ends of long axes
constexpr int64_t kEdge = 3;           // elements shown at each end of such an axis

class PrintLayout {
 public:
  PrintLayout(const Tensor& t, std::vector<std::string> words)
      : shape_(t.bound_shape()),
        words_(std::move(words)),
        abridged_(words_.size() > static_cast<size_t>(kShownWhole)) {
    for (int64_t axis = 0; axis < rank(); ++axis) strides_.insert(strides_.begin(), 1);
    for (size_t i = shape_.size(); i-- > 1;) strides_[i - 1] = strides_[i] * shape_[i];
    for (const std::string& word : words_) width_ = std::max(width_, word.size());
  }

  std::string text() { return rows(0, 0); }

 private:
  int64_t rank() const { return static_cast<int64_t>(shape_.size()); }

  /// The text of the axes from `axis` on, starting at element `first`.
  std::string rows(int64_t axis, int64_t first) const {
    if (axis == rank()) return fmt::format("{:>{}}", words_[static_cast<size_t>(first)], width_);
    const auto at = static_cast<size_t>(axis);
    const bool innermost = axis + 1 == rank();
    const std::string between =
        innermost ? ", "
                  : "," + std::string(static_cast<size_t>(rank() - axis - 1), '\n') +
                        std::string(at + 1, ' ');
    std::string text = "[";
    for (int64_t i = 0; i < shape_[at]; ++i) {
      if (i > 0) text += between;
      if (abridged_ && shape_[at] > 2 * kEdge + 1 && i == kEdge) {
        text += "…" + between;
        i = shape_[at] - kEdge;
      }
      text += rows(axis + 1, first + i * strides_[at]);
    }
    return text + "]";
  }

  Shape shape_, strides_;
  std::vector<std::string> words_;
  size_t width_ = 0;
  bool abridged_;
};

template <class T>
std::vector<std::string> words(const Tensor& t, fmt::format_string<const T&> format) {
  std::vector<std::string> list;
  for (const T& value : t.to_vector<T>()) list.push_back(fmt::format(format, value));
  return list;
}

std::vector<std::string> words_of(const Tensor& t) {
  const DType dtype = t.dtype();
  if (is_float(dtype)) return words<double>(t, "{:.5g}");
  if (dtype == DType::U64) return words<uint64_t>(t, "{}");
  if (dtype == DType::Bool) {
    std::vector<std::string> list;
    for (const int64_t value : t.to_vector<int64_t>()) list.push_back(value ? "true" : "false");
    return list;
  }
  return words<int64_t>(t, "{}");
}

}  // namespace

std::string to_string(const Tensor& t) {
  require(t.defined(), "[to_string] the tensor is undefined; assign it a value first");
  return PrintLayout(t, words_of(t)).text();
}

}  // namespace plugrad
