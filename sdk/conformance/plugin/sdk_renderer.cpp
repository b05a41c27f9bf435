#include "conformance/plugin/sdk_renderer.h"

#include "conformance/plugin/calls.h"
#include "plugrad/sdk/options.h"

namespace plugrad::conformance {
namespace {

// Process-wide, because the table's functions have no context argument.
const pgr_renderer_api* component = nullptr;
std::map<std::string, std::string> dialect_options;

pgr_status render_by_component(pgr_device*, const pgr_render_desc* desc, pgr_blob* out,
                               pgr_error* error) {
  pgr_status status = PGR_STATUS_OK;
  const pgr_status outer = sdk::guard(error, [&] {
    pgr_render_desc own = sdk::read(desc);
    own.struct_size = sizeof own;
    std::map<std::string, std::string> all = dialect_options;
    for (const auto& [key, value] :
         sdk::read_options(own.options, own.option_count, own.option_stride))
      all[std::string(key)] = value;
    const std::vector<pgr_option> options = make_options(all);
    own.options = options.data();
    own.option_count = static_cast<uint32_t>(options.size());
    own.option_stride = sizeof(pgr_option);
    status = component->render(nullptr, &own, out, error);
  });
  return outer == PGR_STATUS_OK ? status : outer;
}

}  // namespace

const pgr_renderer_api* sdk_renderer(const pgr_host_api& host, const ManifestFacts& manifest) {
  static const pgr_renderer_api table = [] {
    pgr_renderer_api made;
    PGR_INIT(made, RENDERER_API);
    made.render = render_by_component;
    return made;
  }();
  if (component) return &table;
  const pgr_string library = sdk::to_pgr("plugrad_render"), name = sdk::to_pgr("pgr.renderer");
  const void* opened = nullptr;
  expect_ok("opening the renderer that the manifest names", [&](pgr_error* error) {
    return host.open_component(host.host, &library, &name, PGR_API_MINOR, &opened, error);
  });
  dialect_options = manifest.renderer_options;
  dialect_options["dialect"] = manifest.renderer;
  component = static_cast<const pgr_renderer_api*>(opened);
  return &table;
}

}  // namespace plugrad::conformance
