#include "nn/data/idx.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include "scratch_folder.h"

using namespace plugrad::nn;
using testing::HasSubstr;

namespace {

const std::string kTwoByThree(
    "\0\0\x08\x02\0\0\0\x02\0\0\0\x03"
    "abcdef",
    18);
const IdxExpectation kExpected{{2, 3},
                               "53cc43d5ae34178fffc85ab4e6f59d2fbd26a9aa6b7e37f7a3a8e5c4c1a5a4bd"};

std::filesystem::path gzipped(const ScratchFolder& folder, const std::string& bytes) {
  auto path = folder.path / "packed.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  return path;
}

}  // namespace

TEST(Idx, PlainAndGzippedFilesAreTheSame) {
  ScratchFolder folder;
  IdxExpectation any_content{{2, 3}, ""};
  IdxArray plain = read_idx(folder.write("plain", kTwoByThree), any_content);
  IdxArray packed = read_idx(gzipped(folder, kTwoByThree), any_content);
  EXPECT_EQ(plain.values, (std::vector<uint8_t>{'a', 'b', 'c', 'd', 'e', 'f'}));
  EXPECT_EQ(packed.values, plain.values);
  EXPECT_EQ(packed.sha256, plain.sha256);
  EXPECT_EQ(plain.sha256.size(), 64u);
}

TEST(Idx, TheChecksumIsSha256OfTheUnpackedFile) {
  ScratchFolder folder;
  auto path = folder.write("sum", kTwoByThree);
  std::string message = user_error([&] { read_idx(path, kExpected); });
  EXPECT_THAT(message, HasSubstr("SHA-256 checksum is"));
  EXPECT_THAT(message, HasSubstr(kExpected.sha256));
  EXPECT_THAT(message, HasSubstr("--data or PLUGRAD_DATA"));
}

TEST(Idx, TruncatedFilesAreNamed) {
  ScratchFolder folder;
  auto plain = folder.write("short", kTwoByThree.substr(0, 15));
  EXPECT_THAT(user_error([&] { read_idx(plain, {{2, 3}, ""}); }),
              HasSubstr("short: truncated: 15 of 18 bytes"));
  auto header = folder.write("header", kTwoByThree.substr(0, 5));
  EXPECT_THAT(user_error([&] { read_idx(header, {{2, 3}, ""}); }), HasSubstr("truncated: 5 bytes"));
  auto packed = gzipped(folder, kTwoByThree);
  std::filesystem::resize_file(packed, std::filesystem::file_size(packed) - 9);
  EXPECT_THAT(user_error([&] { read_idx(packed, {{2, 3}, ""}); }),
              HasSubstr("truncated: the packed data ends"));
}

TEST(Idx, WrongMagicExtentsAndSizes) {
  ScratchFolder folder;
  std::string magic = kTwoByThree;
  magic[2] = '\x0d';
  auto path = folder.write("magic", magic);
  EXPECT_THAT(user_error([&] { read_idx(path, {{2, 3}, ""}); }),
              HasSubstr("magic number is 0x00000d02, not 0x00000802"));
  path = folder.write("extents", kTwoByThree);
  EXPECT_THAT(user_error([&] { read_idx(path, {{3, 2}, ""}); }),
              HasSubstr("holds (2, 3) values where (3, 2)"));
  path = folder.write("long", kTwoByThree + "g");
  EXPECT_THAT(user_error([&] { read_idx(path, {{2, 3}, ""}); }),
              HasSubstr("more than the 18 bytes"));
  EXPECT_THAT(user_error([&] { read_idx(folder.path / "none", {{2, 3}, ""}); }),
              HasSubstr("none: cannot be opened"));
}

TEST(Idx, DamagedPackedDataIsNoticed) {
  ScratchFolder folder;
  auto path = gzipped(folder, kTwoByThree);
  std::string bytes = contents(path);
  bytes[bytes.size() - 12] ^= 0x55;
  folder.write("packed.gz", bytes);
  EXPECT_THAT(user_error([&] { read_idx(path, {{2, 3}, ""}); }), HasSubstr("packed.gz"));
}
