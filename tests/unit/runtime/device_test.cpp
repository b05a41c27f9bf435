// Memory, kernels and launches of a device, through a fake plugin.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/file.h"
#include "base/hash.h"
#include "base/settings.h"
#include "base/storage/database.h"
#include "base/storage/disk_cache.h"
#include "plugrad/error.h"
#include "runtime/memory/allocator.h"
#include "unit/runtime/fake_plugins.h"

using namespace plugrad;
using namespace plugrad::runtime;
using testing::HasSubstr;

namespace {

class FakeDevice : public testing::Test {
 protected:
  void SetUp() override { plugins.add("good"); }
  Device& device() { return registry().find_device("good"); }
  Registry& registry() {
    if (!made) made = std::make_unique<Registry>(plugins.options());
    return *made;
  }
  // Keys of the kernels in the disk cache.
  std::vector<std::string> entries() {
    std::vector<std::string> keys;
    database("SELECT key FROM entry", [&](const Statement& row) {
      const auto key = row.blob(0);
      keys.emplace_back(reinterpret_cast<const char*>(key.data()), key.size());
    });
    return keys;
  }
  void database(const char* sql, const std::function<void(const Statement&)>& row = {}) {
    sqlite3* connection = nullptr;
    const std::string path = cache.path() + "/kernels/cache.db";
    if (!std::filesystem::exists(path)) return;
    ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
    {
      Statement statement(connection, sql);
      while (statement.step()) row(statement);
    }
    sqlite3_close(connection);
  }
  FakePlugins plugins;
  TemporaryDirectory cache;
  SettingScope scope{[this](Settings& s) { s.cache_dir = cache.path(); }};
  std::unique_ptr<Registry> made;
};

std::span<const std::byte> ir(std::string_view text) {
  return as_bytes(text);
}

}  // namespace

TEST(SizeClass, WastesAtMostASixteenth) {
  EXPECT_EQ(size_class(0), 256u);
  EXPECT_EQ(size_class(256), 256u);
  for (std::uint64_t size = 257; size < (std::uint64_t{1} << 40); size = size * 5 / 4 + 1) {
    EXPECT_GE(size_class(size), size);
    EXPECT_LE(size_class(size), size + size / 16 + 1);
    EXPECT_EQ(size_class(size_class(size)), size_class(size));
  }
}

TEST_F(FakeDevice, ShutdownFreesInOrderAndEndsTheUseOfWhatLivesOn) {
  const std::string path = plugins.add("ending");
  Device& d = registry().find_device("ending");
  auto buffer = d.allocate(1000);
  d.allocate(2000);  // kept by the allocator
  auto kernel = d.compile(ir("k"), "k");
  registry().shut_down();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  EXPECT_EQ(*static_cast<int*>(dlsym(library, "fake_ended_clean")), 1);
  EXPECT_THAT(message_of([&] { buffer->copy_in("x", 1); }),
              "[copy_in] ENDING:0 was shut down, and what was on it is gone: read results before "
              "shutdown()");
  EXPECT_THAT(message_of([&] { d.allocate(1); }), HasSubstr("was shut down"));
  EXPECT_THAT(message_of([&] { registry().find_device("ending"); }),
              HasSubstr("plugrad was shut down"));
  EXPECT_NO_THROW(registry().shut_down());
  buffer.reset();
  kernel.reset();
}

TEST_F(FakeDevice, BuffersHoldWhatIsCopiedIn) {
  auto a = device().allocate(5);
  a->copy_in("hello", 5);
  a->copy_in("J", 1, 0);
  char out[6] = {};
  a->copy_out(out, 4, 1);
  EXPECT_STREQ(out, "ello");
  EXPECT_THROW(a->copy_in("x", 1, 5), Error);
  EXPECT_THROW(a->copy_out(out, 6), Error);
  auto b = registry().find_device("good:1").allocate(5);
  copy(*b, 1, *a, 0, 4);  // to another device, through the host
  b->copy_out(out, 4, 1);
  EXPECT_EQ(std::string(out, 4), "Jell");
  std::uint16_t pattern = 0x4142;
  auto c = device().allocate(4);
  c->fill(std::as_bytes(std::span(&pattern, 1)));  // the fake has no fill: emulated
  c->copy_out(out, 4);
  EXPECT_EQ(std::string(out, 4), "BABA");
  EXPECT_NO_THROW(device().allocate(0)->copy_in(nullptr, 0));
}

