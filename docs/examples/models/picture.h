// Pictures of red, green and blue bytes: PNG files, parts, sizes.
#pragma once

#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

using Pixel = std::array<uint8_t, 3>;

struct Rectangle {
  int64_t left, top, right, bottom;  // in pixels, without the last two
};

struct Picture {
  Picture(int64_t w, int64_t h) : width(w), height(h), pixels(static_cast<size_t>(w * h)) {}
  Pixel& at(int64_t x, int64_t y) { return pixels[static_cast<size_t>(y * width + x)]; }
  const Pixel& at(int64_t x, int64_t y) const { return pixels[static_cast<size_t>(y * width + x)]; }

  int64_t width, height;
  std::vector<Pixel> pixels;
};

// Transparency is left out.
inline Picture read_png(const std::string& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  std::vector<std::array<uint8_t, 4>> pixels;
  if (png_image_begin_read_from_file(&image, path.c_str())) {
    image.format = PNG_FORMAT_RGBA;
    pixels.resize(size_t{image.width} * image.height);
    png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr);
  }
  if (PNG_IMAGE_FAILED(image)) throw std::runtime_error(path + ": " + image.message);
  Picture picture(image.width, image.height);
  std::ranges::transform(pixels, picture.pixels.begin(),
                         [](const auto& each) { return Pixel{each[0], each[1], each[2]}; });
  return picture;
}

inline void write_png(const std::string& path, const Picture& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = PNG_FORMAT_RGB;
  png_image_write_to_file(&image, path.c_str(), 0, picture.pixels.data(), 0, nullptr);
  if (PNG_IMAGE_FAILED(image)) throw std::runtime_error(path + ": " + image.message);
}

inline Picture crop(const Picture& picture, const Rectangle& box) {
  Picture part(box.right - box.left, box.bottom - box.top);
  for (int64_t y = 0; y < part.height; ++y)
    for (int64_t x = 0; x < part.width; ++x) part.at(x, y) = picture.at(box.left + x, box.top + y);
  return part;
}

inline Picture transposed(const Picture& picture) {
  Picture result(picture.height, picture.width);
  for (int64_t y = 0; y < result.height; ++y)
    for (int64_t x = 0; x < result.width; ++x) result.at(x, y) = picture.at(y, x);
  return result;
}

// As Pillow's BILINEAR: each new pixel is the mean of the old ones that are nearer than the width of
// a new or old pixel, whichever is greater, weighted by their closeness.
inline Picture with_width(const Picture& picture, int64_t width) {
  constexpr int64_t kOne = int64_t{1} << 22;  // weights are integers, so that sums are exact
  Picture result(width, picture.height);
  const double scale = static_cast<double>(picture.width) / static_cast<double>(width);
  const double reach = std::max(scale, 1.0);
  for (int64_t x = 0; x < width; ++x) {
    const double centre = (static_cast<double>(x) + 0.5) * scale;
    const auto edge = [&](double at) {
      return std::clamp<int64_t>(static_cast<int64_t>(at + 0.5), 0, picture.width);
    };
    const int64_t first = edge(centre - reach), last = edge(centre + reach);
    std::vector<double> closeness;
    for (int64_t from = first; from < last; ++from)
      closeness.push_back(
          std::max(0.0, 1 - std::abs(static_cast<double>(from) + 0.5 - centre) / reach));
    const double total = std::reduce(closeness.begin(), closeness.end());
    std::vector<int64_t> weights;
    for (const double each : closeness) weights.push_back(std::llrint(each / total * kOne));
    for (int64_t y = 0; y < picture.height; ++y)
      for (size_t colour = 0; colour < 3; ++colour) {
        int64_t sum = kOne / 2;
        for (int64_t from = first; from < last; ++from)
          sum += weights[static_cast<size_t>(from - first)] * picture.at(from, y)[colour];
        result.at(x, y)[colour] = static_cast<uint8_t>(std::clamp<int64_t>(sum / kOne, 0, 255));
      }
  }
  return result;
}

inline Picture resize(const Picture& picture, int64_t width, int64_t height) {
  return transposed(with_width(transposed(with_width(picture, width)), height));
}

// A frame of two pixels within the box; the last two sides lie at its end.
inline void draw_box(Picture& picture, const Rectangle& box, const Pixel& colour) {
  for (int64_t y = box.top; y <= std::min(box.bottom, picture.height - 1); ++y)
    for (int64_t x = box.left; x <= std::min(box.right, picture.width - 1); ++x)
      if (std::min({x - box.left, box.right - x, y - box.top, box.bottom - y}) < 2)
        picture.at(x, y) = colour;
}
