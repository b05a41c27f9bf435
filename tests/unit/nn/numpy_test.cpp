#include "plugrad/numpy.h"

#include <gmock/gmock.h>

#include <random>

#include "io/npy.h"
#include "io/zip.h"
#include "near.h"
#include "plugrad/nn.h"
#include "scratch_folder.h"

using namespace plugrad;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

#include "numpy_files.h"

std::string bytes_of(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

Tensor loaded(std::string_view hex) {
  ScratchFolder folder;
  return load_npy(folder.write("x.npy", bytes_of(hex))).realize();
}

/// A version 1 file with this description and data.
std::string npy(const std::string& literal, const std::string& data) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(literal.size() & 0xff);
  file += static_cast<char>(literal.size() >> 8);
  return file + literal + data;
}

std::string refusal(const std::string& content) {
  ScratchFolder folder;
  const auto path = folder.write("x.npy", content);
  return user_error([&] { load_npy(path); });
}

std::string npz_refusal(const std::string& content) {
  ScratchFolder folder;
  const auto path = folder.write("x.npz", content);
  return user_error([&] { load_npz(path); });
}

}  // namespace

TEST(Npy, NumPysFilesAreRead) {
  const Tensor floats = loaded(kFloats);
  EXPECT_EQ(floats.dtype(), DType::F32);
  EXPECT_EQ(floats.shape(), (Shape{2, 3}));
  expect_near(floats, {-4, -2.5, -1, 0.5, 2, 3.5});
  const Tensor integers = loaded(kBigFortran);
  EXPECT_EQ(integers.dtype(), DType::I16);
  EXPECT_EQ(integers.shape(), (Shape{2, 3}));
  EXPECT_THAT(integers.to_vector<int>(), ElementsAre(-4, -2, -1, 0, 2, 3));
  EXPECT_EQ(loaded(kTruth).dtype(), DType::Bool);
  EXPECT_TRUE(loaded(kTruth).item<bool>());
  EXPECT_EQ(loaded(kEmptyHalves).shape(), (Shape{0, 3}));
  EXPECT_EQ(loaded(kOneAxis).to_vector<uint64_t>()[2], (uint64_t{1} << 63) + 2);
}

TEST(Npy, FilesAreWrittenAsNumPyWritesThem) {
  ScratchFolder folder;
  const std::string path = folder.path / "x.npy";
  for (const char* hex : {kFloats, kTruth, kEmptyHalves, kOneAxis}) {
    save_npy(loaded(hex), path);
    EXPECT_EQ(contents(path), bytes_of(hex));
  }
}

TEST(Npy, EveryDTypeComesBack) {
  ScratchFolder folder;
  const std::string path = folder.path / "x.npy";
  for (DType dtype :
       {DType::Bool, DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32,
        DType::I64, DType::U64, DType::F16, DType::BF16, DType::F32, DType::F64}) {
    SCOPED_TRACE(name_of(dtype));
    const Tensor x = Tensor::from<int>({0, 1, 2, 100}, Shape{2, 2}).cast(dtype);
    save_npy(x.transpose(), path);
    const Tensor y = load_npy(path);
    EXPECT_EQ(y.dtype(), dtype == DType::BF16 ? DType::F32 : dtype);
    EXPECT_EQ(y.to_vector<double>(), x.transpose().to_vector<double>());
  }
}

TEST(Npy, TwoBytesOfNoTypeAreBf16AndOddTruthsAreOne) {
  ScratchFolder folder;
  const std::string descr = "{'descr': '|V2', 'fortran_order': False, 'shape': (2,), }\n";
  const Tensor x = load_npy(folder.write("x.npy", npy(descr, std::string("\x80\x3f\x00\xc0", 4))));
  EXPECT_EQ(x.dtype(), DType::BF16);
  expect_near(x, {1, -2});
  const std::string truths = "{\"shape\":(3,),'fortran_order':True,'descr':'|b1'}";
  EXPECT_THAT(
      load_npy(folder.write("y.npy", npy(truths, std::string("\x00\x02\xff", 3)))).to_bytes(),
      ElementsAre(std::byte{0}, std::byte{1}, std::byte{1}));
}

