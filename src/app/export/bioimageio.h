#pragma once
// A package for bioimage.io's model zoo.
#include <string>
#include <vector>

#include "config/options.h"
#include "inference/models/trained_model.h"

namespace cytra::app {

/// What a package says of its model, besides what the checkpoint knows.
struct BioimageioOptions {
  std::string name, description, license, image, documentation;
  std::vector<std::string> tags;
  config::Node authors, cite;
  void visit(auto& v) {
    v("name", name, "the model's name, 5 to 128 characters; \"\": the output file's");
    v("description", description, "one sentence; \"\": what it makes of what");
    v("authors",
      authors,
      "names, or maps of name, affiliation, orcid, github_user: [Ada Lovelace] or [{name: Ada "
      "Lovelace, affiliation: London}]");
    v("license", license, "the SPDX name of the weights' licence: CC-BY-4.0, MIT ...");
    v("cite",
      cite,
      "what to cite: [{text: Ronneberger et al. 2015, doi: 10.1007/978-3-319-24574-4_28}], or url");
    v("documentation", documentation, "a Markdown file; \"\": a short text of the options");
    v("image", image, "an image that becomes the test image and the cover; \"\": noise, no cover");
    v("tags", tags, "words by which the zoo finds it");
  }
};

/// Checks what a package must have. Throws: ConfigError.
void expect_package_options(const BioimageioOptions& options, const std::string& output);

/// Writes the ZIP archive `output`: rdf.yaml of format 0.5, the weights as TorchScript and, where
/// it can be, as ONNX, a test image with its output. `torchscript`: the model's archive. Throws:
/// ConfigError for a transform or an output that a package can't say; what AtomicFile throws.
void write_bioimageio(const std::string& output,
                      const BioimageioOptions& options,
                      const inference::LoadedModel& model,
                      const std::string& torchscript);

}  // namespace cytra::app
