// A device, its buffers and kernels; every call is checked.
#include "conformance/plugin/device.h"

#include "conformance/plugin/calls.h"
#include "plugrad/sdk/ir_view.h"

namespace plugrad::conformance {
namespace {

class LoadedKernel final : public Kernel {
 public:
  LoadedKernel(Device& device, std::string name, std::string source, std::string binary)
      : device_(device), source_(std::move(source)), binary_(std::move(binary)) {
    const pgr_runner_api& runner = *device_.plugin().runner_api();
    expect_ok("runner.load", [&](pgr_error* error) {
      return runner.load(device_.handle(), binary_.data(), binary_.size(), &program_, error);
    });
    const pgr_string wanted = sdk::to_pgr(name);
    CallError error;
    const pgr_status status =
        runner.kernel(device_.handle(), program_, &wanted, &kernel_, error.get());
    if (status == PGR_STATUS_OK) return;
    runner.unload(device_.handle(), program_);
    fail_call("runner.kernel(" + name + ")", status, error);
  }
  ~LoadedKernel() override { device_.plugin().runner_api()->unload(device_.handle(), program_); }
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;

  pgr_kernel* handle() const override { return kernel_; }
  const std::string& source() const override { return source_; }
  std::span<const std::byte> binary() const override {
    return std::as_bytes(std::span(binary_.data(), binary_.size()));
  }

 private:
  Device& device_;
  std::string source_, binary_;
  pgr_program* program_ = nullptr;
  pgr_kernel* kernel_ = nullptr;
};

class OpenedDevice final : public Device {
 public:
  OpenedDevice(Plugin& plugin, uint32_t index, const std::map<std::string, std::string>& options)
      : plugin_(plugin), api_(*plugin.device_api()), allocator_(*plugin.allocator_api()) {
    open(index, options);
    PGR_INIT(info_, DEVICE_INFO);
    PGR_INIT(caps_, DEVICE_CAPS);
    expect_ok("device.info", [&](pgr_error* error) { return api_.info(handle_, &info_, error); });
    expect_ok("device.caps", [&](pgr_error* error) { return api_.caps(handle_, &caps_, error); });
  }
  ~OpenedDevice() override { plugin_.api().device_close(plugin_.api().plugin, handle_); }
  OpenedDevice(const OpenedDevice&) = delete;
  OpenedDevice& operator=(const OpenedDevice&) = delete;

  Plugin& plugin() override { return plugin_; }
  pgr_device* handle() const override { return handle_; }
  const pgr_device_info& info() const override { return info_; }
  const pgr_device_caps& caps() const override { return caps_; }

  Buffer allocate(uint64_t size_bytes, uint32_t flags) override;
  std::unique_ptr<Kernel> compile(std::span<const std::byte> kernel_ir, bool contract) override;
  void launch(const Kernel& kernel, const KernelLaunch& launch, uint64_t* time_ns) override;
  void synchronize() override {
    expect_ok("device.synchronize",
              [&](pgr_error* error) { return api_.synchronize(handle_, error); });
  }

 private:
  void open(uint32_t index, const std::map<std::string, std::string>& options);
  std::string render(std::span<const std::byte> kernel_ir);
  std::string compile_input(const std::string& name, const std::string& input, bool contract);

