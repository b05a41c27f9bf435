// Random programs of views, writes and reads, and what they must give: a view is a list of places
// in the elements of its root, each with its derivative with respect to a leaf.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "plugrad/plugrad.h"

namespace plugrad::view_program {

inline constexpr size_t kLeaf = 3;  // elements of the leaf

/// A number and its derivatives.
struct Element {
  double value = 0.0;
  double slope[kLeaf] = {};
};

struct Root {
  std::vector<Element> elements;
};

/// A view as NumPy has it: places in the elements of a root.
struct Places {
  std::shared_ptr<Root> root;
  std::vector<size_t> at;
  Shape shape;
  bool is_detached = false;

  bool has_root() const { return root != nullptr; }
  static Places of(const std::vector<double>& values, const Shape& shape);
  Element element(size_t i) const;
  void set(size_t i, Element element) const;
  std::vector<double> values() const;
};

/// A movement of a tensor of a known shape, as numbers that both sides read alike.
struct Move {
  enum class Kind : uint8_t { Slice, Select, Permute, Reshape, Flip, Unsqueeze, Diagonal, Detach };
  Kind kind = Kind::Slice;
  int64_t axis = 0, begin = 0, end = 0, step = 1;
  Shape shape{};
  std::vector<int64_t> order{};
};
Tensor moved(const Tensor& x, const Move& move);
Places moved(const Places& x, const Move& move);

struct Action {
  enum class Kind : uint8_t {
    View,      ///< a new view of `of`
    Assign,    ///< of.assign(number)
    Add,       ///< of += number
    Multiply,  ///< of *= number
    AddView,   ///< of += other * number
    SetItem,   ///< of[begin : begin + 1] = number
    AddLeaf,   ///< of += leaf[begin] * number
    SetLeaf,   ///< of.assign(leaf[begin])
    Realize,
    Drop,  ///< the handle goes
  };
  Kind kind = Kind::View;
  size_t of = 0, other = 0;
  double number = 0.0;
  int64_t begin = 0;
  Move move{};
};

struct Options {
  size_t actions = 10;
  bool realizes = true;             // and drops handles
  size_t first_with_gradients = 0;  // roots before it take no value of the leaf
};

/// Actions on roots of these shapes.
std::vector<Action> make(uint32_t seed, const std::vector<Shape>& roots, const Options& options);
/// Both append the views that the actions make; dropped ones become undefined, or without places.
void perform(const std::vector<Action>& actions, std::vector<Tensor>& tensors, const Tensor& leaf);
void perform(const std::vector<Action>& actions, std::vector<Places>& places,
             const std::vector<double>& leaf);
/// The sum of the products of all elements with numbers that count up, save those of detached views.
Tensor weighted_sum(const std::vector<Tensor>& tensors, const std::vector<bool>& is_detached);
Element weighted_sum(const std::vector<Places>& places);
std::vector<bool> detached(const std::vector<Places>& places);
std::string to_string(const std::vector<Action>& actions);

}  // namespace plugrad::view_program
