// The layers around a device: each rule of validate, each fault, redzone's detections, their
// switches, and direct calls of the plugin's functions without layers.
#include "runtime/checks/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "unit/runtime/fake_plugins.h"
#include "unit/runtime/memory_device.h"

using namespace plugrad;
using namespace plugrad::runtime;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

namespace {

void swallow(std::string_view, void*) {}

class Layers : public testing::Test {
 protected:
  void SetUp() override { set_log_sink(swallow, nullptr); }
  void TearDown() override { set_log_sink(nullptr, nullptr); }
  MemoryDevice memory;
};

// A kernel IR block with buffer parameters of the given numbers of i32 elements and no instruction:
// the part of a block that layers read.
std::vector<std::byte> block_of(const std::string& name, const std::vector<uint64_t>& elem_counts) {
  pgr_ir_header header;
  std::memset(&header, 0, sizeof header);
  header.magic = PGR_IR_MAGIC;
  header.name_offset = sizeof header;
  header.name_bytes = static_cast<uint32_t>(name.size());
  header.param_offset = static_cast<uint32_t>(sizeof header + (name.size() + 7) / 8 * 8);
  header.param_stride = sizeof(pgr_ir_param);
  header.param_count = static_cast<uint32_t>(elem_counts.size());
  for (uint32_t& size : header.local_size) size = 1;
  std::vector<std::byte> out(header.param_offset + elem_counts.size() * sizeof(pgr_ir_param));
  std::memcpy(out.data(), &header, sizeof header);
  std::memcpy(out.data() + sizeof header, name.data(), name.size());
  for (std::size_t i = 0; i < elem_counts.size(); ++i) {
    const pgr_ir_param param = {PGR_PARAM_BUFFER,
                                PGR_DTYPE_I32,
                                PGR_PARAM_READ | PGR_PARAM_NO_ALIAS,
                                0,
                                elem_counts[i],
                                0,
                                0};
    std::memcpy(out.data() + header.param_offset + i * sizeof param, &param, sizeof param);
  }
  return out;
}

}  // namespace

TEST_F(Layers, AreReadInTheirOrderWithTheirKeys) {
  const LayerList list = parse_layers("validate:backtrace=8,faults:alloc=3:device=cpu,redzone");
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].name, "validate");
  EXPECT_EQ(list[0].values.at("backtrace"), "8");
  EXPECT_EQ(list[1].device, "CPU");
  EXPECT_EQ(list[1].values.at("alloc"), "3");
  EXPECT_EQ(list[2].name, "redzone");
  EXPECT_TRUE(parse_layers("").empty());
}

TEST_F(Layers, TheNumberOfADeviceBelongsToItsName) {
  const LayerList list = parse_layers("compare:with=CPU:1:stop=1,record:file=a.rec:device=cpu");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].values.at("with"), "CPU:1");
  EXPECT_EQ(list[0].values.at("stop"), "1");
  EXPECT_EQ(list[1].values.at("file"), "a.rec");
}

TEST_F(Layers, WrongTextIsRefusedWithItsPlaceAndTheNearestName) {
  EXPECT_EQ(
      message_of([] { parse_layers("redzone,valdate"); }),
      "unknown layer \"valdate\" in PLUGRAD_LAYERS\n"
      "       redzone,valdate\n"
      "               ^~~~~~~ did you mean validate? the layers are validate, redzone, faults, "
      "compare, record, skip");
  EXPECT_THAT(message_of([] { parse_layers("faults:aloc=3"); }),
              HasSubstr("unknown key \"aloc\" of the layer faults"));
  EXPECT_THAT(message_of([] { parse_layers("skip:all=1"); }),
              HasSubstr("unknown key \"all\" of the layer skip"));
  EXPECT_THAT(message_of([] { parse_layers("faults:alloc=0"); }),
              HasSubstr("\"alloc=0\" is not valid in PLUGRAD_LAYERS"));
  for (const char* text :
       {",", "validate,", "validate:", "validate:backtrace", "faults:alloc", "faults:alloc=3@",
        "faults:alloc=3@OK", "faults:alloc=3@NO_STATUS", "faults:alloc=3-", "redzone:bytes=much",
        "redzone:device=", "compare:with=", "compare:share=0", "compare:share=101",
        "compare:stop=2", "compare:shrink=-1", "record",
        "record:file=", "record:file=a:mebibytes=x"})
    EXPECT_THAT(message_of([&] { parse_layers(text); }), HasSubstr("PLUGRAD_LAYERS")) << text;
}

