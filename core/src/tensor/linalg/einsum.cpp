// Turns einsum into products and sums: permutes the operands to one order of axes, multiplies them,
// and sums over the names that are not needed later.
//   "bij,bjk->bik"  =  sum over j of a (b, i, 1, j) * b (b, 1, k, j)
#include <algorithm>
#include <cctype>

#include "plugrad/functional.h"
#include "plugrad/linalg.h"
#include "tensor/movement/axis_pattern.h"
#include "tensor/record.h"

namespace plugrad {

namespace {

// Axes of "..." are named by characters that patterns cannot contain, the last one by kDots.
constexpr char kDotsName = 1;

struct Term {
  std::string names;              // without spaces; kDots for "..."
  std::vector<size_t> positions;  // positions in the pattern
  size_t end = 0;                 // position of its end in the pattern
};

struct EinsumPattern {
  std::vector<Term> inputs;
  Term output;
  bool is_explicit = false;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  EinsumPattern parse() {
    EinsumPattern p;
    Term term;
    size_t at = 0;
    while (at < text_.size()) {
      const char c = text_[at];
      if (c == ',' || text_.substr(at, 2) == "->") {
        if (p.is_explicit) bad(at, c == ',' ? "the result is one term" : "-> occurs twice");
        term.end = at;
        p.inputs.push_back(std::exchange(term, {}));
        p.is_explicit = c == '-';
        at += c == ',' ? 1 : 2;
      } else {
        at = read(term, at);
      }
    }
    term.end = at;
    if (p.is_explicit)
      check_output(p, p.output = term);
    else
      p.inputs.push_back(term);
    if (!p.is_explicit) p.output = implicit(p);
    return p;
  }

  [[noreturn]] void bad(size_t at, const std::string& message) const {
    tensor::fail_pattern("einsum", text_, at, message);
  }

 private:
  size_t read(Term& term, size_t at) {
    const char c = text_[at];
    if (c == ' ') return at + 1;
    const bool is_dots = text_.substr(at, 3) == "...";
    if (!is_dots && std::isalpha(static_cast<unsigned char>(c)) == 0)
      bad(at, "a letter, a comma, ... or -> is expected");
    if (is_dots && term.names.find(kDotsName) != std::string::npos) bad(at, "... occurs twice");
    term.names += is_dots ? kDotsName : c;
    term.positions.push_back(at);
    return at + (is_dots ? 3 : 1);
  }

  void check_output(const EinsumPattern& p, const Term& output) const {
    for (size_t i = 0; i < output.names.size(); ++i) {
      const char name = output.names[i];
      if (output.names.find(name) != i) bad(output.positions[i], "the result names this twice");
      const bool known = std::ranges::any_of(
          p.inputs, [&](const Term& t) { return t.names.find(name) != std::string::npos; });
      if (!known) bad(output.positions[i], "no operand has this");
    }
  }

  static Term implicit(const EinsumPattern& p) {
    std::string all;
    for (const Term& t : p.inputs) all += t.names;
    std::ranges::sort(all);  // "..." sorts first
    Term output;
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i] == kDotsName ? i == 0 : std::ranges::count(all, all[i]) == 1)
        output.names += all[i];
    return output;
  }

  std::string_view text_;
};

/// An operand with distinct axis names, in the order of `names`.
struct NamedTensor {
  Tensor x;
  std::string names;
};

bool has(const std::string& names, char name) {
  return names.find(name) != std::string::npos;
}

/// Replaces the axes of a repeated name by their diagonal.
NamedTensor without_repeats(NamedTensor n) {
  for (size_t i = 0; i < n.names.size();) {
    const char name = n.names[i];
    const size_t j = n.names.find(name, i + 1);
    if (j == std::string::npos) {
      ++i;
      continue;
    }
    n.x = n.x.diagonal(0, static_cast<int64_t>(i), static_cast<int64_t>(j));
    n.names.erase(j, 1);
    n.names.erase(i, 1);
    n.names += name;  // the diagonal is the last axis
  }
  return n;
}

/// Sums over the axes whose names are not in `kept`.
NamedTensor summed_over(const NamedTensor& n, const std::string& kept) {
  std::vector<int64_t> axes;
  std::string rest;
  for (size_t i = 0; i < n.names.size(); ++i) {
    if (has(kept, n.names[i]))
      rest += n.names[i];
    else
      axes.push_back(static_cast<int64_t>(i));
  }
  return axes.empty() ? n : NamedTensor{n.x.sum(axes, false, n.x.dtype()), rest};
}

/// Permutes the axes to the order of `names`; missing ones have size 1.
Tensor aligned(const NamedTensor& n, const std::string& names) {
  std::vector<int64_t> order;
  Shape shape;
  for (char name : names) {
    const size_t at = n.names.find(name);
    shape.push_back(at == std::string::npos ? 1 : n.x.size(static_cast<int64_t>(at)));
    if (at != std::string::npos) order.push_back(static_cast<int64_t>(at));
  }
  return n.x.permute(order).reshape(shape);
}

