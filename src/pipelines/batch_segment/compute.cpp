#include "pipelines/batch_segment/compute.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/error.h"
#include "device/memory.h"

namespace cytra::pipelines {
namespace {

constexpr int64_t kBoxesAtOnce = 1024;  // whose logits wait on the host

int64_t count_of(const SegmentWorks& works) {
  return std::ssize(works);
}

/// What is still to be done.
SegmentWorks open_works(const SegmentWorks& works) {
  SegmentWorks open;
  for (SegmentWork* work : works) {
    if (!work->is_over) open.push_back(work);
  }
  return open;
}

/// Assigns each object to the part that holds it best.
void share_out(SegmentWork& work) {
  if (work.parts.empty()) return;
  const std::vector<int64_t> size{work.image.size(1), work.image.size(2)};
  for (int64_t i = 0; i < work.found.count(); ++i) {
    const float* const box = work.found.corners.const_data_ptr<float>() + 4 * i;
    SegmentWork* best = &work.parts.back();
    float most = kLeastClearance;
    for (auto part = work.parts.begin(); part != work.parts.end() - 1; ++part) {
      const float own = clearance(part->tile, box, size);
      if (own < most || (own == most && best != &work.parts.back())) continue;
      best = &*part;
      most = own;
    }
    best->objects.push_back(i);
    best->whole = &work;
  }
  for (SegmentWork& part : work.parts) {
    const at::Tensor numbers = at::tensor(part.objects, at::TensorOptions(at::kLong));
    part.found = work.found.chosen(numbers);
    part.found.corners =
        ops::shift_boxes(part.found.corners, {-part.tile.first[0], -part.tile.first[1]});
  }
}

/// The object of that number, with its mask.
SegmentedObject object_of(const ops::Boxes& found, int64_t number, io::CocoRle mask) {
  SegmentedObject object;
  std::copy_n(found.corners.const_data_ptr<float>() + 4 * number, 4, object.box.begin());
  object.score = found.scores.const_data_ptr<float>()[number];
  object.label = found.classes.const_data_ptr<int64_t>()[number];
  object.mask = std::move(mask);
  return object;
}

/// Masks of the image's own size, a part of them at a time.
std::vector<SegmentedObject> objects_of_unit(const SegmentWork& work,
                                             const std::string& path,
                                             const PromptedSegmenter& segmenter) {
  constexpr int64_t kPixelsAtOnce = int64_t{1} << 24;
  const nn::Placement& placement = work.square.placement;
  const int64_t pixels = placement.height * placement.width;
  const int64_t step = std::max<int64_t>(1, kPixelsAtOnce / std::max<int64_t>(pixels, 1));
  std::vector<SegmentedObject> objects;
  if (work.found.count() > 0 && !work.logits.isfinite().all().item<bool>())
    throw DataError(path +
                    ": the segmenter's output is not finite: its weights are damaged, or the "
                    "image's values out of range");
  for (int64_t first = 0; first < work.found.count(); first += step) {
    const at::Tensor masks = segmenter.upscale(work.logits.slice(0, first, first + step), placement)
                                 .gt(0)
                                 .to(at::kByte)
                                 .contiguous();
    for (int64_t i = 0; i < masks.size(0); ++i) {
      objects.push_back(object_of(
          work.found,
          first + i,
          io::encode_rle(
              masks.const_data_ptr<uint8_t>() + i * pixels, placement.height, placement.width)));
    }
  }
  return objects;
}

/// The image with the channels of the detector: grey images become RGB, and transparency is left
/// out.
at::Tensor with_channels(const at::Tensor& image, int64_t channels) {
  if (channels == 3 && image.size(0) == 1) return image.expand({3, -1, -1}).contiguous();
  if (channels == 3 && image.size(0) == 4) return image.narrow(0, 0, 3);
  return image;
}

}  // namespace

std::vector<SegmentedObject> objects_of(const SegmentWork& work,
                                        const PromptedSegmenter& segmenter) {
  if (work.parts.empty()) return objects_of_unit(work, work.input.path, segmenter);
  std::vector<SegmentedObject> all(static_cast<std::size_t>(work.found.count()));
  const nn::Placement& image = work.square.placement;
  for (const SegmentWork& part : work.parts) {
    std::vector<SegmentedObject> own = objects_of_unit(part, work.input.path, segmenter);
    for (std::size_t i = 0; i < own.size(); ++i) {
      const int64_t number = part.objects[i];
      all[static_cast<std::size_t>(number)] = object_of(
          work.found,
          number,
          own[i].mask.placed(part.tile.first[0], part.tile.first[1], image.height, image.width));
    }
  }
  return all;
}

SegmentStages::SegmentStages(StageReport& report, const BatchSegmentOptions& options)
    : models(report.add("models")),
      load(report.add("load", options.mode == "parallel" ? options.io_workers : 1)),
      compute(report.add("compute")),
      detect(report.add("  detect")),
      encode(report.add("  encode")),
      masks(report.add("  masks")),
      save(report.add("save", options.mode == "parallel" ? options.io_workers : 1)) {}

SegmentCompute::SegmentCompute(const SegmentModels& models,
                               const BatchSegmentOptions& options,
                               c10::Device device,
                               SegmentStages& stages)
    : models_(models), options_(options), device_(device), stages_(stages) {}

PromptedSegmenter& SegmentCompute::segmenter() {
  if (!segmenter_) {
    const StageWork work(stages_.models);
    segmenter_ = models_.load_segmenter();
  }
  return *segmenter_;
}

Detector& SegmentCompute::detector(const std::string& path) {
  std::unique_ptr<Detector>& detector = detectors_[path];
  if (!detector) {
    const StageWork work(stages_.models);
    detector = models_.load_detector(path);
  }
  return *detector;
}

/// Computes all of them together; where that fails, each by itself, so that an error of one image
/// leaves out only that image.
void SegmentCompute::together(const SegmentWorks& works, SegmentSink& sink, const Step& step) {
  const auto attempt = [&](const SegmentWorks& some) {
    try {
      step(some);
      return true;
    } catch (const IoError&) {  // the device, say
      throw;
    } catch (const ConfigError&) {  // of the run: an engine that can't run a model, say
      throw;
    } catch (const std::exception&) {
      if (some.size() > 1) return false;
      SegmentWork& image = some[0]->whole != nullptr ? *some[0]->whole : *some[0];
      if (!image.is_over) sink.leave_out(image.input, std::current_exception());
      image.is_over = some[0]->is_over = true;
      return true;
    }
  };
  if (works.empty() || attempt(works)) return;
  for (SegmentWork* work : works) attempt({work});
}

void SegmentCompute::run(const SegmentWorks& works, SegmentSink& sink, SegmentCounts& counts) {
  std::map<std::string, SegmentWorks> by_detector;
  for (SegmentWork* work : open_works(works))
    by_detector[models_.detector_of(work->input.view)].push_back(work);
  for (const auto& [path, own] : by_detector) {
    detector(path);
    together(own, sink, [&, name = path](const SegmentWorks& some) { detect(name, some, counts); });
  }
  SegmentWorks some;
  int64_t boxes = 0;
  const auto segment_some = [&] {
    together(some, sink, [&](const SegmentWorks& part) {
      encode(part, counts);
      make_masks(part);
    });
    some.clear();
    boxes = 0;
  };
  for (SegmentWork* work : open_works(works)) {
    share_out(*work);
    for (SegmentWork* unit : units_of(*work)) {
      if (unit->found.count() == 0) continue;  // an image without objects needs no encoding
      if (boxes + unit->found.count() > kBoxesAtOnce) segment_some();
      some.push_back(unit);
      boxes += unit->found.count();
    }
  }
  segment_some();
  for (const SegmentWork* work : open_works(works)) {
    ++counts.images;
    counts.boxes += work->found.count();
  }
}

void SegmentCompute::detect(const std::string& path,
                            const SegmentWorks& works,
                            SegmentCounts& counts) {
  const StageWork timed(stages_.detect, count_of(works));
  Detector& detector = *detectors_.at(path);
  const int64_t full_before = detector.full_windows();
  const auto run = [&](const at::Tensor& numbers) -> std::vector<at::Tensor> {
    std::vector<at::Tensor> images;
    const at::Tensor order = numbers.cpu();
    const int64_t* number = order.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < order.size(0); ++i)
      images.push_back(
          with_channels(works[static_cast<std::size_t>(number[i])]->image, detector.in_channels()));
    std::vector<ops::Boxes> found = detector.detect(images);
    for (std::size_t i = 0; i < found.size(); ++i)
      works[static_cast<std::size_t>(number[i])]->found = std::move(found[i]);
    return {numbers};
  };
  const at::Tensor all = at::arange(count_of(works), at::TensorOptions(at::kLong).device(device_));
  for (int64_t first = 0; first < count_of(works); first += options_.image_batch_size)
    images_(run, all.slice(0, first, first + options_.image_batch_size));
  counts.full_windows += detector.full_windows() - full_before;
}