  Plugin& plugin_;
  const pgr_device_api& api_;
  const pgr_allocator_api& allocator_;
  pgr_device* handle_ = nullptr;
  pgr_device_info info_;
  pgr_device_caps caps_;
};

void OpenedDevice::open(uint32_t index, const std::map<std::string, std::string>& options) {
  uint32_t count = 0;
  expect_ok("plugin.device_count", [&](pgr_error* error) {
    return plugin_.api().device_count(plugin_.api().plugin, &count, error);
  });
  if (count == 0) throw Unsupported("the plugin finds no device here (device_count is 0)");
  const std::vector<pgr_option> given = make_options(options);
  expect_ok("plugin.device_open(" + std::to_string(index) + ")", [&](pgr_error* error) {
    return plugin_.api().device_open(plugin_.api().plugin, index, given.data(),
                                     static_cast<uint32_t>(given.size()), sizeof(pgr_option),
                                     &handle_, error);
  });
}

Buffer OpenedDevice::allocate(uint64_t size_bytes, uint32_t flags) {
  pgr_alloc_desc desc;
  PGR_INIT(desc, ALLOC_DESC);
  desc.size_bytes = size_bytes;
  desc.flags = flags;
  pgr_buffer* buffer = nullptr;
  expect_ok("allocator.alloc(" + std::to_string(size_bytes) + " bytes)",
            [&](pgr_error* error) { return allocator_.alloc(handle_, &desc, &buffer, error); });
  return Buffer(*this, buffer, size_bytes);
}

std::string OpenedDevice::render(std::span<const std::byte> kernel_ir) {
  const pgr_renderer_api* renderer = plugin_.renderer_api();
  if (!renderer) return "";
  pgr_render_desc desc;
  PGR_INIT(desc, RENDER_DESC);
  desc.ir = kernel_ir.data();
  desc.ir_bytes = kernel_ir.size();
  desc.option_stride = sizeof(pgr_option);
  Blob source;
  expect_ok("renderer.render", [&](pgr_error* error) {
    return renderer->render(handle_, &desc, source.get(), error);
  });
  return source.text();
}

std::string OpenedDevice::compile_input(const std::string& name, const std::string& input,
                                        bool contract) {
  const pgr_compiler_api* compiler = plugin_.compiler_api();
  if (!compiler) return input;  // the runner takes kernel IR
  pgr_compile_desc desc;
  PGR_INIT(desc, COMPILE_DESC);
  desc.input = input.data();
  desc.input_bytes = input.size();
  desc.name = sdk::to_pgr(name);
  desc.option_stride = sizeof(pgr_option);
  desc.contract = contract ? PGR_CONTRACT_ALLOWED : PGR_CONTRACT_OFF;
  desc.optimize = 2;
  Blob binary, log;
  CallError error;
  const pgr_status status = compiler->compile(handle_, &desc, binary.get(), log.get(), error.get());
  if (status != PGR_STATUS_OK) fail_call("compiler.compile\n" + log.text(), status, error);
  return binary.text();
}

std::unique_ptr<Kernel> OpenedDevice::compile(std::span<const std::byte> kernel_ir, bool contract) {
  const std::string name = sdk::decode_ir(kernel_ir).name();
  std::string source = render(kernel_ir);
  const std::string ir(reinterpret_cast<const char*>(kernel_ir.data()), kernel_ir.size());
  std::string binary = compile_input(name, plugin_.renderer_api() ? source : ir, contract);
  return std::make_unique<LoadedKernel>(*this, name, std::move(source), std::move(binary));
}

void OpenedDevice::launch(const Kernel& kernel, const KernelLaunch& launch, uint64_t* time_ns) {
  pgr_launch_desc desc;
  PGR_INIT(desc, LAUNCH_DESC);
  desc.buffers = launch.buffers.data();
  desc.buffer_count = static_cast<uint32_t>(launch.buffers.size());
  desc.scalars = launch.scalars.data();
  desc.scalar_count = static_cast<uint32_t>(launch.scalars.size());
  for (int axis = 0; axis < 3; ++axis) {
    desc.group_count[axis] = launch.group_count[axis];
    desc.local_size[axis] = launch.local_size[axis];
  }
  desc.timing = time_ns != nullptr;
  expect_ok("runner.launch", [&](pgr_error* error) {
    return plugin_.runner_api()->launch(handle_, nullptr, kernel.handle(), &desc, time_ns, error);
  });
  if (plugin_.queue_api()) synchronize();
}

}  // namespace

std::unique_ptr<Device> open_device(Plugin& plugin, uint32_t index,
                                    const std::map<std::string, std::string>& options) {
  return std::make_unique<OpenedDevice>(plugin, index, options);
}

Buffer::~Buffer() {
  if (handle_) device_->plugin().allocator_api()->free(device_->handle(), handle_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : device_(other.device_),
      handle_(std::exchange(other.handle_, nullptr)),
      size_bytes_(other.size_bytes_) {}

void Buffer::write(std::span<const std::byte> bytes, uint64_t offset_bytes) {
  expect_ok("allocator.copy_in", [&](pgr_error* error) {
    return device_->plugin().allocator_api()->copy_in(
        device_->handle(), nullptr, handle_, offset_bytes, bytes.data(), bytes.size(), error);
  });
}

void Buffer::read(std::span<std::byte> bytes, uint64_t offset_bytes) const {
  expect_ok("allocator.copy_out", [&](pgr_error* error) {
    return device_->plugin().allocator_api()->copy_out(device_->handle(), nullptr, bytes.data(),
                                                       handle_, offset_bytes, bytes.size(), error);
  });
}

}  // namespace plugrad::conformance
