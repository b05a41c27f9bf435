// The renderer as a "pgr.renderer". `device` is ignored. Options: "dialect", default "c".
#include "plugrad/plugin_api/compiler.h"
#include "plugrad/sdk/guard.h"
#include "plugrad/sdk/ir_view.h"
#include "plugrad/sdk/options.h"
#include "render/writer/kernel_writer.h"

namespace plugrad::render {
namespace {

const Dialect& find_dialect(std::string_view name) {
  std::string there;
  for (const Dialect* dialect : kDialects) {
    if (dialect->name == name) return *dialect;
    there += (there.empty() ? "\"" : ", \"") + std::string(dialect->name) + "\"";
  }
  throw sdk::StatusError(PGR_STATUS_UNSUPPORTED,
                         "no dialect \"" + std::string(name) + "\"; there is " + there);
}

const Dialect& dialect_of(const pgr_render_desc& desc) {
  const Dialect* dialect = kDialects.front();
  for (const auto& [key, value] :
       sdk::read_options(desc.options, desc.option_count, desc.option_stride)) {
    sdk::require(key == "dialect", PGR_STATUS_INVALID_ARGUMENT,
                 "the renderer has no option \"" + std::string(key) + "\"; it has \"dialect\"");
    dialect = &find_dialect(value);
  }
  return *dialect;
}

pgr_status render(pgr_device*, const pgr_render_desc* desc, pgr_blob* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    const pgr_render_desc own = sdk::read(desc);
    const Dialect& dialect = dialect_of(own);
    const sdk::IrView ir = sdk::decode_ir(own.ir, own.ir_bytes);
    sdk::give_blob(out, KernelWriter(ir, dialect).write());
  });
}

pgr_renderer_api make_table() {
  pgr_renderer_api table;
  PGR_INIT(table, RENDERER_API);
  table.render = render;
  return table;
}

}  // namespace
}  // namespace plugrad::render

extern "C" PGR_EXPORT pgr_status pgr_component_entry_v1(const pgr_host_api*,
                                                        const pgr_string* interface_name, uint32_t,
                                                        const void** out_table, pgr_error* error) {
  using namespace plugrad;
  return sdk::guard(error, [&] {
    sdk::require(sdk::to_view(interface_name) == "pgr.renderer", PGR_STATUS_UNSUPPORTED,
                 "plugrad_render offers pgr.renderer, not \"" +
                     std::string(sdk::to_view(interface_name)) + "\"");
    static const pgr_renderer_api table = render::make_table();
    *out_table = &table;
  });
}
