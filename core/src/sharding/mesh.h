// A mesh: devices in a grid of named axes. A sharded value has one part on each device.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

namespace plugrad::sharding {

/// A set of axes of a mesh: bit i is axis i.
using AxisSet = uint32_t;

struct Mesh {
  struct Place {
    uint32_t rank = 0;    // of the process that owns the device
    uint32_t device = 0;  // its number in the session of that process
    bool operator==(const Place&) const = default;
  };
  // An axis without a name is a finer cut of the first axis, within each device (fine_axis()).
  std::vector<std::string> axes;
  std::vector<int64_t> sizes;  // by axis
  std::vector<Place> places;   // by position: row-major over the axes
  uint32_t rank = 0;           // of this process
  uint32_t processes = 1;      // of the program; not all of them need to have positions
  uint32_t home = 0;           // the device of this process that values are read on
  uint32_t device = 0;         // number under which the session knows the mesh itself

  uint32_t size() const { return static_cast<uint32_t>(places.size()); }
  bool is_here(uint32_t position) const { return places[position].rank == rank; }
  /// The first position of a process; size() if it has none.
  uint32_t first_of(uint32_t of_rank) const {
    uint32_t position = 0;
    while (position < size() && places[position].rank != of_rank) ++position;
    return position;
  }
  uint32_t first_here() const { return first_of(rank); }
  bool has_all_processes() const {
    for (uint32_t each = 0; each < processes; ++each)
      if (first_of(each) == size()) return false;
    return true;
  }
  /// The same grid, on other devices.
  bool has_shape_of(const Mesh& other) const { return axes == other.axes && sizes == other.sizes; }
  /// Without a name; 0 if there is none.
  AxisSet fine_axis() const {
    AxisSet fine = 0;
    for (size_t axis = 0; axis < axes.size(); ++axis)
      if (axes[axis].empty()) fine |= AxisSet{1} << axis;
    return fine;
  }
  /// The number of parts into which `along` cuts a dimension.
  int64_t count(AxisSet along) const {
    int64_t count = 1;
    for (size_t axis = 0; axis < sizes.size(); ++axis)
      if (along >> axis & 1) count *= sizes[axis];
    return count;
  }
  /// The index of a position along some axes, row-major in the order of the mesh.
  int64_t index(uint32_t position, AxisSet along) const {
    int64_t index = 0, stride = 1, at = position;
    for (size_t axis = sizes.size(); axis-- > 0; at /= sizes[axis]) {
      if ((along >> axis & 1) == 0) continue;
      index += at % sizes[axis] * stride;
      stride *= sizes[axis];
    }
    return index;
  }
  /// The positions that differ from `position` along these axes alone, by their index along them.
  std::vector<uint32_t> group(uint32_t position, AxisSet along) const {
    std::vector<uint32_t> members(static_cast<size_t>(count(along)));
    const AxisSet others = ~along;
    for (uint32_t other = 0; other < size(); ++other)
      if (index(other, others) == index(position, others))
        members[static_cast<size_t>(index(other, along))] = other;
    return members;
  }
};

}  // namespace plugrad::sharding
