// Turns a pattern of named axes into a split of axes, a permutation and a merge.
//   "b (h w) c -> b c h w", h = 4:  unflatten axis 1 to (4, …), permute (0, 3, 1, 2)
#include <algorithm>
#include <cctype>

#include "tensor/movement/axis_pattern.h"
#include "tensor/record.h"

namespace plugrad {

namespace {

/// A name, "1" or "..." of a pattern.
struct Axis {
  std::string_view name;
  size_t at;  // position in the pattern
  int64_t size = -1;
};
using Group = std::vector<Axis>;  // the axes that form one axis of the tensor
constexpr std::string_view kDots = "...";

class Side {
 public:
  Side(std::string_view pattern, size_t begin, size_t end) : pattern_(pattern), end_(end) {
    for (size_t at = begin; at < end;) at = read(at);
    if (open_) bad(opened_at_, "this parenthesis is not closed");
  }
  std::vector<Group> groups;
  size_t dots = std::string_view::npos;  // index of the group "..."

  std::vector<Axis> axes() const {
    std::vector<Axis> list;
    for (const Group& g : groups) list.insert(list.end(), g.begin(), g.end());
    return list;
  }
  [[noreturn]] void bad(size_t at, const std::string& message) const {
    tensor::fail_pattern("rearrange", pattern_, at, message);
  }

 private:
  size_t read(size_t at) {
    const char c = pattern_[at];
    if (c == ' ') return at + 1;
    if (c == '(') {
      if (open_) bad(at, "parentheses do not nest");
      groups.emplace_back();
      open_ = true;
      opened_at_ = at;
      return at + 1;
    }
    if (c == ')') {
      if (!open_) bad(at, "nothing is open here");
      open_ = false;
      return at + 1;
    }
    return read_name(at);
  }

  size_t read_name(size_t at) {
    const bool is_dots = pattern_.substr(at, 3) == kDots && at + 3 <= end_;
    size_t stop = at + 3;
    if (!is_dots) {
      const auto in_name = [&](size_t i) {
        return std::isalnum(static_cast<unsigned char>(pattern_[i])) != 0 || pattern_[i] == '_';
      };
      for (stop = at; stop < end_ && in_name(stop);) ++stop;
      if (stop == at) bad(at, "a name, a parenthesis or ... is expected");
    }
    const std::string_view name = pattern_.substr(at, stop - at);
    if (std::isdigit(static_cast<unsigned char>(name[0])) != 0 && name != "1")
      bad(at, "the only number a pattern takes is 1; name the axis and give its size");
    if (is_dots) {
      if (open_) bad(at, "... cannot be part of a group");
      if (dots != std::string_view::npos) bad(at, "... occurs twice");
      dots = groups.size();
    }
    for (const Axis& other : axes())
      if (name != "1" && other.name == name) bad(at, "this name occurs twice");
    if (!open_) groups.emplace_back();
    if (name != "1") groups.back().push_back({name, at});
    return stop;
  }

  std::string_view pattern_;
  size_t end_;
  bool open_ = false;
  size_t opened_at_ = 0;
};

/// Replaces the group "..." by one group for each axis that it stands for.
void open_dots(Side& side, size_t count) {
  if (side.dots == std::string_view::npos) return;
  const auto at = side.groups.begin() + static_cast<std::ptrdiff_t>(side.dots);
  const Axis dots = at->front();
  side.groups.insert(side.groups.erase(at), count, Group{dots});
}

using NamedSizes = std::vector<std::pair<std::string, int64_t>>;

void take_sizes(Side& left, const NamedSizes& sizes) {
  for (const auto& [name, size] : sizes) {
    bool found = false;
    for (Group& group : left.groups)
      for (Axis& axis : group)
        if (axis.name == name) {
          axis.size = size;
          found = true;
        }
    require(found, "[rearrange] a size is given for {}, which the left side does not name", name);
    require(size >= 0, "[rearrange] size {} of {} is negative", size, name);
  }
}

/// Computes the one unknown size of a group from the size `whole` of the tensor's axis.
void solve(const Side& left, Group& group, int64_t whole, size_t axis, const Shape& shape) {
  int64_t known = 1;
  Axis* open = nullptr;
  for (Axis& part : group) {
    if (part.size >= 0) {
      known *= part.size;
      continue;
    }
    if (open != nullptr)
      left.bad(part.at, fmt::format("the sizes of {} and {} are both open; give one of them",
                                    open->name, part.name));
    open = &part;
  }
  const bool fits = open != nullptr ? known > 0 && whole % known == 0 : known == whole;
  if (!fits)
    fail(ErrorKind::User, "[rearrange] axis {} of {} does not divide into parts of {} together",
         axis, to_string(shape), known);
  if (open != nullptr) open->size = whole / known;
}

void require_same_names(const Side& left, const Side& right) {
  const auto has = [](const Side& side, std::string_view name) {
    return std::ranges::any_of(side.axes(), [&](const Axis& a) { return a.name == name; });
  };
  for (const Axis& a : left.axes())
    if (!has(right, a.name)) left.bad(a.at, "the right side does not have this");
  for (const Axis& a : right.axes())
    if (!has(left, a.name)) right.bad(a.at, "the left side does not have this");
}

}  // namespace

Tensor Tensor::rearrange(std::string_view pattern, const NamedSizes& sizes) const {
  const size_t arrow = pattern.find("->");
  if (arrow == std::string_view::npos)
    tensor::fail_pattern("rearrange", pattern, pattern.size(), "-> is missing");
  if (const size_t second = pattern.find("->", arrow + 2); second != std::string_view::npos)
    tensor::fail_pattern("rearrange", pattern, second, "-> occurs twice");
  Side left(pattern, 0, arrow), right(pattern, arrow + 2, pattern.size());
  require_same_names(left, right);
  const Shape from = shape();
  const bool dots = left.dots != std::string_view::npos;
  const size_t named = left.groups.size() - (dots ? 1 : 0);
  if (dots ? named > from.size() : named != from.size())
    fail(ErrorKind::User, "[rearrange] \"{}\" has {}{} axes on the left, shape {} has {}", pattern,
         dots ? "at least " : "", named, to_string(from), from.size());
  take_sizes(left, sizes);
  open_dots(left, from.size() - named);
  open_dots(right, from.size() - named);
  Shape split;
  for (size_t i = 0; i < from.size(); ++i) {
    solve(left, left.groups[i], from[i], i, from);
    for (const Axis& part : left.groups[i]) split.push_back(part.size);
  }
  std::vector<Axis> parts = left.axes();
  std::vector<int64_t> order;
  Shape merged;
  for (const Group& group : right.groups) {
    merged.push_back(1);
    for (const Axis& axis : group) {
      // Axes of "..." share a name and keep their order.
      const auto found = std::ranges::find(parts, axis.name, &Axis::name);
      found->name = {};
      merged.back() *= found->size;
      order.push_back(found - parts.begin());
    }
  }
  return reshape(split).permute(order).reshape(merged);
}

}  // namespace plugrad
