// Operators that move elements: shapes, joins, slices, padding.
#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "onnx/ops/tables.h"
#include "plugrad/functional.h"
#include "tensor/index/index.h"
#include "tensor/sizes/sizes.h"

namespace plugrad::onnx {
namespace {

// Axes that an attribute had and an input has since an operator set; none if they are left out.
std::optional<Integers> axes_of(Call& call, size_t input, int64_t since) {
  if (call.opset() < since) {
    if (!call.attribute("axes")) return {};
    return call.integers("axes");
  }
  if (!call.has(input)) return {};
  return call.integers(input);
}

Values identity(Call& call) {
  return {call.value(0)};
}

using SizeValues = std::vector<tensor::SizeValue>;

SizeValues fixed_sizes(const Integers& numbers) {
  SizeValues sizes;
  for (const int64_t number : numbers) sizes.push_back({number, number, kNoId});
  return sizes;
}

Values reshape(Call& call) {
  const Tensor x = call[0];
  const SizeValues wanted = call.opset() < 5 ? fixed_sizes(call.integers("shape")) : call.sizes(1);
  const bool copies_zero = call.integer("allowzero", 0) == 0;
  Shape shape;
  for (size_t i = 0; i < wanted.size(); ++i) {
    shape.push_back(wanted[i].most);
    if (wanted[i].most != 0 || !copies_zero) continue;
    if (i >= static_cast<size_t>(x.ndim())) call.wrong("a 0 in the shape names no axis");
    shape[i] = x.size(static_cast<int64_t>(i));
  }
  // A size of -1 is not defined by a product of 0 unless the rest is not 0.
  Tensor y = x.reshape(shape);
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i].most > 0) y = call.with_size(y, static_cast<int64_t>(i), wanted[i]);
  return {y};
}

Values transpose(Call& call) {
  const Tensor x = call[0];
  Integers order = call.integers("perm");
  if (!call.attribute("perm")) {
    order.resize(static_cast<size_t>(x.ndim()));
    std::iota(order.rbegin(), order.rend(), 0);
  }
  return {x.permute(order)};
}

Values flatten(Call& call) {
  const Tensor x = call[0];
  const int64_t given = call.integer("axis", 1);
  const int64_t axis = given == x.ndim() ? given : call.axis(given, x.ndim());
  int64_t rows = 1, columns = 1;
  for (int64_t i = 0; i < x.ndim(); ++i) (i < axis ? rows : columns) *= x.size(i);
  return {x.reshape({rows, columns})};
}

Values squeeze(Call& call) {
  const auto axes = axes_of(call, 1, 13);
  if (!axes) call.require_fixed(call[0]);  // a size may be 1
  for (const int64_t axis : call.axes(axes.value_or(Integers()), call[0].ndim())) {
    call.require_fixed(call[0], axis);
    if (call[0].size(axis) != 1)
      call.wrong(fmt::format("axis {} of {} is not of size 1", axis, to_string(call[0].shape())));
  }
  return {axes ? call[0].squeeze(*axes) : call[0].squeeze()};
}

Values unsqueeze(Call& call) {
  Tensor x = call[0];
  Integers axes = axes_of(call, 1, 13).value_or(Integers());
  const int64_t rank = x.ndim() + static_cast<int64_t>(axes.size());
  axes = call.axes(axes, rank);
  std::ranges::sort(axes);
  for (const int64_t axis : axes) x = x.unsqueeze(axis);
  return {x};
}

Values concat(Call& call) {
  std::vector<Tensor> parts;
  for (size_t i = 0; i < call.input_count(); ++i) parts.push_back(call[i]);
  return {cat(parts, call.integer("axis", 1))};
}

Values split(Call& call) {
  const Tensor x = call[0];
  const int64_t axis = call.axis_of(x, 0);
  Integers sizes;
  if (call.opset() < 13)
    sizes = call.integers("split");
  else if (call.has(1))
    sizes = call.integers(1);
  call.require_fixed(x, axis);
  if (sizes.empty()) {
    const auto count = call.integer("num_outputs", static_cast<int64_t>(call.output_count()));
    if (count < 1 || count != static_cast<int64_t>(call.output_count()))
      call.wrong(
          fmt::format("num_outputs is {}, but it has {} outputs", count, call.output_count()));
    const int64_t size = (x.size(axis) + count - 1) / count;
    for (int64_t left = x.size(axis), i = 0; i < count; ++i, left -= sizes.back())
      sizes.push_back(std::min(size, left));
  }
  Values parts;
  for (Tensor& part : x.split(sizes, axis)) parts.emplace_back(std::move(part));
  return parts;
}

