// Turns masked_select and nonzero into gathers. The index of hit k is the number of prefix counts
// of the mask that are at most k; a binary search with one load per iteration finds it.
#include <algorithm>

#include "plugrad/functional.h"
#include "tensor/index/index.h"
#include "tensor/lazy_text.h"
#include "tensor/record.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad {

namespace {

/// Indices of the first `size` true elements of a vector; the vector's size if there are fewer.
Tensor true_indices(const Tensor& mask, int64_t size) {
  const int64_t count = mask.size(0);
  const DType dtype = count > INT32_MAX ? DType::I64 : DType::I32;
  const Tensor upto = mask.cast(dtype).cumsum(0, dtype).contiguous();
  const Tensor wanted = Tensor::arange(size, dtype);
  Tensor index = Tensor::zeros({size}, dtype);  // this many prefix counts are known to be <= wanted
  int64_t step = 1;
  while (step <= count / 2) step *= 2;
  for (; step > 0 && count > 0; step /= 2) {
    const Tensor next = index + step;
    const Tensor below = tensor::select(upto, 0, next - 1) <= wanted;
    index = where((next <= count) & below, next, index);
  }
  return index;
}

int64_t selected_count(std::string_view function, const Tensor& mask, std::optional<int64_t> size) {
  require(!size || *size >= 0, "[{}] size {} is negative", function, size.value_or(0));
  return size ? *size : mask.sum().item<int64_t>();
}

void require_fill(std::string_view function, const Tensor& fill, DType dtype) {
  require(fill.ndim() == 0, "[{}] the fill has shape {}, not one number", function,
          tensor::lazy_text(fill));
  require_type(is_float(dtype) || !is_float(fill.dtype()),
               "[{}] the fill is {}, the elements are {}", function, name_of(fill.dtype()),
               name_of(dtype));
}

}  // namespace

Tensor Tensor::masked_select(const Tensor& mask, std::optional<int64_t> size,
                             const Tensor& fill) const {
  require(defined() && mask.defined(), "[masked_select] a tensor is undefined; assign it a value");
  require_type(mask.dtype() == DType::Bool,
               "[masked_select] the mask is {}, not bool; compare it first", name_of(mask.dtype()));
  require_fill("masked_select", fill, dtype());
  std::vector<Tensor> both;
  {
    tensor::Recorder r("masked_select");
    std::vector<Id> nodes = {r.use(*this), r.use(mask)};
    if (r.shape(nodes[0]) != r.shape(nodes[1])) {
      const Shape rank(std::max(r.shape(nodes[0]).size(), r.shape(nodes[1]).size()), 1);
      for (Id& node : nodes)
        if (r.shape(node).empty()) node = r.reshape(node, rank);
      r.match_shapes(nodes);
    }
    for (Id node : nodes) both.push_back(r.done(node));
  }
  plugrad::where(both[1], both[0], 0);  // fails for sizes that differ
  const Tensor values = tensor::whole(both[0], 0).flatten(),
               flags = tensor::whole(tensor::limited_as(both[1], both[0]), false).flatten();
  const Tensor index = true_indices(flags, selected_count("masked_select", flags, size));
  return plugrad::where(index < flags.size(0), tensor::select(values, 0, index),
                        fill.cast(dtype()));
}

Tensor Tensor::nonzero(std::optional<int64_t> size, const Tensor& fill) const {
  require_fill("nonzero", fill, DType::I32);
  const Shape shape = this->shape();
  const Tensor flags = tensor::whole(dtype() == DType::Bool ? *this : *this != 0, false).flatten();
  const Tensor index = true_indices(flags, selected_count("nonzero", flags, size));
  std::vector<Tensor> columns;
  int64_t stride = flags.size(0);
  for (int64_t axis_size : shape) {
    stride = axis_size == 0 ? 0 : stride / axis_size;
    columns.push_back(stride == 0 ? index : index.trunc_div(stride) % axis_size);
  }
  if (columns.empty()) return Tensor::zeros({index.size(0), 0}, index.dtype());
  return plugrad::where((index < flags.size(0)).unsqueeze(1), stack(columns, 1),
                        fill.cast(index.dtype()));
}

}  // namespace plugrad
