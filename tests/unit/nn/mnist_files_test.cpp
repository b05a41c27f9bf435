#include "nn/mnist_files.h"

#include <gmock/gmock.h>

#include "base/settings.h"
#include "scratch_folder.h"

using namespace plugrad;
using namespace plugrad::nn;
using testing::HasSubstr;

namespace {

const std::string kThree("\0\0\x08\x01\0\0\0\x03" "xyz", 11);
const std::vector<MnistFile> kFiles = {{"first", {{3}, ""}}, {"second", {{3}, ""}}};

struct Said {
  std::string text;
  Say say() {
    return [this](std::string_view line) { text.append(line).append("\n"); };
  }
};

}  // namespace

TEST(MnistFiles, AGivenFolderOrItsMnistFolderIsRead) {
  ScratchFolder folder;
  Said said;
  folder.write("first", kThree);
  folder.write("second", kThree);
  EXPECT_EQ(load_mnist(kFiles, {.given = folder.path}, said.say()).size(), 2u);
  std::filesystem::create_directory(folder.path / "mnist");
  for (const char* name : {"first", "second"}) std::filesystem::rename(folder.path / name, folder.path / "mnist" / name);
  EXPECT_EQ(load_mnist(kFiles, {.data_dir = folder.path}, said.say())[1].values[2], 'z');
  EXPECT_THAT(said.text, HasSubstr("read from"));
}

TEST(MnistFiles, AGivenFolderWithoutThemIsAnErrorThatSaysWhatToDo) {
  ScratchFolder folder;
  Said said;
  EXPECT_THAT(user_error([&] { load_mnist(kFiles, {.given = folder.path}, said.say()); }),
              HasSubstr("holds first.gz; name a folder with the four MNIST files"));
  folder.write("first", kThree);
  EXPECT_THAT(user_error([&] { load_mnist(kFiles, {.given = folder.path}, said.say()); }), HasSubstr("lacks second.gz"));
}

TEST(MnistFiles, WithoutAnySourceEveryPlaceIsNamed) {
  ScratchFolder folder;
  Said said;
  MnistSources sources{.data_dir = folder.path / "none", .cache = folder.path, .mirrors = {"http://127.0.0.1:1/"}};
  std::string message = user_error([&] { load_mnist(kFiles, sources, said.say()); });
  EXPECT_THAT(message, HasSubstr("http://127.0.0.1:1/first.gz"));
  EXPECT_THAT(message, HasSubstr("--data or PLUGRAD_DATA"));
  EXPECT_THAT(said.text, HasSubstr("PLUGRAD_DATA is"));
  EXPECT_EQ(folder.file_count(), 0u) << "a failed download leaves nothing";
}

TEST(MnistFiles, ADamagedCachedFileIsRemovedNotTrusted) {
  ScratchFolder folder;
  Said said;
  folder.write("first.gz", "damaged");
  folder.write("second", kThree);
  user_error([&] { load_mnist(kFiles, {.cache = folder.path}, said.say()); });
  EXPECT_THAT(said.text, HasSubstr("first.gz: truncated"));
  EXPECT_FALSE(std::filesystem::exists(folder.path / "first.gz"));
  folder.write("first.gz", kThree);
  EXPECT_EQ(load_mnist(kFiles, {.cache = folder.path}, said.say()).size(), 2u);
}

TEST(MnistFiles, TheRealFilesHaveTheChecksumsOfThisTable) {
  if (settings().data_dir.empty()) GTEST_SKIP() << "PLUGRAD_DATA is not set";
  Said said;
  auto arrays = load_mnist(mnist_files(), {.data_dir = settings().data_dir}, said.say());
  ASSERT_EQ(arrays.size(), 4u);
  EXPECT_EQ(arrays[0].values.size(), 60000u * 784u);
  EXPECT_EQ(arrays[1].values[0], 5);
  EXPECT_EQ(arrays[3].values[0], 7);
}
