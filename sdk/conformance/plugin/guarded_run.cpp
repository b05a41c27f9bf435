// Device::run: a kernel on buffers surrounded by guard bytes.
#include <algorithm>
#include <optional>

#include "conformance/plugin/calls.h"
#include "conformance/plugin/device.h"
#include "plugrad/sdk/ir_view.h"

namespace plugrad::conformance {
namespace {

constexpr uint64_t kGuardBytes = 256;

// Varies with the position, so that stray copies and stray constants are detected.
std::byte guard_byte(uint64_t position) {
  return static_cast<std::byte>(0xa5 ^ (position * 37));
}

class GuardedBuffer {
 public:
  GuardedBuffer(Device& device, const pgr_ir_param& param, std::vector<std::byte>& content)
      : content_(content),
        writes_(param.flags & PGR_PARAM_WRITE),
        front_bytes_(content.empty() ? 0 : front_guard(device, param)),
        whole_(device.allocate(front_bytes_ + content.size() + kGuardBytes)) {
    std::vector<std::byte> image(whole_.size_bytes());
    for (uint64_t i = 0; i < image.size(); ++i) image[i] = guard_byte(i);
    std::copy(content.begin(), content.end(), image.begin() + front_bytes_);
    whole_.write(image);
    if (front_bytes_) make_window(device);
  }

  pgr_buffer* handle() const { return window_ ? window_->handle() : whole_.handle(); }

  void check_and_read(const std::string& name) {
    std::vector<std::byte> image(whole_.size_bytes());
    whole_.read(image);
    const auto begin = image.begin() + front_bytes_, end = begin + content_.size();
    for (uint64_t i = 0; i < image.size(); ++i)
      if ((i < front_bytes_ || i >= front_bytes_ + content_.size()) && image[i] != guard_byte(i))
        throw Failed("the kernel wrote outside " + name + ", at byte " +
                     std::to_string(static_cast<int64_t>(i) - static_cast<int64_t>(front_bytes_)) +
                     " of its " + std::to_string(content_.size()));
    if (!writes_ && !std::equal(begin, end, content_.begin()))
      throw Failed("the kernel changed " + name + ", which it only reads");
    std::copy(begin, end, content_.begin());
  }

 private:
  // Guard bytes before the content: they need a sub-buffer.
  static uint64_t front_guard(Device& device, const pgr_ir_param& param) {
    if (!offered(device.plugin().allocator_api()->sub_buffer)) return 0;
    const uint64_t align = std::max({device.caps().buffer_align_bytes, param.align_bytes, 1u});
    return (kGuardBytes + align - 1) / align * align;
  }

  void make_window(Device& device) {
    pgr_buffer* window = nullptr;
    expect_ok("allocator.sub_buffer", [&](pgr_error* error) {
      return device.plugin().allocator_api()->sub_buffer(
          device.handle(), whole_.handle(), front_bytes_, content_.size(), &window, error);
    });
    window_.emplace(device, window, content_.size());
  }

  std::vector<std::byte>& content_;
  bool writes_;
  uint64_t front_bytes_;
  Buffer whole_;
  std::optional<Buffer> window_;  // freed before its parent
};

}  // namespace

void Device::run(std::span<const std::byte> kernel_ir, std::span<std::vector<std::byte>> buffers,
                 std::span<const uint64_t> scalars) {
  const sdk::IrView ir = sdk::decode_ir(kernel_ir);
  std::vector<GuardedBuffer> guarded;
  guarded.reserve(buffers.size());
  for (const pgr_ir_param& param : ir.params()) {
    if (param.kind != PGR_PARAM_BUFFER) continue;
    expect(guarded.size() < buffers.size(), "the suite gives fewer buffers than the kernel takes");
    std::vector<std::byte>& content = buffers[guarded.size()];
    expect(content.size() >= param.elem_count * sdk::dtype_size(param.dtype),
           "the suite gives a buffer that is shorter than its parameter");
    guarded.emplace_back(*this, param, content);
  }
  const std::unique_ptr<Kernel> kernel = compile(kernel_ir, ir.contract());
  KernelLaunch arguments;
  for (const GuardedBuffer& buffer : guarded) arguments.buffers.push_back(buffer.handle());
  arguments.scalars.assign(scalars.begin(), scalars.end());
  std::copy_n(ir.header().group_count, 3, arguments.group_count.begin());
  std::copy_n(ir.header().local_size, 3, arguments.local_size.begin());
  launch(*kernel, arguments);
  for (size_t i = 0; i < guarded.size(); ++i)
    guarded[i].check_and_read("buffer " + std::to_string(i));
}

}  // namespace plugrad::conformance
