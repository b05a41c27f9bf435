// Compiles source with the driver, and stores the driver's binary with the parameters of each
// kernel.
#include "compiler.h"

#include <cstring>

#include "driver/pocl.h"
#include "plugrad/sdk/options.h"

namespace plugrad::opencl {
namespace {

// Increment when this plugin builds the same source differently.
#define PLUGRAD_OPENCL_REVISION "4"

std::string build_options(const DeviceFacts& facts) {
  std::string options = "-cl-std=CL1.2 -cl-kernel-arg-info -w";
  if (facts.has_rounded_division) options += " -cl-fp32-correctly-rounded-divide-sqrt";
  return options;
}

// The source allows contraction unless this macro is defined; the compile option decides.
std::string with_contraction(std::string source, bool is_allowed) {
  return is_allowed ? source : "#define PLUGRAD_CONTRACT_OFF\n" + source;
}

std::string log_of(const pgr_device& device, cl_program program) {
  size_t size = 0;
  const cl_device_id id = device.facts.id;
  if (api().clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) !=
      CL_SUCCESS)
    return {};
  std::string log(size, '\0');
  api().clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  log.resize(std::strlen(log.c_str()));
  return log;
}

std::string code_of(pgr_device& device, cl_program program) {
  size_t size = 0;
  device.check(
      api().clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr),
      "CL_PROGRAM_BINARY_SIZES");
  std::string code(size, '\0');
  char* to = code.data();
  device.check(api().clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof to, &to, nullptr),
               "CL_PROGRAM_BINARIES");
  return code;
}

std::string arg_type(cl_kernel kernel, cl_uint index) {
  char text[64] = {};
  if (api().clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_NAME, sizeof text - 1, text,
                               nullptr) != CL_SUCCESS)
    return {};
  return text;
}

// Size of a scalar parameter in bytes; 0 for a buffer.
uint8_t param_bytes(pgr_device& device, cl_kernel kernel, cl_uint index) {
  cl_kernel_arg_address_qualifier space = 0;
  device.check(api().clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER,
                                        sizeof space, &space, nullptr),
               "CL_KERNEL_ARG_ADDRESS_QUALIFIER");
  if (space != CL_KERNEL_ARG_ADDRESS_PRIVATE) return 0;
  static constexpr struct {
    const char* name;
    uint8_t bytes;
  } kScalars[] = {{"char", 1}, {"uchar", 1}, {"short", 2}, {"ushort", 2}, {"int", 4},
                  {"uint", 4}, {"long", 8},  {"ulong", 8}, {"float", 4},  {"double", 8}};
  const std::string type = arg_type(kernel, index);
  for (const auto& scalar : kScalars)
    if (type == scalar.name) return scalar.bytes;
  throw sdk::StatusError(PGR_STATUS_COMPILE_FAILED,
                         "parameter " + std::to_string(index) + " is a " + type +
                             "; kernels take buffers and scalars of OpenCL C");
}

KernelShape shape_of(pgr_device& device, cl_kernel kernel) {
  KernelShape shape;
  char name[1024] = {};
  cl_uint count = 0;
  device.check(
      api().clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name - 1, name, nullptr),
      "CL_KERNEL_FUNCTION_NAME");
  device.check(api().clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr),
               "CL_KERNEL_NUM_ARGS");
  shape.name = name;
  if (shape.name.starts_with(kKernelPrefix)) shape.name.erase(0, kKernelPrefix.size());
  for (cl_uint i = 0; i < count; ++i) shape.param_bytes.push_back(param_bytes(device, kernel, i));
  return shape;
}

std::vector<KernelShape> shapes_of(pgr_device& device, cl_program program) {
  cl_uint count = 0;
  device.check(api().clCreateKernelsInProgram(program, 0, nullptr, &count),
               "clCreateKernelsInProgram");
  std::vector<cl_kernel> kernels(count);
  if (count > 0)
    device.check(api().clCreateKernelsInProgram(program, count, kernels.data(), nullptr),
                 "clCreateKernelsInProgram");
  std::vector<KernelShape> shapes;
  try {
    for (cl_kernel kernel : kernels) shapes.push_back(shape_of(device, kernel));
  } catch (...) {
    for (cl_kernel kernel : kernels) api().clReleaseKernel(kernel);
    throw;
  }
  for (cl_kernel kernel : kernels) api().clReleaseKernel(kernel);
  return shapes;
}

// `out` owns the driver's program, also after a failed build.
void build_source(pgr_device& device, const std::string& source, const std::string& options,
                  ProgramOwner& out, std::string& log) {
  const char* text = source.c_str();
  const size_t size = source.size();
  cl_int code = CL_SUCCESS;
  out.handle = api().clCreateProgramWithSource(device.context, 1, &text, &size, &code);
  device.check(code, "clCreateProgramWithSource");
  build(device, out.handle, options, &log);
}