TEST_F(Layers, ADeviceWithoutLayersHasThePluginsOwnFunctions) {
  const DeviceTables plain = memory.tables();
  for (const char* layers : {"", "validate:device=OTHER"}) {
    LayeredDevice d(memory, layers);
    EXPECT_EQ(d.tables.handle, plain.handle);
    EXPECT_EQ(d.tables.allocator_api.alloc, plain.allocator_api.alloc);
    EXPECT_EQ(d.tables.runner.launch, plain.runner.launch);
    EXPECT_TRUE(d.stack.empty());
  }
  LayeredDevice d(memory, "validate:device=MEMORY");
  EXPECT_NE(d.tables.runner.launch, plain.runner.launch);
  EXPECT_FALSE(offered(d.tables.allocator_api.fill)) << "what the plugin lacks stays absent";
}

TEST_F(Layers, ARegistryPutsThemAroundTheDevicesThatItOpens) {
  FakePlugins plugins;
  plugins.add("good");
  RegistryOptions options = plugins.options();
  options.layers = "faults:alloc=2@TIMED_OUT";
  Registry registry(std::move(options));
  Device& device = registry.find_device("good");
  EXPECT_NO_THROW(device.allocate(1000));
  EXPECT_THAT(message_of([&] { device.allocate(2000); }),
              AllOf(StartsWith("[alloc 2.0 KiB] GOOD:0: alloc number 2"), HasSubstr("TIMED_OUT")));
  EXPECT_NO_THROW(device.allocate(3000));
}

TEST_F(Layers, ValidateLetsSoundProgramsPass) {
  LayeredDevice d(memory, "validate");
  pgr_buffer* a = d.alloc(128);
  pgr_buffer* b = d.part(a, 64, 64);
  EXPECT_EQ(d.write(a, 0, "hello", 5), "");
  EXPECT_EQ(d.read(a, 123, 5), "");
  pgr_kernel* k = d.kernel("k", block_of("k", {16, 16}));
  pgr_buffer* c = d.alloc(64);
  const std::vector<pgr_buffer*> buffers = {b, c};
  EXPECT_EQ(d.launch(k, d.launch_of(buffers)), "");
  d.unload();
  for (pgr_buffer* buffer : {b, a, c}) d.free(buffer);
  d.free(nullptr);
  d.close();
  EXPECT_THAT(d.findings(), IsEmpty());
  EXPECT_EQ(memory.allocated, 0);
}

TEST_F(Layers, ValidateSeesUseAfterFreeAndDoubleFree) {
  LayeredDevice d(memory, "validate");
  pgr_buffer* a = d.alloc(100);
  d.free(a);
  EXPECT_EQ(d.read(a, 0, 1), "validate: copy_out: src was freed already: buffer 1 (100 bytes)");
  EXPECT_EQ(d.status, PGR_STATUS_INVALID_ARGUMENT);
  d.free(a);
  EXPECT_EQ(memory.allocated, 0) << "the device sees one free";
  EXPECT_THAT(d.findings(),
              ElementsAre(HasSubstr("copy_out: src was freed already"),
                          "free: the buffer was freed already: buffer 1 (100 bytes)"));
}