// Elements from a start below an end, where one of them, or the axis, has a variable size.
Tensor variable_slice(Call& call, const Tensor& x, int64_t axis, size_t number,
                      const tensor::SizeValue& start, const tensor::SizeValue& end, int64_t step) {
  const auto place = [&](size_t input, const tensor::SizeValue& bound) {
    const auto at = static_cast<int64_t>(number);
    return tensor::Place{
        bound.varies() ? call[input].slice(0, {at, at + 1}).reshape({}) : Tensor(bound.most),
        bound};
  };
  tensor::SizeArithmetic& sizes = *call.recording().sizes;
  try {
    const auto range = tensor::clipped_range(sizes, x, axis, place(1, start), place(2, end), step);
    return tensor::elements_of(sizes, x, axis, range);
  } catch (const tensor::UndecidedSlice& undecided) {
    call.needs_exact_sizes(undecided.reason);
  }
}

// The bounds clip as in Python, but a negative step may not leave out its end.
Values slice(Call& call) {
  Tensor x = call[0];
  const bool has_attributes = call.opset() < 10;
  const SizeValues starts = has_attributes ? fixed_sizes(call.integers("starts")) : call.sizes(1);
  const SizeValues ends = has_attributes ? fixed_sizes(call.integers("ends")) : call.sizes(2);
  Integers axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (has_attributes)
    axes = call.integers("axes", axes);
  else if (call.has(3))
    axes = call.integers(3);
  if (!has_attributes && call.has(4)) steps = call.integers(4);
  if (starts.size() != ends.size() || axes.size() != starts.size() || steps.size() != starts.size())
    call.wrong("starts, ends, axes and steps have different lengths");
  axes = call.axes(axes, x.ndim());
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i], size = x.size(axis);
    if (steps[i] == 0) call.wrong("a step is 0");
    if (starts[i].varies() || ends[i].varies() || call.varies(x, axis)) {
      x = variable_slice(call, x, axis, i, starts[i], ends[i], steps[i]);
      continue;
    }
    const int64_t start = starts[i].most, end = ends[i].most;
    Slice each{start, end, steps[i]};
    if (steps[i] < 0 && end < -size) each.stop.reset();
    x = x.slice(axis, each);
  }
  return {x};
}

Values expand(Call& call) {
  const Tensor x = call[0];
  SizeValues wanted = call.sizes(1);
  Shape have = x.shape();
  const size_t rank = std::max(wanted.size(), have.size());
  wanted.insert(wanted.begin(), rank - wanted.size(), {1, 1, kNoId});
  have.insert(have.begin(), rank - have.size(), 1);
  Shape shape;
  for (size_t i = 0; i < rank; ++i) {
    if (wanted[i].most < 0) call.wrong(fmt::format("shape has the size {}", wanted[i].most));
    shape.push_back(wanted[i].most == 1 ? have[i] : wanted[i].most);
  }
  Tensor y = x.reshape(have).expand(shape);
  for (size_t i = 0; i < rank; ++i)
    if (wanted[i].most != 1) y = call.with_size(y, static_cast<int64_t>(i), wanted[i]);
  return {y};
}

Values tile(Call& call) {
  const Tensor x = call[0];
  Shape repeats(static_cast<size_t>(x.ndim()), 1);
  if (call.opset() >= 6)
    repeats = call.integers(1);
  else
    repeats[static_cast<size_t>(call.axis(call.integer_input(2), x.ndim()))] =
        call.integer_input(1);
  if (std::ssize(repeats) != x.ndim())
    call.wrong(fmt::format("repeats has {} numbers, input has the shape {}", repeats.size(),
                           to_string(x.shape())));
  Tensor y = x.repeat(repeats);
  for (int64_t axis = 0; axis < x.ndim(); ++axis)
    if (!call.varies(x, axis)) y = call.with_fixed_size(y, axis);
  return {y};
}

PadMode pad_mode(Call& call) {
  const std::string_view mode = call.text("mode", "constant");
  if (mode == "constant") return PadMode::Constant;
  if (mode == "reflect") return PadMode::Reflect;
  if (mode == "edge") return PadMode::Replicate;
  return PadMode::Circular;
}

