#include "plugrad/data.h"

#include <gmock/gmock.h>

#include <numeric>
#include <set>

#include "near.h"
#include "plugrad/nn.h"
#include "scratch_folder.h"

using namespace plugrad;
using testing::HasSubstr;

namespace {

// Ten 1 x 2 images: (i, 10 i), labelled i.
data::Dataset ten() {
  std::vector<uint8_t> images, labels;
  for (uint8_t i = 0; i < 10; ++i) {
    images.insert(images.end(), {i, static_cast<uint8_t>(10 * i)});
    labels.push_back(i);
  }
  return data::Dataset(images, labels, 1, 2);
}

std::vector<std::vector<int>> labels_of(const data::Batches& batches) {
  std::vector<std::vector<int>> all;
  for (auto [x, y] : batches) all.push_back(y.to_vector<int>());
  return all;
}

}  // namespace

TEST(Dataset, BatchesHoldScaledImagesAndTheirLabels) {
  data::Batch batch = ten().gather({3, 7});
  EXPECT_EQ(batch.x.shape(), (Shape{2, 1, 1, 2}));
  expect_near(batch.x, {3 / 255.0f, 30 / 255.0f, 7 / 255.0f, 70 / 255.0f});
  EXPECT_EQ(batch.y.to_vector<int>(), (std::vector<int>{3, 7}));
  EXPECT_THAT(user_error([] { ten().gather({10}); }), HasSubstr("no sample 10 of 10"));
}

TEST(Dataset, HasChannels) {
  const data::Dataset set({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {4, 9}, Shape{3, 1, 2});
  EXPECT_EQ(set.sample_shape(), (Shape{3, 1, 2}));
  EXPECT_EQ(set.gather({1}).x.shape(), (Shape{1, 3, 1, 2}));
  expect_near(set.gather({1}).x * 255.0, {7, 8, 9, 10, 11, 12});
  EXPECT_THAT(user_error([] { data::Dataset({}, {}, Shape{2, 3}); }),
              HasSubstr("give (channels, height, width)"));
}

TEST(Batches, GoInOrderAndLeaveOutOrKeepTheRest) {
  EXPECT_EQ(labels_of(ten().batches(4)),
            (std::vector<std::vector<int>>{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(labels_of(ten().batches(4, {.keep_partial = true})).back(), (std::vector<int>{8, 9}));
  EXPECT_EQ(ten().batches(4, {.keep_partial = true}).size(), 3);
}

TEST(Batches, AreShuffledBySeedAnewForEachPass) {
  data::BatchOptions options{.shuffle = true, .seed = 7, .steps = 4};
  auto all = labels_of(ten().batches(5, options));
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all, labels_of(ten().batches(5, options)));
  for (size_t pass : {0u, 2u}) {
    std::set<int> seen(all[pass].begin(), all[pass].end());
    seen.insert(all[pass + 1].begin(), all[pass + 1].end());
    EXPECT_EQ(seen.size(), 10u);
  }
  EXPECT_NE(all[0], all[2]);
  options.seed = 8;
  EXPECT_NE(all, labels_of(ten().batches(5, options)));
}

TEST(Batches, ThePartsOfAllRanksAreTheBatchOfOne) {
  for (const int64_t ranks : {1, 2, 3, 5}) {
    data::BatchOptions options{.shuffle = true, .seed = 3, .steps = 4, .keep_partial = true};
    const auto whole = labels_of(ten().batches(7, options));
    std::vector<std::vector<int>> joined(whole.size());
    options.ranks = ranks;
    for (options.rank = 0; options.rank < ranks; ++options.rank) {
      const auto part = labels_of(ten().batches(7, options));
      ASSERT_EQ(part.size(), whole.size());
      for (size_t i = 0; i < part.size(); ++i) {
        const auto share = static_cast<int64_t>(whole[i].size()) / ranks;
        EXPECT_LE(std::abs(static_cast<int64_t>(part[i].size()) - share), 1);
        joined[i].insert(joined[i].end(), part[i].begin(), part[i].end());
      }
    }
    EXPECT_EQ(joined, whole) << ranks << " ranks";
  }
}

TEST(Batches, SayWhatIsWrong) {
  EXPECT_THAT(user_error([] { ten().batches(4, {.ranks = 5}); }),
              HasSubstr("a batch of 4 samples for 5 ranks"));
  EXPECT_THAT(user_error([] { ten().batches(4, {.rank = 2, .ranks = 2}); }),
              HasSubstr("there is no rank 2 of 2"));
  EXPECT_THAT(user_error([] { ten().batches(11); }), HasSubstr("a batch of 11 of 10 samples"));
  EXPECT_THAT(user_error([] { data::Dataset({1, 2, 3}, {0}, 1, 2); }),
              HasSubstr("3 values are not 1 images of 1 x 1 x 2"));
}

TEST(Accuracy, IsThePartThatIsRight) {
  auto says_label_or_zero = [](const Tensor& x) {
    Tensor label = (x.flatten(1)[{kEllipsis, 0}] * 255.0).round().cast(DType::I32);
    return where(label < 6, label, Tensor::zeros({1}, DType::I32)).one_hot(10);
  };
  EXPECT_DOUBLE_EQ(nn::accuracy(says_label_or_zero, ten(), 4), 0.6);
  EXPECT_DOUBLE_EQ(nn::accuracy(says_label_or_zero, ten()), 0.6);  // fewer than a batch
}
