/// IndexedTensor: the result of indexing a named tensor. It reads the elements, and a temporary one
/// can be assigned to: x[{Slice(1, 3), 0}] = value; x[rows] += 1; x[1][2] = 0.
#pragma once

#include <initializer_list>
#include <memory>

#include "plugrad/tensor.h"

namespace plugrad {

/// Assigning to a temporary changes the indexed tensor for every copy of its handle; see
/// Tensor::set_index. A named one (auto row = x[0]) behaves like any other Tensor: `row = v` makes
/// the handle denote another tensor; row.assign(v) and row += v change the elements of x.
class PLUGRAD_API IndexedTensor : public Tensor {
 public:
  struct Target;
  IndexedTensor(Tensor read, std::shared_ptr<const Target> target)
      : Tensor(std::move(read)), target_(std::move(target)) {}
  IndexedTensor(const IndexedTensor&) = default;
  IndexedTensor(IndexedTensor&&) = default;

  void operator=(const Tensor& value) && { write(value); }
  void operator=(const IndexedTensor& value) && { write(value); }
  void assign(const Tensor& value) && { write(value); }
  // A named one: assignment rebinds this handle only.
  IndexedTensor& operator=(const Tensor& other) &;
  IndexedTensor& operator=(const IndexedTensor& other) & {
    return *this = static_cast<const Tensor&>(other);
  }
  Tensor& assign(const Tensor& value) & { return Tensor::assign(value); }

  // An element that an index lists twice is read once and written once, as in NumPy.
#define PLUGRAD_UPDATE(op)                                              \
  void operator op##=(const Tensor& other)&& { write(*this op other); } \
  Tensor& operator op##=(const Tensor & other)& { return Tensor::operator op##=(other); }
  PLUGRAD_UPDATE(+)
  PLUGRAD_UPDATE(-)
  PLUGRAD_UPDATE(*)
  PLUGRAD_UPDATE(/)
  PLUGRAD_UPDATE(%)
  PLUGRAD_UPDATE(&)
  PLUGRAD_UPDATE(|)
  PLUGRAD_UPDATE(^)
  PLUGRAD_UPDATE(<<)
  PLUGRAD_UPDATE(>>)
#undef PLUGRAD_UPDATE

  /// x[1][2] = value changes x.
  IndexedTensor operator[](const Index& index) &&;
  IndexedTensor operator[](std::initializer_list<Index> indices) &&;
  IndexedTensor operator[](const Index& index) & { return Tensor::operator[](index); }
  IndexedTensor operator[](std::initializer_list<Index> indices) & {
    return Tensor::operator[](indices);
  }
  Tensor operator[](const Index& index) const& { return Tensor::operator[](index); }
  Tensor operator[](std::initializer_list<Index> indices) const& {
    return Tensor::operator[](indices);
  }

 private:
  void write(const Tensor& value) const;
  std::shared_ptr<const Target> target_;
};

}  // namespace plugrad
