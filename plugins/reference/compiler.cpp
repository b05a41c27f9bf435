// The "binary" is the kernel IR block itself: compiling validates it against the rules and the
// claims.
#include "plugin.h"
#include "plugrad/sdk/guard.h"

namespace plugrad::reference {
namespace {

pgr_status compile(pgr_device* device, const pgr_compile_desc* desc, pgr_blob* out_binary,
                   pgr_blob* out_log, pgr_error* error) {
  return sdk::guard(error, [&] {
    const pgr_compile_desc own = sdk::read(desc);
    const sdk::IrView ir = sdk::decode_ir(own.input, own.input_bytes);
    if (device) require_claimed(device->claims, ir);
    sdk::give_blob(out_binary, std::string(static_cast<const char*>(own.input), own.input_bytes));
    sdk::give_blob(out_log, "");
  });
}

pgr_status cache_identity(pgr_device* device, pgr_blob* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    std::string text = "reference kernel_ir " + std::to_string(PGR_IR_VERSION);
    if (device)
      text += " without " + device->claims.withdrawn + (device->claims.is_gpu ? " gpu" : "");
    sdk::give_blob(out, text);
  });
}

pgr_status validate(pgr_device*, const void* binary, uint64_t size, uint32_t* out,
                    pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    const pgr_status status = sdk::guard(nullptr, [&] { sdk::decode_ir(binary, size); });
    *out = status == PGR_STATUS_OK ? PGR_BINARY_GOOD : PGR_BINARY_FOREIGN;
  });
}

pgr_status disassemble(pgr_device*, const void* binary, uint64_t size, pgr_blob* out,
                       pgr_error* error) {
  return sdk::guard(error,
                    [&] { sdk::give_blob(out, sdk::print_ir(sdk::decode_ir(binary, size))); });
}

}  // namespace

const pgr_compiler_api* compiler_table() {
  static const pgr_compiler_api table = [] {
    pgr_compiler_api made;
    PGR_INIT(made, COMPILER_API);
    made.compile = compile;
    made.cache_identity = cache_identity;
    made.validate = validate;
    made.disassemble = disassemble;
    return made;
  }();
  return &table;
}

}  // namespace plugrad::reference