TEST_F(FakeDevice, FreedBuffersAreReusedBySizeClassAndFlags) {
  pgr_buffer* handle = device().allocate(1000)->handle();
  EXPECT_EQ(device().memory_stats().cached_bytes, size_class(1000));
  EXPECT_EQ(device().allocate(1001)->handle(), handle);
  EXPECT_NE(device().allocate(1000, PGR_ALLOC_HOST_VISIBLE)->handle(), handle);
  EXPECT_NE(device().allocate(5000)->handle(), handle);
  EXPECT_EQ(device().memory_stats().reuses, 1u);
  EXPECT_EQ(device().memory_stats().allocations, 3u);
  EXPECT_EQ(device().memory_stats().used_bytes, 0u);
  EXPECT_EQ(device().memory_stats().peak_bytes, size_class(5000));
  unsigned char first = 1;
  device().allocate(1000, PGR_ALLOC_ZERO)->copy_out(&first, 1);
  EXPECT_EQ(first, 0) << "a reused buffer is not zero";
  device().flush_allocator_cache();
  EXPECT_EQ(device().memory_stats().cached_bytes, 0u);
}

TEST_F(FakeDevice, MemoryThatIsOnlyKeptIsGivenBackWhenTheDeviceRunsOut) {
  for (int i = 0; i < 3; ++i) device().allocate(16 << 20);  // three sizes would not fit together
  device().allocate(20 << 20);
  device().allocate(30 << 20);
  auto big = device().allocate(60 << 20);
  std::string message = message_of([&] { device().allocate(8 << 20); });
  EXPECT_EQ(message,
            "[alloc] GOOD:0 is out of memory: 8.0 MiB wanted, 60.0 MiB of 64.0 MiB in use: the "
            "fake's 64 MiB "
            "are used up; free "
            "tensors or use smaller batches");
  EXPECT_EQ(device().memory_stats().used_bytes, size_class(60 << 20))
      << "a failed request is not counted";
  big.reset();
  EXPECT_NO_THROW(device().allocate(8 << 20));
}

TEST_F(FakeDevice, TheMemoryLimitIsKeptAndNamed) {
  SettingScope limited([](Settings& s) { s.memory_limit_bytes = 1 << 20; });
  auto half = device().allocate(512 << 10);
  EXPECT_THAT(
      message_of([&] { device().allocate(768 << 10); }),
      HasSubstr(
          "768.0 KiB wanted, 512.0 KiB of 64.0 MiB in use, limit 1.0 MiB (PLUGRAD_MEMORY_LIMIT)"));
  EXPECT_NO_THROW(device().allocate(512 << 10));
  half.reset();
  EXPECT_NO_THROW(device().allocate(768 << 10)) << "kept buffers make room";
}

TEST_F(FakeDevice, TheReclaimerIsAskedBeforeAnAllocationFails) {
  SettingScope limited([](Settings& s) { s.memory_limit_bytes = 1 << 20; });
  auto garbage = device().allocate(900 << 10);
  std::vector<bool> asked;
  device().set_reclaim([&](std::uint64_t, bool must) {
    asked.push_back(must);
    if (must) garbage.reset();
  });
  EXPECT_NO_THROW(device().allocate(800 << 10));
  EXPECT_THAT(asked, testing::ElementsAre(false, true));
}

TEST_F(FakeDevice, AllocatingFromManyThreadsKeepsTheBooks) {
  Device& d = device();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&d, t] {
      for (int i = 0; i < 300; ++i)
        auto b = d.allocate(static_cast<std::uint64_t>(t * 100 + i % 7 * 1000));
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(device().memory_stats().used_bytes, 0u);
  EXPECT_EQ(device().memory_stats().allocations + device().memory_stats().reuses, 1200u);
}