TEST_F(Layers, ValidateSeesHandlesOfAnotherDeviceAndOfNone) {
  MemoryDevice other_memory;
  LayeredDevice d(memory, "validate"), other(other_memory, "validate", "MEMORY:1");
  pgr_buffer* theirs = other.alloc(8);
  EXPECT_THAT(d.read(theirs, 0, 1), HasSubstr("src is of MEMORY:1, not of MEMORY:0"));
  int nothing = 0;
  EXPECT_THAT(d.read(reinterpret_cast<pgr_buffer*>(&nothing), 0, 1),
              HasSubstr("src was never made by this device"));
  EXPECT_THAT(d.read(nullptr, 0, 1), HasSubstr("src is NULL"));
  other.free(theirs);
  EXPECT_EQ(memory.calls, 0);
}

TEST_F(Layers, ValidateSeesWrongArguments) {
  LayeredDevice d(memory, "validate");
  pgr_buffer* a = d.alloc(100);
  EXPECT_THAT(d.write(a, 98, "abc", 3), HasSubstr("3 bytes at 98 of dst, buffer 1 (100 bytes)"));
  EXPECT_THAT(d.write(a, UINT64_MAX, "abc", 3), HasSubstr("3 bytes at"));
  EXPECT_THAT(d.write(a, 0, nullptr, 3), HasSubstr("src is NULL"));
  EXPECT_EQ(d.part(a, 10, 5), nullptr);
  EXPECT_THAT(d.error.message(), HasSubstr("an offset of 10 is no multiple of buffer_align_bytes"));
  pgr_alloc_desc desc;
  PGR_INIT(desc, ALLOC_DESC);
  desc.align_bytes = 48;
  pgr_buffer* out = nullptr;
  EXPECT_THAT(d.said(d.tables.allocator_api.alloc(d.tables.handle, &desc, &out, d.error.get())),
              HasSubstr("48 bytes is no power of two"));
  EXPECT_THAT(
      d.said(d.tables.allocator_api.copy(d.tables.handle, nullptr, a, 10, a, 0, 20, d.error.get())),
      HasSubstr("20 bytes at 0 and at 10 of one buffer overlap"));
  EXPECT_THAT(d.said(d.tables.allocator_api.unmap(d.tables.handle, a, d.error.get())),
              HasSubstr("is not mapped"));
  EXPECT_EQ(memory.calls, 0) << "no broken call reached the device";
  d.free(a);
}

TEST_F(Layers, ValidateHoldsLaunchesToTheKernelsParametersAndTheDevicesLimits) {
  LayeredDevice d(memory, "validate");
  pgr_kernel* k = d.kernel("k", block_of("k", {16, 16}));
  pgr_buffer *a = d.alloc(64), *b = d.alloc(64), *small = d.alloc(60);
  pgr_buffer* part = d.part(a, 0, 64);
  const auto with = [&](const std::vector<pgr_buffer*>& buffers, auto&& change) {
    pgr_launch_desc desc = d.launch_of(buffers);
    change(desc);
    return d.launch(k, desc);
  };
  const auto nothing = [](pgr_launch_desc&) {};
  EXPECT_EQ(with({a, b}, nothing), "");
  EXPECT_THAT(with({a}, nothing), HasSubstr("k: 1 buffers; the kernel has 2 buffer parameters"));
  EXPECT_THAT(with({a, small}, nothing), HasSubstr("buffer 1 has 60 bytes; the kernel reaches 64"));
  EXPECT_THAT(with({a, a}, nothing), HasSubstr("buffers 0 and 1 overlap"));
  EXPECT_THAT(with({a, part}, nothing), HasSubstr("buffers 0 and 1 overlap"));
  EXPECT_THAT(with({a, b}, [](auto& desc) { desc.local_size[1] = 9; }),
              HasSubstr("a local size of 9 along axis 1; the device allows 8"));
  EXPECT_THAT(with({a, b}, [](auto& desc) { desc.local_size[0] = 2; }),
              HasSubstr("the kernel was made for 1 x 1 x 1"));
  EXPECT_THAT(with({a, b}, [](auto& desc) { desc.struct_id = 3; }), HasSubstr("PGR_INIT"));
  EXPECT_THAT(with({a, nullptr}, nothing), HasSubstr("buffer 1 is NULL"));
  d.unload();
  EXPECT_THAT(with({a, b}, nothing), HasSubstr("was unloaded already: kernel k"));
  EXPECT_EQ(memory.calls, 1);
  for (pgr_buffer* buffer : {part, a, b, small}) d.free(buffer);
}

