// To and from blocks of channels (import/blocked_channels.h).
#include "onnx/ops/tables.h"
#include "onnx/ops/windows.h"

namespace plugrad::onnx {
namespace {

Values reorder_input(Call& call) {
  Tensor x = call[0];
  if (x.ndim() < 3) call.wrong(fmt::format("X has the shape {}", to_string(x.shape())));
  if (call.integer("channels_last", 0) != 0) x = channels_first(x);
  call.require_fixed(x, 1);
  const int64_t block = call.recording().files->channels_per_block();
  std::vector<Pads::Pair> pads(static_cast<size_t>(x.ndim()));
  pads[1] = {0, (block - x.size(1) % block) % block};
  return {x.pad(pads)};
}

Values reorder_output(Call& call) {
  const Tensor x = call[0];
  const int64_t channels = call.integer("channels", 0);
  if (x.ndim() < 3 || channels > x.size(1))
    call.wrong(fmt::format("channels is {}, X has the shape {}", channels, to_string(x.shape())));
  const Tensor kept = x.slice(1, {0, channels});
  return {call.integer("channels_last", 0) == 0 ? kept : channels_last(kept)};
}

constexpr OperatorRow kBlockedRows[] = {
    {"ReorderInput", reorder_input, kVariableSizes, kBlockedChannels},
    {"ReorderOutput", reorder_output, kVariableSizes, kBlockedChannels},
};

}  // namespace

std::span<const OperatorRow> blocked_operators() {
  return kBlockedRows;
}

}  // namespace plugrad::onnx