Values pad(Call& call) {
  const Tensor x = call[0];
  const Integers pads = call.opset() < 2    ? call.integers("paddings")
                        : call.opset() < 11 ? call.integers("pads")
                                            : call.integers(1);
  Integers axes(static_cast<size_t>(x.ndim()));
  std::iota(axes.begin(), axes.end(), 0);
  if (call.has(3)) axes = call.axes(call.integers(3), x.ndim());
  if (pads.size() != 2 * axes.size()) call.wrong("pads must have two numbers for each axis");
  std::vector<Pads::Pair> pairs(static_cast<size_t>(x.ndim()));
  for (size_t i = 0; i < axes.size(); ++i)
    pairs[static_cast<size_t>(axes[i])] = {pads[i], pads[axes.size() + i]};
  const PadMode mode = pad_mode(call);
  if (mode != PadMode::Constant) return {x.pad(pairs, mode)};
  if (call.opset() < 11) return {x.pad(pairs, call.number("value", 0))};
  return {call.has(2) ? x.pad(pairs, call[2].reshape({}).cast(x.dtype())) : x.pad(pairs)};
}

void require_image(Call& call, const Tensor& x) {
  if (x.ndim() != 4)
    call.wrong(fmt::format("the input has the shape {}, not four axes", to_string(x.shape())));
}

Values depth_to_space(Call& call) {
  const Tensor x = call[0];
  require_image(call, x);
  const int64_t block = call.integer("blocksize", 1), n = x.size(0), h = x.size(2), w = x.size(3);
  if (x.size(1) % (block * block) != 0)
    call.wrong(fmt::format("{} channels are no blocks of {} x {}", x.size(1), block, block));
  const int64_t c = x.size(1) / (block * block);
  const Tensor split = call.text("mode", "DCR") == "DCR"
                           ? x.reshape({n, block, block, c, h, w}).permute({0, 3, 4, 1, 5, 2})
                           : x.reshape({n, c, block, block, h, w}).permute({0, 1, 4, 2, 5, 3});
  return {split.reshape({n, c, h * block, w * block})};
}
Values space_to_depth(Call& call) {
  const Tensor x = call[0];
  require_image(call, x);
  const int64_t block = call.integer("blocksize", 1), n = x.size(0), c = x.size(1);
  if (x.size(2) % block != 0 || x.size(3) % block != 0)
    call.wrong(fmt::format("an image of {} x {} has no blocks of {} x {}", x.size(2), x.size(3),
                           block, block));
  const int64_t h = x.size(2) / block, w = x.size(3) / block;
  const Tensor split = x.reshape({n, c, h, block, w, block});
  const Tensor moved = call.text("mode", "DCR") == "DCR" ? split.permute({0, 3, 5, 1, 2, 4})
                                                         : split.permute({0, 1, 3, 5, 2, 4});
  return {moved.reshape({n, c * block * block, h, w})};
}

constexpr int64_t kMostBlock = 4096;  // elements of a block, each of which is recorded by itself

// Blocks are the first axis of the columns, ordered as the kernel's elements.
Values col2im(Call& call) {
  const Tensor columns = call[0];
  const Integers image = call.integers(1), block = call.integers(2);
  const size_t axes = image.size();
  const Integers dilations = call.integers("dilations", Integers(axes, 1));
  const Integers strides = call.integers("strides", Integers(axes, 1));
  const Integers pads = call.integers("pads", Integers(2 * axes, 0));
  const int64_t elements = tensor::checked_count("onnx", block);
  if (columns.ndim() != 3 || block.size() != axes || dilations.size() != axes ||
      strides.size() != axes || pads.size() != 2 * axes)
    call.wrong("the input needs three axes, and block, dilations, strides and pads the image's");
  if (elements == 0 || elements > kMostBlock || columns.size(1) % elements != 0)
    call.wrong(
        fmt::format("{} rows of columns are no channels of {} elements, of which there may be "
                    "{}",
                    columns.size(1), elements, kMostBlock));
  const int64_t n = columns.size(0), channels = columns.size(1) / elements;
  Shape counts, padded;
  for (size_t i = 0; i < axes; ++i) {
    padded.push_back(image[i] + pads[i] + pads[axes + i]);
    counts.push_back((padded[i] - dilations[i] * (block[i] - 1) - 1) / strides[i] + 1);
  }
  Tensor total;
  Shape shape{n, channels, elements};
  shape.insert(shape.end(), counts.begin(), counts.end());
  const Tensor parts = columns.reshape(shape);
  for (int64_t element = 0; element < elements; ++element) {
    Tensor part = parts.slice(2, {element, element + 1}).squeeze(2);
    int64_t rest = element;
    for (size_t i = axes; i-- > 0; rest /= block[i]) {
      const auto axis = static_cast<int64_t>(2 + i);
      const int64_t offset = rest % block[i] * dilations[i];
      part = part.unsqueeze(axis + 1);
      std::vector<Pads::Pair> gaps(static_cast<size_t>(part.ndim()));
      gaps[2 + i + 1].second = strides[i] - 1;
      part = part.pad(gaps).flatten(axis, axis + 1);
      std::vector<Pads::Pair> around(static_cast<size_t>(part.ndim()));
      around[2 + i] = {offset, padded[i] - offset - part.size(axis)};
      part = part.pad(around);
    }
    total = total.defined() ? total + part : part;
  }
  for (size_t i = 0; i < axes; ++i)
    total = total.slice(static_cast<int64_t>(2 + i), {pads[i], pads[i] + image[i]});
  return {total};
}