TEST_F(Layers, ValidateListsWhatIsLeftWithTheCallThatMadeIt) {
  LayeredDevice d(memory, "validate:backtrace=6");
  pgr_buffer* a = d.alloc(100);
  pgr_kernel* k = d.kernel("sum");
  const std::vector<pgr_buffer*> buffers = {a};
  EXPECT_EQ(d.launch(k, d.launch_of(buffers)), "");
  d.close();
  EXPECT_THAT(
      d.findings(),
      ElementsAre(AllOf(HasSubstr("not everything is gone: alloc made buffer 1 (100 bytes), "
                                  "last used by kernel sum"),
                        HasSubstr("\n    ")),
                  HasSubstr("load made program 2 (6 bytes) with kernel sum")));
  d.unload();
  d.free(a);
}

TEST_F(Layers, ValidateSeesWhatThePluginAnswersWrongly) {
  DeviceTables tables = memory.tables();
  tables.allocator_api.alloc = [](pgr_device*, const pgr_alloc_desc*, pgr_buffer**, pgr_error*) {
    return PGR_STATUS_OK + 0;  // and no buffer
  };
  tables.allocator_api.copy_out = [](pgr_device*, pgr_queue*, void*, pgr_buffer*, uint64_t,
                                     uint64_t, pgr_error*) { return 4711; };
  const LayerStack stack = wrap(tables, parse_layers("validate"), "MEMORY", "MEMORY:0");
  pgr_alloc_desc desc;
  PGR_INIT(desc, ALLOC_DESC);
  pgr_buffer* out = nullptr;
  EXPECT_EQ(tables.allocator_api.alloc(tables.handle, &desc, &out, nullptr), PGR_STATUS_INTERNAL);
  EXPECT_THAT(stack[0]->findings(), ElementsAre("alloc answered OK and gave no buffer"));
}

TEST_F(Layers, RedzoneNamesBufferOffsetAndKernelOfAWriteBehindTheEnd) {
  LayeredDevice d(memory, "redzone");
  pgr_buffer* a = d.alloc(100);
  pgr_kernel* k = d.kernel("spill");
  memory.on_launch = [](const MemoryDevice::Bytes& buffers) { buffers[0][103] = 7; };
  const std::vector<pgr_buffer*> buffers = {a};
  EXPECT_EQ(d.launch(k, d.launch_of(buffers)), "");
  const std::string expected =
      "buffer 1 (100 bytes) was written behind its end: the first bad byte is at offset 103 and "
      "holds 0x07; the last kernel launched with it is spill";
  EXPECT_EQ(d.synchronize(), "redzone: " + expected);
  EXPECT_EQ(d.synchronize(), "") << "said once";
  EXPECT_EQ(d.launch(k, d.launch_of(buffers)), "");
  EXPECT_EQ(d.read(a, 0, 1), "redzone: " + expected);
  EXPECT_EQ(d.launch(k, d.launch_of(buffers)), "");
  d.free(a);
  EXPECT_THAT(d.findings(), ElementsAre(expected, expected, expected));
  d.unload();
  EXPECT_EQ(memory.allocated, 0);
}

