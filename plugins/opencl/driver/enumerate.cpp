#include "enumerate.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace plugrad::opencl {
namespace {

// Constants of cl_ext.h, which older headers lack.
constexpr cl_device_info kDeviceUuid = 0x106A;  // CL_DEVICE_UUID_KHR
constexpr cl_device_info kWarpSizeNv = 0x4003;
constexpr cl_device_info kPciBusIdNv = 0x4008;
constexpr cl_device_info kPciSlotIdNv = 0x4009;

std::string trimmed(std::string text) {
  while (!text.empty() &&
         (text.back() == '\0' || std::isspace(static_cast<unsigned char>(text.back()))))
    text.pop_back();
  return text;
}

std::string platform_text(cl_platform_id platform, cl_platform_info what) {
  size_t size = 0;
  if (api().clGetPlatformInfo(platform, what, 0, nullptr, &size) != CL_SUCCESS) return {};
  std::string text(size, '\0');
  if (api().clGetPlatformInfo(platform, what, size, text.data(), nullptr) != CL_SUCCESS) return {};
  return trimmed(text);
}

std::string device_text(cl_device_id device, cl_device_info what) {
  size_t size = 0;
  if (api().clGetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS) return {};
  std::string text(size, '\0');
  if (api().clGetDeviceInfo(device, what, size, text.data(), nullptr) != CL_SUCCESS) return {};
  return trimmed(text);
}

// A value of the type that OpenCL defines for `what`; 0 if the device does not support the query.
template <typename Number>
Number device_number(cl_device_id device, cl_device_info what) {
  Number value{};
  if (api().clGetDeviceInfo(device, what, sizeof value, &value, nullptr) != CL_SUCCESS)
    return Number{};
  return value;
}

std::string hex_text(const unsigned char* bytes, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    out += "0123456789abcdef"[bytes[i] >> 4];
    out += "0123456789abcdef"[bytes[i] & 15];
  }
  return out;
}

// The UUID, the bus address, or the names; duplicates are numbered afterwards.
std::string identity(const DeviceFacts& facts) {
  unsigned char uuid[CL_UUID_SIZE_KHR] = {};
  if (facts.has_extension("cl_khr_device_uuid") &&
      api().clGetDeviceInfo(facts.id, kDeviceUuid, sizeof uuid, uuid, nullptr) == CL_SUCCESS)
    return "uuid-" + hex_text(uuid, sizeof uuid);
  if (facts.has_extension("cl_khr_pci_bus_info")) {
    const auto bus =
        device_number<cl_device_pci_bus_info_khr>(facts.id, CL_DEVICE_PCI_BUS_INFO_KHR);
    return "pci-" + std::to_string(bus.pci_domain) + "-" + std::to_string(bus.pci_bus) + "-" +
           std::to_string(bus.pci_device) + "-" + std::to_string(bus.pci_function);
  }
  if (facts.has_extension("cl_nv_device_attribute_query"))
    return "pci-nv-" + std::to_string(device_number<cl_uint>(facts.id, kPciBusIdNv)) + "-" +
           std::to_string(device_number<cl_uint>(facts.id, kPciSlotIdNv));
  return facts.platform_name + "/" + facts.name;
}

// The subgroup size by OpenCL 3.0 or NVIDIA's extension; default 32.
uint32_t step_of(const DeviceFacts& facts) {
  size_t step = device_number<size_t>(facts.id, CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE);
  if (step == 0 && facts.has_extension("cl_nv_device_attribute_query"))
    step = device_number<cl_uint>(facts.id, kWarpSizeNv);
  return step > 1 ? static_cast<uint32_t>(step) : 32;
}

