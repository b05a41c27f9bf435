// CIFAR-10's binary files, with two records each instead of 10,000.
#include "nn/data/cifar.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <zlib.h>

#include <cstring>
#include <functional>

#include "scratch_folder.h"

using namespace plugrad::nn;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

const CifarExpectation kTwo{.records_a_file = 2};

// Record r of file f: label f + r, pixels starting with 10 f + r.
std::string records(int file) {
  std::string bytes;
  for (int r = 0; r < 2; ++r) {
    bytes += static_cast<char>(file + r);
    bytes += static_cast<char>(10 * file + r);
    bytes += std::string(3071, 'p');
  }
  return bytes;
}

std::string dataset_name(int file) {
  return file == 5 ? "test_batch.bin" : fmt::format("data_batch_{}.bin", file + 1);
}

std::string tar_entry(const std::string& name, const std::string& content) {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(124, 11, fmt::format("{:011o}", content.size()));
  header.replace(257, 5, "ustar");
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}

std::string archive() {
  std::string bytes = tar_entry("cifar-10-batches-bin/readme.html", "words");
  for (int file : {5, 0, 1, 2, 3, 4})
    bytes += tar_entry("cifar-10-batches-bin/" + dataset_name(file), records(file));
  return bytes + std::string(1024, '\0');
}

std::filesystem::path packed(const ScratchFolder& folder, const std::string& bytes) {
  const auto path = folder.path / "cifar-10-binary.tar.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  return path;
}

void expect_all(const Cifar& cifar) {
  EXPECT_THAT(cifar.train.labels, ElementsAre(0, 1, 1, 2, 2, 3, 3, 4, 4, 5));
  EXPECT_THAT(cifar.test.labels, ElementsAre(5, 6));
  ASSERT_EQ(cifar.train.images.size(), 10u * 3072);
  EXPECT_EQ(cifar.train.images[3072 * 9], 41);
  EXPECT_EQ(cifar.test.images[0], 50);
}

}  // namespace

TEST(Cifar, TheArchiveAndTheFolderAreTheSame) {
  ScratchFolder folder;
  expect_all(read_cifar(packed(folder, archive()), kTwo));
  for (int file = 0; file < 6; ++file) folder.write(dataset_name(file), records(file));
  expect_all(read_cifar(folder.path, kTwo));
}

TEST(Cifar, WhatIsDamagedIsNamed) {
  ScratchFolder folder;
  auto read = [&](const std::string& bytes) {
    const auto path = packed(folder, bytes);
    return user_error([&] { read_cifar(path, kTwo); });
  };
  EXPECT_THAT(read(archive().substr(0, 9000)), HasSubstr("cifar-10-binary.tar.gz: truncated"));
  EXPECT_THAT(read("no archive at all" + std::string(600, 'x')), HasSubstr("it is no tar archive"));
  EXPECT_THAT(read(tar_entry("data_batch_1.bin", "short")),
              HasSubstr("data_batch_1.bin has 5 bytes, not 6146"));
  EXPECT_THAT(read(tar_entry("a", "b") + std::string(1024, '\0')),
              HasSubstr("it lacks data_batch_1.bin"));
  std::string label = archive();
  label[512 * 3] = 77;  // behind the readme and the header of the test file
  EXPECT_THAT(read(label), HasSubstr("a label is 77"));
  const auto path = packed(folder, archive());
  EXPECT_THAT(user_error([&] { read_cifar(path, {.records_a_file = 2, .sha256 = "00"}); }),
              HasSubstr("the SHA-256 checksum is"));
  EXPECT_THAT(user_error([&] { read_cifar(folder.path, kTwo); }),
              HasSubstr("data_batch_1.bin: cannot be read"));
}