TEST_F(Layers, RedzoneSeesWritesInFrontAndThroughSubBuffers) {
  LayeredDevice d(memory, "validate,redzone:bytes=64");
  pgr_buffer* a = d.alloc(128);
  pgr_buffer* part = d.part(a, 64, 64);
  pgr_kernel* k = d.kernel("back");
  memory.on_launch = [](const MemoryDevice::Bytes& buffers) { buffers[0][-65] = 1; };
  const std::vector<pgr_buffer*> buffers = {part};
  EXPECT_EQ(d.launch(k, d.launch_of(buffers)), "");
  EXPECT_THAT(d.synchronize(), HasSubstr("before its begin: the first bad byte is at offset -1 and "
                                         "holds 0x01; the last kernel launched with it is back"));
  EXPECT_THAT(d.read(part, 0, 65), HasSubstr("65 bytes at 0 of src"));
  d.unload();
  d.free(part);
  d.free(a);
  d.close();
  EXPECT_EQ(d.findings().size(), 2u);
  EXPECT_EQ(memory.allocated, 0);
}

TEST_F(Layers, RedzoneWithoutSubBuffersGuardsTheEnd) {
  DeviceTables tables = memory.tables();
  tables.allocator_api.sub_buffer = nullptr;
  fill_stubs(tables.allocator_api);
  const LayerStack stack = wrap(tables, parse_layers("redzone"), "MEMORY", "MEMORY:0");
  pgr_alloc_desc desc;
  PGR_INIT(desc, ALLOC_DESC);
  desc.size_bytes = 10;
  pgr_buffer* out = nullptr;
  ASSERT_EQ(tables.allocator_api.alloc(tables.handle, &desc, &out, nullptr), PGR_STATUS_OK);
  char bytes[11] = {};
  EXPECT_EQ(tables.allocator_api.copy_in(tables.handle, nullptr, out, 0, bytes, 11, nullptr),
            PGR_STATUS_INVALID_ARGUMENT);
  void* mapped = nullptr;
  tables.allocator_api.map(tables.handle, out, &mapped, nullptr);
  static_cast<unsigned char*>(mapped)[10] = 0;
  tables.allocator_api.free(tables.handle, out);
  EXPECT_THAT(stack[0]->findings(),
              ElementsAre(HasSubstr("copy_in: 11 bytes at 0"), HasSubstr("offset 10")));
}

TEST_F(Layers, FaultsFailTheCallTheyName) {
  LayeredDevice d(memory, "faults:alloc=2:copy=2+@TIMED_OUT:launch=1@4711:load=2@THROW");
  pgr_buffer* a = d.alloc(8);
  EXPECT_EQ(d.alloc(8), nullptr);
  EXPECT_EQ(d.status, PGR_STATUS_OUT_OF_MEMORY);
  pgr_buffer* b = d.alloc(8);
  EXPECT_EQ(d.status, PGR_STATUS_OK);
  EXPECT_EQ(d.write(a, 0, "a", 1), "");
  for (int i = 0; i < 2; ++i) {
    d.read(a, 0, 1);
    EXPECT_EQ(d.status, PGR_STATUS_TIMED_OUT);
  }
  pgr_kernel* k = d.kernel("k");
  const std::vector<pgr_buffer*> buffers = {a};
  d.launch(k, d.launch_of(buffers));
  EXPECT_EQ(d.status, 4711);
  EXPECT_EQ(d.launch(k, d.launch_of(buffers)), "");
  pgr_program* first = d.program;
  EXPECT_THROW(d.kernel("k"), std::runtime_error);
  d.tables.runner.unload(d.tables.handle, first);
  d.free(a);
  d.free(b);
}

TEST_F(Layers, FaultsLoseTheDeviceForEver) {
  LayeredDevice d(memory, "faults:lost=3");
  pgr_buffer* a = d.alloc(8);
  EXPECT_EQ(d.write(a, 0, "a", 1), "");
  for (int i = 0; i < 3; ++i) {
    d.read(a, 0, 1);
    EXPECT_EQ(d.status, PGR_STATUS_DEVICE_LOST);
    d.synchronize();
    EXPECT_EQ(d.status, PGR_STATUS_DEVICE_LOST);
  }
  d.free(a);
  EXPECT_EQ(memory.allocated, 0) << "handles can still be destroyed";
}