void read_sizes(DeviceFacts& facts) {
  const cl_device_id id = facts.id;
  facts.compute_units = std::max(1u, device_number<cl_uint>(id, CL_DEVICE_MAX_COMPUTE_UNITS));
  facts.base_align_bytes =
      std::max(128u, device_number<cl_uint>(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8);
  facts.max_params = static_cast<uint32_t>(
      std::clamp<size_t>(device_number<size_t>(id, CL_DEVICE_MAX_PARAMETER_SIZE) / 8, 32, 1024));
  facts.lanes_i8 = device_number<cl_uint>(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR);
  facts.lanes_i16 = device_number<cl_uint>(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT);
  facts.lanes_i32 = device_number<cl_uint>(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_INT);
  facts.lanes_i64 = device_number<cl_uint>(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG);
  facts.lanes_f32 = device_number<cl_uint>(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
  facts.lanes_f64 = device_number<cl_uint>(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE);
  facts.memory_bytes = device_number<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE);
  facts.max_buffer_bytes = device_number<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  facts.local_bytes = device_number<cl_ulong>(id, CL_DEVICE_LOCAL_MEM_SIZE);
  facts.has_own_local =
      device_number<cl_device_local_mem_type>(id, CL_DEVICE_LOCAL_MEM_TYPE) == CL_LOCAL;
  facts.cache_bytes = device_number<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
  facts.cache_line_bytes = device_number<cl_uint>(id, CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE);
  facts.max_local_total =
      std::max<size_t>(1, device_number<size_t>(id, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  size_t sizes[16] = {};
  if (device_number<cl_uint>(id, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS) <= 16 &&
      api().clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes, sizes, nullptr) ==
          CL_SUCCESS)
    for (int axis = 0; axis < 3; ++axis)
      facts.max_local_size[axis] = std::clamp<uint64_t>(sizes[axis], 1, facts.max_local_total);
  facts.subgroup_size = facts.is_cpu ? 1 : step_of(facts);
}

void read_arithmetic(DeviceFacts& facts) {
  const auto single = device_number<cl_device_fp_config>(facts.id, CL_DEVICE_SINGLE_FP_CONFIG);
  facts.has_fma = (single & CL_FP_FMA) != 0;
  facts.keeps_denormals = (single & CL_FP_DENORM) != 0;
  facts.has_rounded_division = (single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  facts.has_fp64 = device_number<cl_device_fp_config>(facts.id, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  facts.has_fp16 = facts.has_extension("cl_khr_fp16");
  facts.has_int64_atomics = facts.has_extension("cl_khr_int64_base_atomics");
}

DeviceFacts read_device(cl_platform_id platform, cl_device_id id) {
  DeviceFacts facts;
  facts.platform = platform;
  facts.id = id;
  facts.platform_name = platform_text(platform, CL_PLATFORM_NAME);
  facts.platform_version = platform_text(platform, CL_PLATFORM_VERSION);
  facts.name = device_text(id, CL_DEVICE_NAME);
  facts.vendor = device_text(id, CL_DEVICE_VENDOR);
  facts.version = device_text(id, CL_DEVICE_VERSION);
  facts.driver = device_text(id, CL_DRIVER_VERSION);
  facts.extensions = device_text(id, CL_DEVICE_EXTENSIONS);
  facts.is_cpu = (device_number<cl_device_type>(id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  facts.is_pocl = facts.platform_name == "Portable Computing Language";
  facts.is_software = facts.is_cpu || facts.is_pocl;
  facts.is_unified = device_number<cl_bool>(id, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
  facts.has_compiler = device_number<cl_bool>(id, CL_DEVICE_COMPILER_AVAILABLE) != 0;
  read_sizes(facts);
  read_arithmetic(facts);
  facts.stable_id = identity(facts);
  return facts;
}

// True if the device can run kernels: it has a compiler and supports 64-bit host pointers.
bool is_usable(const DeviceFacts& facts) {
  return facts.has_compiler && facts.max_buffer_bytes > 0;
}

void add_devices_of(cl_platform_id platform, std::vector<DeviceFacts>& out) {
  cl_uint count = 0;
  if (api().clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) return;
  std::vector<cl_device_id> ids(count);
  if (count == 0 ||
      api().clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr) != CL_SUCCESS)
    return;
  for (cl_device_id id : ids) {
    DeviceFacts facts = read_device(platform, id);
    if (is_usable(facts)) out.push_back(std::move(facts));
  }
}

}  // namespace

bool DeviceFacts::has_extension(std::string_view wanted) const {
  for (size_t at = extensions.find(wanted); at != std::string::npos;
       at = extensions.find(wanted, at + 1)) {
    const size_t end = at + wanted.size();
    if ((at == 0 || extensions[at - 1] == ' ') &&
        (end == extensions.size() || extensions[end] == ' '))
      return true;
  }
  return false;
}

std::vector<DeviceFacts> enumerate_devices(std::string& why) {
  std::vector<DeviceFacts> devices;
  why = api().missing;
  if (!why.empty()) return devices;
  cl_uint count = 0;
  const cl_int code = api().clGetPlatformIDs(0, nullptr, &count);
  if (code != CL_SUCCESS || count == 0) {
    why = "the OpenCL loader knows no platform (" + code_name(code) +
          "): install the OpenCL driver (ICD) of your GPU's vendor, or pocl-opencl-icd, which runs "
          "on the CPU; its .icd file belongs in /etc/OpenCL/vendors, or where OCL_ICD_VENDORS says";
    return devices;
  }
  std::vector<cl_platform_id> platforms(count);
  require_success(api().clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
  for (cl_platform_id platform : platforms) add_devices_of(platform, devices);
  if (devices.empty())
    why =
        std::to_string(count) +
        " OpenCL platform(s) have no device with a compiler: is the card there, and may this user "
        "read and write its device file (group render or video)?";
  std::map<std::string, int> seen;
  for (DeviceFacts& facts : devices)
    if (const int number = seen[facts.stable_id]++) facts.stable_id += "/" + std::to_string(number);
  std::sort(devices.begin(), devices.end(), [](const DeviceFacts& one, const DeviceFacts& other) {
    return one.stable_id < other.stable_id;
  });
  return devices;
}

}  // namespace plugrad::opencl