TEST(Npy, WhatIsNoArrayIsRefused) {
  const auto literal = [](const std::string& shape) {
    return "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }\n";
  };
  EXPECT_THAT(refusal(""), HasSubstr("does not begin with"));
  EXPECT_THAT(refusal("\x93NUMPY\x01"), HasSubstr("7 bytes are too few"));
  EXPECT_THAT(refusal(std::string("\x93NUMPY\x09\x00\x01\x00 ", 11)), HasSubstr("version 9"));
  EXPECT_THAT(refusal(npy(literal("(2,)"), "abcd")),
              HasSubstr("truncated: 4 bytes of data where the shape needs 8"));
  EXPECT_THAT(refusal(npy(literal("(1,)"), "abcdefgh")), HasSubstr("4 bytes follow the array"));
  EXPECT_THAT(refusal(npy(literal("(-1,)"), "")), HasSubstr("no size"));
  EXPECT_THAT(refusal(npy(literal("(4611686018427387904, 4)"), "")),
              HasSubstr("larger than any memory"));
  EXPECT_THAT(refusal(npy(literal("(99999999999999999999,)"), "")), HasSubstr("no size"));
  EXPECT_THAT(refusal(npy(literal("(2 3)"), "")), HasSubstr("')' is expected"));
  EXPECT_THAT(refusal(npy("{'descr': '<f4'}", "")),
              HasSubstr("lacks descr, fortran_order or shape"));
  EXPECT_THAT(refusal(npy("{'descr': '<f4', 'descr': '<f4'}", "")), HasSubstr("\"descr\" twice"));
  EXPECT_THAT(refusal(npy("{'descr': '<f4", "")), HasSubstr("no end"));
  EXPECT_THAT(refusal(npy("{'fortran_order': 1}", "")), HasSubstr("neither True nor False"));
  EXPECT_THAT(refusal(bytes_of(kComplex)), HasSubstr("dtype is '<c8', which plugrad lacks"));
  EXPECT_THAT(refusal(bytes_of(kRecords)), HasSubstr("records of several fields"));
  const std::string whole = bytes_of(kFloats);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THAT(refusal(whole.substr(0, size)), HasSubstr("x.npy: "));
  EXPECT_THAT(user_error([] { load_npy("/nowhere/x.npy"); }), HasSubstr("/nowhere/x.npy"));
  EXPECT_THAT(user_error([] { save_npy(Tensor(), "x"); }), HasSubstr("undefined"));
}

TEST(Npz, NumPysArchivesAreRead) {
  ScratchFolder folder;
  const auto stored = load_npz(folder.write("x.npz", bytes_of(kStored)));
  ASSERT_EQ(stored.size(), 2u);
  EXPECT_EQ(stored[0].first, "a");
  EXPECT_EQ(stored[0].second.dtype(), DType::F64);
  expect_near(stored[0].second, {-4, -2.5, -1, 0.5, 2, 3.5});
  EXPECT_THAT(stored[1].second.to_vector<int>(), ElementsAre(0, 1, 2));
  const auto deflated = load_npz(folder.write("y.npz", bytes_of(kDeflated)));
  EXPECT_EQ(deflated[0].second.shape(), (Shape{20, 30}));
  EXPECT_EQ(deflated[0].second.abs().sum().item<int>(), 0);
  EXPECT_THAT(deflated[1].second.to_vector<int>(), ElementsAre(0, 1, 2));
}

TEST(Npz, AModuleComesBack) {
  ScratchFolder folder;
  const std::string path = folder.path / "net.npz";
  for (bool compressed : {false, true}) {
    const nn::Linear layer(7, 5), other(7, 5);
    save_npz(nn::state_dict(layer), path, compressed);
    nn::load_state_dict(other, load_npz(path));
    EXPECT_EQ(other.weight.to_vector<float>(), layer.weight.to_vector<float>());
    EXPECT_EQ(other.bias.to_vector<float>(), layer.bias.to_vector<float>());
  }
  save_npz({}, path);
  EXPECT_TRUE(load_npz(path).empty());
}

TEST(Npz, DamagedArchivesAreRefused) {
  EXPECT_THAT(npz_refusal(""), HasSubstr("0 bytes are too few"));
  EXPECT_THAT(npz_refusal(std::string(100, 'x')), HasSubstr("the file is a text, no .npz archive"));
  EXPECT_THAT(npz_refusal(std::string(100, '\1')), HasSubstr("no zip archive"));
  std::string flipped = bytes_of(kStored);
  flipped[flipped.find("NUMPY") + 150] ^= 1;
  EXPECT_THAT(npz_refusal(flipped), HasSubstr("\"a.npy\": CRC error"));
  const std::string whole = bytes_of(kDeflated);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THAT(npz_refusal(whole.substr(0, size)), HasSubstr("x.npz: "));
  io::ZipWriter writer;
  writer.add("readme.txt", {}, false);
  const auto archive = writer.finish();
  EXPECT_THAT(npz_refusal({reinterpret_cast<const char*>(archive.data()), archive.size()}),
              HasSubstr("\"readme.txt\", which is no .npy array"));
  EXPECT_THAT(user_error([] { save_npz({{"a", 1}, {"a", 2}}, "x"); }),
              HasSubstr("\"a\" is empty or occurs twice"));
}

// Any damage is a User error or has no effect; sanitizers detect invalid accesses.
TEST(Npz, RandomDamageNeverGoesUnnoticedOrCrashes) {
  std::mt19937 random(1);
  for (const char* hex : {kStored, kDeflated}) {
    const std::string whole = bytes_of(hex);
    for (int round = 0; round < 3000; ++round) {
      std::string damaged = whole;
      for (int i = 0; i < 1 + round % 4; ++i)
        damaged[random() % damaged.size()] = static_cast<char>(random());
      const auto bytes = std::as_bytes(std::span(damaged));
      try {
        const io::ZipReader archive(bytes, "x");
        for (const io::ZipEntry& entry : archive.entries())
          io::parse_npy(archive.unpack(entry), "x");
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::User) << error.what();
      }
    }
  }
}
