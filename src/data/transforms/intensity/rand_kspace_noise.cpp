// RandGibbsNoised, RandKSpaceSpikeNoised: artefacts of MRI, made in the Fourier domain. Source:
// monai.transforms.{RandGibbsNoised, RandKSpaceSpikeNoised}.
#include <cmath>

#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

std::vector<int64_t> spatial_dims(const at::Tensor& image) {
  std::vector<int64_t> dims;
  for (int64_t d = 1; d < image.dim(); ++d) dims.push_back(d);
  return dims;
}

at::Tensor to_kspace(const at::Tensor& image) {
  const std::vector<int64_t> dims = spatial_dims(image);
  return at::fft_fftshift(at::fft_fftn(image, std::nullopt, dims), dims);
}

at::Tensor from_kspace(const at::Tensor& kspace) {
  const std::vector<int64_t> dims = spatial_dims(kspace);
  return at::real(at::fft_ifftn(at::fft_ifftshift(kspace, dims), std::nullopt, dims)).contiguous();
}

struct RandGibbsNoised : RandKeyOptions {
  std::vector<double> alpha{0, 1};
  void visit(auto& v) {
    RandKeyOptions::visit(v);
    v("alpha", alpha, "range of the strength; 1 blanks the image; one number: 0..number", 0, 1);
  }
  void check() const { check_range("alpha", alpha, true); }

  auto draw(Rng& rng, const at::Tensor&) const {
    return [strength = Range(alpha, 0).draw(rng)](const at::Tensor& image) {
      const at::IntArrayRef sizes = image.sizes().slice(1);
      const auto longest = static_cast<double>(*std::ranges::max_element(sizes));
      const double radius = (1 - strength) * longest * std::sqrt(0.5);
      at::Tensor squares = at::zeros({}, at::kDouble);  // of the distance from the centre
      for (const int64_t size : sizes) {
        const at::Tensor offset =
            at::arange(size, at::kDouble) - (static_cast<double>(size) - 1) / 2;
        squares = squares.unsqueeze(-1) + offset.square();
      }
      return from_kspace(to_kspace(image) * squares.sqrt().le(radius));
    };
  }
};
CYTRA_REGISTER(Transform, RandPerKey<RandGibbsNoised>, "RandGibbsNoised");

struct RandKSpaceSpikeNoised : RandKeyOptions {
  std::vector<std::vector<double>> intensity_range;
  bool channel_wise = true;
  void visit(auto& v) {
    RandKeyOptions::visit(v);
    v("intensity_range",
      intensity_range,
      "low and high of the log of the spike, or such a pair per channel; null: by the image");
    v("channel_wise", channel_wise, "a place for each channel");
  }
  void check() {
    // `[10, 12]` is read as two lists of one number.
    if (intensity_range.size() == 2 && intensity_range[0].size() == 1 &&
        intensity_range[1].size() == 1)
      intensity_range = {{intensity_range[0][0], intensity_range[1][0]}};
    for (const auto& pair : intensity_range) check_range("intensity_range", pair, false);
    if (intensity_range.size() > 1 && !channel_wise)
      throw ConfigError("intensity_range: expected one pair unless channel_wise is true");
  }

  /// Draws the spikes; every key gets its own.
  auto draw(Rng& rng, const at::Tensor&) const {
    return [this, &rng](const at::Tensor& image) {
      const at::Tensor kspace = to_kspace(image);
      at::Tensor logs = (kspace.abs() + 1e-10).log();
      const at::Tensor means = logs.mean(spatial_dims(image)) * 2.5;
      std::vector<int64_t> place;
      // MONAI draws places and intensities in turn, or one place first and the intensities then.
      for (int64_t c = 0; c < image.size(0); ++c) {
        if (channel_wise || c == 0) place = draw_place(image, rng);
        at::Tensor spike = logs[c];
        for (const int64_t i : place) spike = spike[i];
        spike.fill_(range_of(c, image.size(0), means).draw(rng));
      }
      return from_kspace(at::polar(logs.exp(), kspace.angle()));
    };
  }

 private:
  static std::vector<int64_t> draw_place(const at::Tensor& image, Rng& rng) {
    std::vector<int64_t> place;
    for (const int64_t size : image.sizes().slice(1))
      place.push_back(static_cast<int64_t>(rng.below(static_cast<uint64_t>(size))));
    return place;
  }
  Range range_of(int64_t channel, int64_t channels, const at::Tensor& means) const {
    if (intensity_range.empty()) {
      const double mean = means[channel].item<float>();
      return {{0.95 * mean, 1.1 * mean}, 0};
    }
    if (intensity_range.size() == 1) return {intensity_range[0], 0};
    if (std::ssize(intensity_range) != channels) {
      throw DataError(std::to_string(channels) + " channels, expected " +
                      std::to_string(intensity_range.size()) + ", a pair of intensity_range each");
    }
    return {intensity_range[static_cast<std::size_t>(channel)], 0};
  }
};
CYTRA_REGISTER(Transform, RandPerKey<RandKSpaceSpikeNoised>, "RandKSpaceSpikeNoised");

}  // namespace
}  // namespace cytra::data