/// Sum of products. Sums a name that only one operand has before the product.
NamedTensor joined(const NamedTensor& a, const NamedTensor& b, const std::string& kept) {
  const NamedTensor left = summed_over(a, kept + b.names), right = summed_over(b, kept + a.names);
  std::string outer, inner;
  for (char name : left.names + right.names)
    if (!has(outer + inner, name)) (has(kept, name) ? outer : inner) += name;
  const Tensor product = aligned(left, outer + inner) * aligned(right, outer + inner);
  return summed_over({product, outer + inner}, kept);
}

class Einsum {
 public:
  Einsum(std::string_view text, const std::vector<Tensor>& operands)
      : text_(text), parser_(text), pattern_(parser_.parse()) {
    require(operands.size() == pattern_.inputs.size(),
            "[einsum] \"{}\" names {} operands, {} are given", text, pattern_.inputs.size(),
            operands.size());
    for (size_t i = 0; i < operands.size(); ++i) {
      require(operands[i].defined(), "[einsum] operand {} is undefined; assign it a value", i);
      dots_ = std::max(dots_, dots_of(operands[i], pattern_.inputs[i]));
    }
    for (size_t i = 0; i < operands.size(); ++i) add(operands[i], pattern_.inputs[i]);
  }

  Tensor value(DType dtype) {
    const std::string output = spelled(pattern_.output.names, dots_);
    for (NamedTensor& n : operands_) n.x = n.x.cast(dtype);
    NamedTensor result = operands_[0];
    for (size_t i = 1; i < operands_.size(); ++i) {
      std::string kept = output;
      for (size_t j = i + 1; j < operands_.size(); ++j) kept += operands_[j].names;
      result = joined(result, operands_[i], kept);
    }
    Tensor y = aligned(summed_over(result, output), output);
    Shape shape;  // the sizes of the result
    for (char name : output) shape.push_back(sizes_[static_cast<unsigned char>(name)]);
    return tensor::own_handle(y.expand(shape));
  }

 private:
  int64_t dots_of(const Tensor& x, const Term& term) const {
    const bool open = has(term.names, kDotsName);
    const auto named = static_cast<int64_t>(term.names.size()) - (open ? 1 : 0);
    if (open ? x.ndim() < named : x.ndim() != named)
      parser_.bad(term.positions.empty() ? term.end : term.positions[0],
                  fmt::format("{}{} axes are named here, the operand is {}",
                              open ? "at least " : "", named, to_string(x.shape())));
    return x.ndim() - named;
  }

  /// Replaces kDots by `count` names, numbered from the end.
  static std::string spelled(const std::string& names, int64_t count) {
    std::string result;
    for (char name : names) {
      if (name != kDotsName)
        result += name;
      else
        for (int64_t i = count; i > 0; --i) result += static_cast<char>(-i);
    }
    return result;
  }

  void add(const Tensor& x, const Term& term) {
    const int64_t open = dots_of(x, term);
    NamedTensor n{x, spelled(term.names, open)};
    for (size_t i = 0; i < n.names.size(); ++i) {
      int64_t& known = sizes_[static_cast<unsigned char>(n.names[i])];
      const int64_t size = x.size(static_cast<int64_t>(i));
      // Sizes of 1 broadcast, except on a diagonal.
      const size_t first = n.names.find(n.names[i]);
      const bool fits = first == i ? known == -1 || known == 1 || size == known || size == 1
                                   : size == x.size(static_cast<int64_t>(first));
      if (!fits)
        parser_.bad(position(term, i, open),
                    fmt::format("this axis has size {} here and {} before", size, known));
      if (known == -1 || known == 1) known = size;
    }
    n = without_repeats(n);
    drop_ones(n);
    operands_.push_back(n);
  }

  /// The position in the pattern that names axis i of an operand.
  static size_t position(const Term& term, size_t i, int64_t open) {
    const size_t dots = term.names.find(kDotsName), count = static_cast<size_t>(open);
    if (dots == std::string::npos || i < dots) return term.positions[i];
    return term.positions[i < dots + count ? dots : i - count + 1];
  }

  /// Removes axes of size 1, so that they broadcast.
  void drop_ones(NamedTensor& n) {
    std::string rest;
    std::vector<int64_t> ones;
    for (size_t i = 0; i < n.names.size(); ++i) {
      if (n.x.size(static_cast<int64_t>(i)) == 1)
        ones.push_back(static_cast<int64_t>(i));
      else
        rest += n.names[i];
    }
    if (!ones.empty()) n = {n.x.squeeze(ones), rest};
  }

  std::string_view text_;
  Parser parser_;
  EinsumPattern pattern_;
  int64_t dots_ = 0;
  std::vector<int64_t> sizes_ = std::vector<int64_t>(256, -1);
  std::vector<NamedTensor> operands_;
};

}  // namespace

Tensor einsum(std::string_view pattern, const std::vector<Tensor>& operands,
              std::optional<DType> dtype) {
  const tensor::NamedFunction named("einsum");
  Einsum sum(pattern, operands);
  DType common = operands[0].dtype();
  for (const Tensor& x : operands) common = promote(common, x.dtype());
  common = tensor::dtype_or("einsum", dtype, common);
  require_type(common != DType::Bool, "[einsum] takes numbers, not bool; cast it");
  const bool half = is_float(common) && size_of(common) < 4;
  const Tensor y = sum.value(half ? DType::F32 : dtype ? common : tensor::narrow_sum_dtype(common));
  return half ? y.cast(common) : y;
}

}  // namespace plugrad
