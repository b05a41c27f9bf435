// How the elements of a value lie on a mesh.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/op.h"
#include "sharding/mesh.h"

namespace plugrad::sharding {

/// Each dimension is cut into parts along a set of axes, in the order of the mesh; without axes
/// every device has all of it. Along the axes of `partial` every device has a term of the value:
/// the value is their reduction.
struct Spec {
  std::vector<AxisSet> dims;
  AxisSet partial = 0;
  Op reduction = Op::Add;  // of the terms: Add, Mul or Max

  static Spec replicated(size_t rank) { return {std::vector<AxisSet>(rank), 0, Op::Add}; }
  bool is_replicated() const;
  /// The axes that cut a dimension.
  AxisSet cut() const;
  auto operator<=>(const Spec&) const = default;
};

/// The indices [begin, end) of one dimension that a device has.
struct Part {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
  bool operator==(const Part&) const = default;
};

/// Parts differ in size by at most 1: part i of n begins at size * i / n, so that parts along
/// fewer axes are unions of parts along more.
Part part_of(const Mesh& mesh, AxisSet along, int64_t size, uint32_t position);
/// The shape of the part that a device has of a value of this shape.
std::vector<int64_t> local_shape(const Mesh& mesh, const Spec& spec, std::span<const int64_t> shape,
                                 uint32_t position);
/// Whether all devices have parts of one size.
bool is_even(const Mesh& mesh, AxisSet along, int64_t size);

/// "[data, -, model]", "[-] partial add(data)".
std::string to_string(const Mesh& mesh, const Spec& spec);
/// "data+model"; "-" for none.
std::string names_of(const Mesh& mesh, AxisSet along);
/// "data=2 model=4".
std::string to_string(const Mesh& mesh);

/// A Shard node's argument: the mesh's device number, partial, reduction, dims….
std::vector<int64_t> shard_arg(const Mesh& mesh, const Spec& spec);
Spec spec_of_arg(std::span<const int64_t> arg);

}  // namespace plugrad::sharding
