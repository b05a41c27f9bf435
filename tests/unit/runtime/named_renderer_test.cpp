// A plugin without a renderer whose manifest names a dialect of the SDK.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/settings.h"
#include "plugrad/sdk/ir_builder.h"
#include "unit/runtime/fake_plugins.h"

using namespace plugrad;
using namespace plugrad::runtime;
using testing::HasSubstr;

namespace {

std::vector<std::byte> fill_with_seven() {
  sdk::IrBuilder b("seven");
  b.set_groups(8);
  auto out = b.buffer(PGR_DTYPE_I32, 8, PGR_PARAM_WRITE);
  b.store(out, b.group_id(0), b.constant_int(PGR_DTYPE_I32, 7));
  return b.finish();
}

std::string rendered(const std::string& keys) {
  FakePlugins plugins;
  plugins.add("minimal", keys);
  TemporaryDirectory cache;
  SettingScope scope([&](Settings& s) { s.cache_dir = cache.path(); });
  Registry registry(plugins.options());
  return message_of([&] {
    throw std::runtime_error(
        registry.find_device("minimal").compile(fill_with_seven(), "seven")->source());
  });
}

}  // namespace

TEST(NamedRenderer, TheDialectOfTheManifestIsRendered) {
  std::string source = rendered(R"(, "renderer": "c")");
  EXPECT_THAT(source, HasSubstr("seven"));
  EXPECT_THAT(source, HasSubstr("= 7;"));
  EXPECT_EQ(rendered(""), "") << "without one the compiler takes kernel IR itself";
}

TEST(NamedRenderer, IsNoClaimOfThePlugin) {
  FakePlugins plugins;
  plugins.add("minimal", R"(, "renderer": "c")");
  Registry registry(plugins.options());
  EXPECT_THAT(registry.find_device("minimal").claims(),
              testing::Not(testing::Contains("pgr.renderer")));
}

TEST(NamedRenderer, WhatItRefusesIsNamed) {
  EXPECT_THAT(rendered(R"(, "renderer": "cobol")"),
              HasSubstr("[render] MINIMAL:0: no dialect \"cobol\"; there is \"c\""));
  EXPECT_THAT(rendered(R"(, "renderer": "c", "renderer_options": {"colour": "red"})"),
              HasSubstr("the renderer has no option \"colour\""));
}