TEST_F(FakeDevice, AKernelIsRenderedCompiledAndRun) {
  auto kernel = device().compile(ir("ir of sum"), "sum", {.optimize = 1});
  EXPECT_EQ(kernel->name(), "sum");
  EXPECT_EQ(kernel->source(), "source ir of sum");
  EXPECT_EQ(kernel->disassemble(), "disassembly of binary 0 source ir of sum");
  auto out = device().allocate(3), a = device().allocate(3), b = device().allocate(3);
  a->copy_in("\1\2\3", 3);
  b->copy_in("\4\5\6", 3);
  Buffer* buffers[] = {out.get(), a.get(), b.get()};
  std::uint64_t scalars[] = {10}, time_ns = 0;
  device().launch(*kernel, {.buffers = buffers, .scalars = scalars, .group_count = {3, 1, 1}},
                  &time_ns);
  device().synchronize();
  char got[3];
  out->copy_out(got, 3);
  EXPECT_THAT(got, testing::ElementsAre(15, 17, 19));
  EXPECT_EQ(time_ns, 77u);
}

TEST_F(FakeDevice, ALaunchWithManyBuffersWorks) {
  auto kernel = device().compile(ir("x"), "sum");
  std::vector<std::shared_ptr<Buffer>> owners;
  std::vector<Buffer*> buffers;
  for (int i = 0; i < 100; ++i) {
    owners.push_back(device().allocate(1));
    owners.back()->copy_in("\1", 1);
    buffers.push_back(owners.back().get());
  }
  Launch all;
  all.buffers = buffers;
  device().launch(*kernel, all);
  char got = 0;
  owners[0]->copy_out(&got, 1);
  EXPECT_EQ(got, 99);
}

TEST_F(FakeDevice, FailuresNameDeviceCallAndReason) {
  auto launch = [&](const char* name) {
    return message_of([&] { device().launch(*device().compile(ir("x"), name), {}); });
  };
  EXPECT_EQ(launch("fails"), "[launch fails] GOOD:0: watchdog after 2 s (LAUNCH_FAILED)");
  EXPECT_EQ(launch("throws"),
            "[launch throws] GOOD:0: an exception left the plugin: thrown by launch (INTERNAL)");
  EXPECT_EQ(launch("odd_code"),
            "[launch odd_code] GOOD:0: a code that this host does not know (INTERNAL)");
  EXPECT_EQ(launch("absent"), "[load absent] GOOD:0: no kernel of that name (NOT_FOUND)");
}

TEST_F(FakeDevice, ACompileErrorShowsLogAndNumberedSource) {
  try {
    device().compile(ir("a\n#error\nb"), "broken");
    FAIL();
  } catch (const CompileError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Device);
    EXPECT_EQ(e.source(), "source a\n#error\nb");
    EXPECT_STREQ(e.what(),
                 "[compile] GOOD:0: the compiler refused kernel broken: 1 error\n"
                 "line 1: #error is no word of the fake language\n"
                 "    1 | source a\n    2 | #error\n    3 | b\n");
  }
  EXPECT_EQ(entries().size(), 0u) << "a failure is not cached";
}

TEST_F(FakeDevice, IdenticalKernelsCompileOnceFromManyThreads) {
  Device& d = device();
  std::vector<std::thread> threads;
  std::vector<std::shared_ptr<Kernel>> kernels(8);
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      SettingScope mine([&](Settings& s) { s.cache_dir = cache.path(); });
      kernels[t] = d.compile(ir(t % 2 ? "slow one" : "slow two"), "k");
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(device().compile_stats().compiled, 2u);
  EXPECT_EQ(device().compile_stats().from_process, 6u);
  EXPECT_EQ(kernels[0], kernels[2]);
  EXPECT_NE(kernels[0], kernels[1]);
}

// The fake device's caps say contract_supported = 0.
TEST_F(FakeDevice, IsNotAskedToContract_WhereItCannot) {
  EXPECT_EQ(device().compile(ir("x"), "k", {.contract = true})->disassemble(),
            "disassembly of binary 0 source x");
  EXPECT_EQ(device().compile(ir("x"), "k"), device().compile(ir("x"), "k", {.contract = true}));
  EXPECT_EQ(device().compile_source("s", "k", {.contract = true})->disassemble(),
            "disassembly of binary 0 s");
}