Values reverse_sequence(Call& call) {
  const Tensor x = call[0], lengths = call[1];
  const int64_t batch = call.integer("batch_axis", 1), time = call.integer("time_axis", 0);
  if (x.ndim() < 2 || batch == time)
    call.wrong("the batch and the time must be two axes of the input");
  call.require_within(1, "sequence_lens", 0, x.size(time));
  Shape of_batch(static_cast<size_t>(x.ndim()), 1), of_time = of_batch;
  of_batch[static_cast<size_t>(batch)] = x.size(batch);
  of_time[static_cast<size_t>(time)] = x.size(time);
  const Tensor step = Tensor::arange(x.size(time), DType::I64).reshape(of_time);
  const Tensor length = lengths.cast(DType::I64).reshape(of_batch);
  const Tensor from = (step < length).where(length - 1 - step, step);
  return {x.gather(time, from.expand(x.shape()))};
}

Values trilu(Call& call) {
  const int64_t diagonal = call.has(1) ? call.integer_input(1) : 0;
  return {call.integer("upper", 1) != 0 ? call[0].triu(diagonal) : call[0].tril(diagonal)};
}

Values center_crop_pad(Call& call) {
  Tensor x = call[0];
  const Integers wanted = call.integers(1);
  Integers axes(wanted.size());
  std::iota(axes.begin(), axes.end(), 0);
  axes = call.integers("axes", axes);
  if (axes.size() != wanted.size()) call.wrong("shape must have a number for each axis");
  axes = call.axes(axes, x.ndim());
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i], size = x.size(axis);
    if (wanted[i] < size) {
      const int64_t begin = (size - wanted[i]) / 2;
      x = x.slice(axis, {begin, begin + wanted[i]});
    } else if (wanted[i] > size) {
      std::vector<Pads::Pair> pairs(static_cast<size_t>(x.ndim()));
      const int64_t before = (wanted[i] - size) / 2;
      pairs[static_cast<size_t>(axis)] = {before, wanted[i] - size - before};
      x = x.pad(pairs);
    }
  }
  return {x};
}

constexpr OperatorRow kMovementRows[] = {
    {"CenterCropPad", center_crop_pad},     {"Col2Im", col2im},
    {"Concat", concat, kVariableSizes},     {"DepthToSpace", depth_to_space, kVariableSizes},
    {"Expand", expand, kVariableSizes},     {"Flatten", flatten, kVariableSizes},
    {"Identity", identity, kVariableSizes}, {"Pad", pad, kVariableSizes},
    {"Reshape", reshape, kVariableSizes},   {"ReverseSequence", reverse_sequence},
    {"Slice", slice, kVariableSizes},       {"SpaceToDepth", space_to_depth, kVariableSizes},
    {"Split", split, kVariableSizes},       {"Squeeze", squeeze, kVariableSizes},
    {"Tile", tile, kVariableSizes},         {"Transpose", transpose, kVariableSizes},
    {"Trilu", trilu, kVariableSizes},       {"Unsqueeze", unsqueeze, kVariableSizes},
};

}  // namespace

std::span<const OperatorRow> movement_operators() {
  return kMovementRows;
}

}  // namespace plugrad::onnx
