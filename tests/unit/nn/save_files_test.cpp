// nn::save to a link, to a path that is no regular file, and beyond the file size limit.
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "near.h"
#include "plugrad/nn.h"
#include "scratch_folder.h"

using namespace plugrad;
namespace fs = std::filesystem;

namespace {

struct Net {
  nn::Linear layer{64, 16};
  PLUGRAD_FIELDS(layer)
};

}  // namespace

TEST(SaveFiles, ALinkStaysAndItsTargetIsReplaced) {
  const ScratchFolder folder;
  const fs::path target = folder.write("target", "old"), link = folder.path / "link";
  fs::create_symlink("target", link);
  const Net saved;
  nn::save(saved, link.string());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_FALSE(fs::is_symlink(target));
  Net loaded;
  nn::load(loaded, target.string());
  EXPECT_EQ(loaded.layer.weight.to_vector<float>(), saved.layer.weight.to_vector<float>());
  EXPECT_EQ(folder.file_count(), 2u);
}

// A pipe replaces a device such as /dev/full, which only root can create.
TEST(SaveFiles, WhatIsNoRegularFileIsRefusedAndStays) {
  const ScratchFolder folder;
  const fs::path pipe = folder.path / "pipe", link = folder.path / "link";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink("pipe", link);
  for (const fs::path& path : {pipe, link}) {
    const std::string message = user_error([&] { nn::save(Net(), path.string()); });
    EXPECT_NE(message.find(path.string()), std::string::npos) << message;
    EXPECT_NE(message.find("not a regular file"), std::string::npos) << message;
  }
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(folder.file_count(), 2u);
}

TEST(SaveFiles, ALimitOfFileSizesIsAnErrorAndTheOldFileStays) {
  const ScratchFolder folder;
  const Net net;
  const std::string path = (folder.path / "net").string();
  nn::save(net, path);
  const std::string before = contents(path);
  ASSERT_GT(before.size(), 4096u);
  rlimit old;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit small{1000, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = user_error([&] { nn::save(net, path); });
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_NE(message.find(path), std::string::npos) << message;
  EXPECT_NE(message.find("File too large"), std::string::npos) << message;
  EXPECT_EQ(contents(path), before);
  EXPECT_EQ(folder.file_count(), 1u);
}
