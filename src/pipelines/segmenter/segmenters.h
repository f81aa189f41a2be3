#pragma once
// What makes masks: load_segmenter() chooses by the file's content.
#include "pipelines/segmenter/segmenter.h"

namespace cytra::pipelines {

/// Opens a checkpoint of Cytra, or weights with the names of segment_anything (PyTorch,
/// safetensors).
std::unique_ptr<PromptedSegmenter> open_sam(const std::string& path,
                                            c10::Device device,
                                            const inference::EngineOptions& engine);
/// Opens TorchScript with the methods that load_segmenter() names.
std::unique_ptr<PromptedSegmenter> open_script(const std::string& path, c10::Device device);

}  // namespace cytra::pipelines