void SegmentCompute::encode(const SegmentWorks& works, SegmentCounts& counts) {
  SegmentWorks fresh;
  for (SegmentWork* work : works) {
    if (!work->embedding.defined()) fresh.push_back(work);
  }
  const StageWork timed(stages_.encode, count_of(fresh));
  for (std::size_t first = 0; first < fresh.size();) {
    const std::size_t count =
        std::min(fresh.size() - first, std::size_t(options_.image_batch_size));
    std::vector<at::Tensor> images;
    for (std::size_t i = 0; i < count; ++i) images.push_back(fresh[first + i]->square.image);
    const at::Tensor made = encodings_(
        [this](const at::Tensor& some) -> std::vector<at::Tensor> {
          return {segmenter().encode(device::to_device(some, device_))};
        },
        at::stack(images))[0];
    for (std::size_t i = 0; i < count; ++i) {
      fresh[first + i]->embedding = made.narrow(0, static_cast<int64_t>(i), 1);
      fresh[first + i]->is_new_embedding = true;
    }
    counts.encoded += static_cast<int64_t>(count);
    first += count;
  }
  counts.cached += count_of(works) - count_of(fresh);
}

/// Boxes of all images in batches of one size.
void SegmentCompute::make_masks(const SegmentWorks& works) {
  std::vector<at::Tensor> embeddings, prompts;
  for (std::size_t i = 0; i < works.size(); ++i) {
    const at::Tensor boxes = works[i]->square.placement.boxes(works[i]->found.corners);
    const at::Tensor image = at::full({boxes.size(0), 1}, static_cast<double>(i));
    prompts.push_back(at::cat({boxes, image}, 1));  // (B,5): the last says of which image
    embeddings.push_back(works[i]->embedding.to(device_));
  }
  const at::Tensor all = device::to_device(at::cat(prompts), device_), pool = at::cat(embeddings);
  const StageWork timed(stages_.masks, all.size(0));
  const auto run = [&](const at::Tensor& some) -> std::vector<at::Tensor> {
    const at::Tensor image = some.select(1, 4).to(at::kLong);
    return {device::to_host(segmenter().masks(pool.index_select(0, image), some.narrow(1, 0, 4)))};
  };
  std::vector<at::Tensor> parts;
  const int64_t step = options_.sam_batch_size.of(static_cast<double>(all.size(0)) /
                                                  static_cast<double>(count_of(works)));
  for (int64_t first = 0; first < all.size(0); first += step)
    parts.push_back(boxes_(run, all.slice(0, first, first + step))[0]);
  const at::Tensor logits = at::cat(parts);
  int64_t first = 0;
  for (SegmentWork* work : works) {
    const auto count = work->found.count();
    work->logits = logits.narrow(0, first, count);
    first += count;
  }
}

void SegmentCompute::run_naively(SegmentWork& work, SegmentSink& sink, SegmentCounts& counts) {
  const std::string path = models_.detector_of(work.input.view);
  detector(path);
  segmenter();
  together({&work}, sink, [&](const SegmentWorks& one) {
    detect(path, one, counts);
    share_out(work);
    for (SegmentWork* unit : units_of(work)) {
      std::vector<at::Tensor> logits;
      const ops::Boxes all = unit->found;
      for (int64_t i = 0; i < all.count(); ++i) {
        unit->found = all.chosen(at::arange(i, i + 1, at::TensorOptions(at::kLong)));
        unit->embedding = at::Tensor();
        encode({unit}, counts);
        make_masks({unit});
        logits.push_back(unit->logits);
      }
      unit->found = all;
      unit->is_new_embedding = false;
      if (!logits.empty()) unit->logits = at::cat(logits);
    }
    ++counts.images;
    counts.boxes += work.found.count();
  });
}

void SegmentCompute::forget_models() {
  detectors_.clear();
  segmenter_.reset();
}

}  // namespace cytra::pipelines