// PoCL's binary contains each kernel compiled for any group size, and the first launch recompiles
// the kernel for its group. Storing the source as the binary avoids one of the two compilations;
// PoCL has its own disk cache for sources.
Binary source_as_binary(pgr_device& device, std::string source, std::string options,
                        std::string& log) {
  ProgramOwner program;
  take_program(device, source, options, program, log);
  return {shapes_of(device, program.handle), std::move(source), std::move(options)};
}

// Omits PoCL's own header if the build succeeds without it; otherwise builds with it, so that the
// log has correct line numbers.
Binary build_for_pocl(pgr_device& device, const std::string& source, std::string& log) {
  const std::string options = build_options(device.facts);
  try {
    std::string ignored;
    return source_as_binary(device, pocl_declarations(source) + source,
                            options + kPoclWithoutHeader, ignored);
  } catch (const sdk::StatusError& failure) {
    if (failure.status() != PGR_STATUS_COMPILE_FAILED) throw;
    return source_as_binary(device, source, options, log);
  }
}

Binary build_for_driver(pgr_device& device, const std::string& source, std::string& log) {
  ProgramOwner program;
  build_source(device, source, build_options(device.facts), program, log);
  return {shapes_of(device, program.handle), code_of(device, program.handle), ""};
}

std::string compile_source(pgr_device& device, const pgr_compile_desc& desc, std::string& log) {
  const std::string source = with_contraction(
      {static_cast<const char*>(desc.input), desc.input_bytes}, desc.contract != PGR_CONTRACT_OFF);
  const Binary binary = device.facts.is_pocl ? build_for_pocl(device, source, log)
                                             : build_for_driver(device, source, log);
  return wrap_binary(binary, identity_text(device.facts));
}

pgr_status compile(pgr_device* device, const pgr_compile_desc* desc, pgr_blob* out_binary,
                   pgr_blob* out_log, pgr_error* error) {
  std::string log;
  const pgr_status status = sdk::guard(error, [&] {
    const pgr_compile_desc own = sdk::read(desc);
    sdk::require(device != nullptr, PGR_STATUS_INVALID_ARGUMENT,
                 "an OpenCL driver compiles for a device: device is NULL");
    sdk::require(own.input != nullptr, PGR_STATUS_INVALID_ARGUMENT, "input is NULL");
    sdk::require(own.option_count == 0, PGR_STATUS_INVALID_ARGUMENT,
                 "OPENCL's compiler takes no options; it compiles for its device");
    sdk::give_blob(out_binary, compile_source(*device, own, log));
  });
  sdk::guard(nullptr, [&] { sdk::give_blob(out_log, log); });
  return status;
}

pgr_status cache_identity(pgr_device* device, pgr_blob* out, pgr_error* error) {
  return sdk::guard(error, [&] { sdk::give_blob(out, identity_text(device->facts)); });
}

pgr_status validate(pgr_device* device, const void* bytes, uint64_t size, uint32_t* out,
                    pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    const BinaryState state = unwrap_binary({static_cast<const char*>(bytes), size},
                                            identity_text(device->facts), nullptr);
    *out = state == BinaryState::Good      ? PGR_BINARY_GOOD
           : state == BinaryState::Foreign ? PGR_BINARY_FOREIGN
                                           : PGR_BINARY_RECOMPILE;
  });
}

}  // namespace

std::string identity_text(const DeviceFacts& facts) {
  return "opencl revision " PLUGRAD_OPENCL_REVISION " platform " + facts.platform_name + ", " +
         facts.platform_version + " device " + facts.name + ", " + facts.version + " driver " +
         facts.driver + " options " + build_options(facts);
}

Binary require_binary(std::string_view bytes, const DeviceFacts& facts) {
  Binary binary;
  const BinaryState state = unwrap_binary(bytes, identity_text(facts), &binary);
  sdk::require(
      state != BinaryState::Damaged, PGR_STATUS_BAD_BINARY,
      "a binary of " + std::to_string(bytes.size()) + " bytes is damaged, or not of opencl");
  sdk::require(state != BinaryState::Foreign, PGR_STATUS_BAD_BINARY,
               "the binary was compiled by another driver or for another device than " +
                   facts.name + ", driver " + facts.driver + ": compile it again");
  return binary;
}

void build(pgr_device& device, cl_program program, const std::string& options, std::string* log) {
  const cl_int code =
      api().clBuildProgram(program, 1, &device.facts.id, options.c_str(), nullptr, nullptr);
  const std::string text = log_of(device, program);
  if (log) *log = text;
  device.check(code, "clBuildProgram" + (code == CL_SUCCESS || text.empty() ? "" : ": " + text));
}

void take_program(pgr_device& device, const std::string& source, const std::string& options,
                  ProgramOwner& out, std::string& log) {
  out.handle = device.recent_programs.find(source, options);
  if (out.handle) return;
  build_source(device, source, options, out, log);
  device.recent_programs.keep(source, options, out.handle);
}

const pgr_compiler_api* compiler_table() {
  static const pgr_compiler_api table = [] {
    pgr_compiler_api made;
    PGR_INIT(made, COMPILER_API);
    made.compile = compile;
    made.cache_identity = cache_identity;
    made.validate = validate;
    return made;
  }();
  return &table;
}

}  // namespace plugrad::opencl