TEST_F(FakeDevice, ABlobThatNoMemoryHoldsIsAnErrorThatNamesTheCall) {
  EXPECT_THAT(message_of([&] { device().compile(ir("endless source"), "k"); }),
              HasSubstr("[render] GOOD:0: the plugin gave 1125899906842624 bytes; at most"));
  EXPECT_THAT(message_of([&] { device().compile(ir("endless binary"), "k"); }),
              HasSubstr("[compile] GOOD:0: the plugin gave 18446744073709551615 bytes"));
  EXPECT_THAT(message_of([&] { device().compile(ir("#error endless log"), "k"); }),
              HasSubstr("[compile] GOOD:0: the plugin gave 4611686018427387904 bytes"));
  EXPECT_EQ(device().compile(ir("good"), "k")->source(), "source good");
}

TEST_F(FakeDevice, BinariesComeFromTheDiskCacheInTheNextProcess) {
  device().compile(ir("x"), "k");
  device().compile(ir("x"), "k", {.optimize = 1});
  EXPECT_EQ(entries().size(), 2u);
  made.reset();  // a new device has none of the old one's kernels
  auto kernel = device().compile(ir("x"), "k");
  EXPECT_TRUE(kernel->from_disk_cache());
  EXPECT_EQ(kernel->disassemble(), "disassembly of binary 0 source x");
  EXPECT_EQ(device().compile_stats().compiled, 0u);
  EXPECT_EQ(device().compile_stats().from_disk, 1u);
}

TEST_F(FakeDevice, ADamagedOrForeignBinaryIsCompiledAnew) {
  device().compile(ir("x"), "k");
  const std::string key = entries().at(0);
  database("UPDATE entry SET payload = x'23'");
  made.reset();
  EXPECT_FALSE(device().compile(ir("x"), "k")->from_disk_cache());
  // A valid entry with a payload that the plugin rejects.
  DiskCache(cache.path() + "/kernels").put(as_bytes(key), as_bytes("from another world"));
  made.reset();
  EXPECT_FALSE(device().compile(ir("x"), "k")->from_disk_cache());
  EXPECT_EQ(device().compile_stats().rejected, 1u);
  made.reset();
  EXPECT_TRUE(device().compile(ir("x"), "k")->from_disk_cache()) << "and the good one is stored";
}

TEST_F(FakeDevice, AKernelThatIsNotKeptEndsWithItsOwner) {
  device().compile(ir("x"), "k", {.keep = false});
  device().compile(ir("x"), "k", {.keep = false});
  EXPECT_EQ(device().compile_stats().from_process, 0u);
  EXPECT_EQ(device().compile_stats().from_disk, 1u);
  device().compile(ir("x"), "k");
  device().compile(ir("x"), "k");
  EXPECT_EQ(device().compile_stats().from_process, 1u);
}

TEST_F(FakeDevice, APluginWithoutRendererAndCompilerRunsKernelIr) {
  plugins.add("minimal");
  Registry registry(plugins.options());
  auto kernel = registry.find_device("minimal").compile(ir("raw"), "sum");
  EXPECT_EQ(kernel->source(), "");
  EXPECT_EQ(kernel->disassemble(), "");
  EXPECT_EQ(kernel->binary().size(), 3u);
  EXPECT_EQ(entries().size(), 0u) << "nothing was compiled";
}

TEST_F(FakeDevice, AForkedChildGetsAClearError) {
  Device& parent = device();
  auto buffer = parent.allocate(8);
  pid_t child = fork();
  if (child == 0) {
    std::string message = message_of([&] { parent.allocate(8); });
    bool clear =
        message.find("[fork] GOOD:0 was opened before this process was forked") != message.npos;
    bool copies = message_of([&] { buffer->copy_in("x", 1); }).find("forked") != message.npos;
    buffer.reset();
    _exit(clear && copies ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}
